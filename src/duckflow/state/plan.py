"""Plan, Step and Task: the rules they follow, and how a person changes them."""

import hashlib
from collections.abc import Collection, Sequence
from typing import Any, Literal

from pydantic import Field

from duckflow.errors import UsageError
from duckflow.state.action import Effect, Operation, first_given
from duckflow.state.data import FrozenData, MutableData, holds, new_id

PlanStatus = Literal["draft", "approved", "in_progress", "completed", "failed", "withdrawn"]
"""The states of a plan. `failed`: the user has dropped it. `withdrawn`: the user has undone all of its work; its steps
stay as they were, so that a redo brings the plan back."""
StepStatus = Literal["pending", "in_progress", "completed", "failed"]
TaskStatus = Literal["pending", "in_progress", "completed", "failed", "interrupted", "cancelled"]


class Task(MutableData):
    task_id: str = Field(default_factory=new_id("task"))
    operation: str
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    reasoning: str = ""
    status: TaskStatus = "pending"
    result: str | None = None
    began: float = 0.0
    seconds: float = 0.0
    """Seconds that the task took; 0 while it is not over."""
    effect: Effect = "run"
    touches: tuple[str, ...] = ()
    """The files that the task may change. Empty means any file, unless the task only reads."""
    makes: tuple[str, ...] = ()
    """The files that will exist after the task."""
    subject: str = ""
    """Name of the argument that says what the task is about."""
    action_id: str = ""
    """The id of the call in an agent's reply that this task carries out."""

    @property
    def line(self) -> str:
        """Returns a short description of the task."""
        return f"{self.operation} {self.args.get(self.subject, '')}".strip()

    @classmethod
    def of(cls, operation: Operation, args: dict[str, Any], reasoning: str = "", action_id: str = "") -> "Task":
        """Makes a task from a call, with the properties that the operation states."""
        touched_paths, made_paths = operation.touched(args), operation.made(args)
        return cls(
            operation=operation.name,
            args=args,
            reasoning=reasoning,
            effect=operation.effect,
            touches=touched_paths,
            makes=made_paths,
            subject=first_given(operation.subject, args),
            action_id=action_id,
        )


class TaskList(MutableData):
    tasks: list[Task] = Field(default_factory=list[Task])


class Step(MutableData):
    step_id: str = Field(default_factory=new_id("step"))
    name: str
    description: str = ""
    status: StepStatus = "pending"
    success: str = ""
    """The criterion: what shows that the step is done."""
    depends_on: list[str] = Field(default_factory=list[str])
    files: list[str] = Field(default_factory=list[str])
    """The files that the step makes or changes, as the plan lists them."""
    evidence: str = ""
    """The recorded result that shows that the step is completed. A step completed without such a result is
    unverified."""
    lacking: str = ""
    """The part of the criterion that no result has shown. Steps that depend on this one wait until it is empty."""
    found: str = ""
    """The last message of the agent that carried out the step."""
    said: list[str] = Field(default_factory=list[str])
    """The user's words to the step while it was carried out, word for word."""
    answered: int = 0
    """The number of entries in `said` that the agent had heard when the step was completed."""
    began: float = 0.0
    added: bool = False
    """True if Duckflow added the step, and not the model."""
    task_list: TaskList = Field(default_factory=TaskList)

    @property
    def work(self) -> str:
        """Returns what the step makes or changes: its description, and those of its files that this does not name."""
        other_files = ", ".join(path for path in self.files if path not in self.description)
        return f"{self.description} ({other_files})".strip() if other_files else self.description

    @property
    def text(self) -> str:
        return f"{self.name} {self.work} {self.success}"

    @property
    def tasks(self) -> list[Task]:
        return self.task_list.tasks

    @property
    def open_words(self) -> list[str]:
        """Returns the user's words to the step since it was last completed."""
        return self.said[self.answered :]

    @property
    def unverified(self) -> bool:
        return self.status == "completed" and not self.evidence

    @property
    def settled(self) -> bool:
        """Says whether the step is completed and a result shows that, so that the steps that depend on it may start."""
        return self.status == "completed" and not self.lacking

    def reopen(self) -> None:
        """Resets the step, so that it is done again."""
        self.status, self.evidence, self.lacking, self.task_list = "pending", "", "", TaskList()

    def copied(self) -> "Step":
        """Returns a copy of the step: status and tasks are copied; the arguments, which never change, are shared."""
        tasks = TaskList.model_construct(tasks=[task.model_copy() for task in self.tasks])
        return self.model_copy(update={"task_list": tasks, "depends_on": list(self.depends_on)})

    def tasks_done(self) -> int:
        return sum(task.status == "completed" for task in self.tasks)


class SaidToJob(FrozenData):
    """Words of the user to a job that carries the plan out: the steps that they went to, and the steps that were
    completed by then. Steps are given by their ids."""

    words: str
    to: tuple[str, ...]
    after: tuple[str, ...] = ()


class Plan(MutableData):
    plan_id: str = Field(default_factory=new_id("plan"))
    name: str
    goal: str
    status: PlanStatus = "draft"
    risks: list[str] = Field(default_factory=list[str])
    steps: list[Step] = Field(default_factory=list[Step])
    checks: tuple[str, ...] = ()
    """Commands that the plan's criteria name as checks. They are shown with the draft, and the user's yes to the plan
    allows them, inside the sandbox. Later changes of the plan add no commands to this list."""
    background: bool = False
    """True if the user's yes starts all steps in the background, as the model has proposed."""
    since: int = 0
    """The turn in which the user approved the plan."""
    said: list[SaidToJob] = Field(default_factory=list[SaidToJob])
    """The user's words to the plan's jobs. Steps that begin later are told of them, too."""
    approved: "Plan | None" = None
    """The plan as the user approved it. It is set while a weaker version of the plan waits for the user's yes."""

    @property
    def under_way(self) -> bool:
        """Says whether the plan is approved and has not ended."""
        return self.status in ("approved", "in_progress")

    @property
    def given_up(self) -> bool:
        """Says whether the user has dropped the plan, or undone all of its work."""
        return self.status in ("failed", "withdrawn")

    @property
    def is_over(self) -> bool:
        return self.status == "completed" or self.given_up

    def fingerprint(self) -> str:
        """Returns a text that differs whenever the plan differs at all: a yes counts only for the plan as shown."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def done(self) -> int:
        return sum(step.status == "completed" for step in self.steps)

    @property
    def all_done(self) -> bool:
        return bool(self.steps) and self.done() == len(self.steps)

    def agreed(self, turn: int) -> "Plan":
        """Returns the plan as the user's yes in this turn leaves it: it is over if all of its steps are done."""
        status = "completed" if self.all_done else "approved"
        return self.model_copy(update={"status": status, "approved": None, "since": self.since or turn})

    def current(self) -> Step | None:
        return next((step for step in self.steps if step.status == "in_progress"), None)

    def outline(self) -> dict[str, Any]:
        """Returns the plan and the state of its steps as plain data, for programs."""
        steps = [
            {"name": step.name, "status": step.status, "evidence": step.evidence, "unverified": step.unverified}
            for step in self.steps
        ]
        return {"name": self.name, "goal": self.goal, "status": self.status, "steps": steps}

    @property
    def told(self) -> str:
        """Returns all texts of the plan as one text."""
        return " ".join((self.name, self.goal, *self.checks, *(step.text for step in self.steps)))

    def names(self, subject: str) -> bool:
        """Says whether the plan's goal or one of its steps may name this file or program, with or without a suffix."""
        return subject.rpartition("/")[2].partition(".")[0].casefold() in self.told.casefold()

    def hear(self, step: Step, words: str) -> None:
        """Keeps the user's words for a step. Equal words to several steps in a row are one message to all of them."""
        step.said = [*step.said, words]
        latest = self.said[-1] if self.said else None
        if latest and latest.words == words and step.step_id not in latest.to:
            self.said = [*self.said[:-1], latest.model_copy(update={"to": (*latest.to, step.step_id)})]
            return
        completed_ids = tuple(other.step_id for other in self.steps if other.status == "completed")
        self.said = [*self.said, SaidToJob(words=words, to=(step.step_id,), after=completed_ids)]

    def forget(self, words: str) -> None:
        """Removes all that the user said to jobs and steps which contains these words."""
        self.said = [said for said in self.said if not holds(said.words, words)]
        for step in self.steps:
            # The number of the words stays, because `answered` counts them.
            step.said = ["" if holds(text, words) else text for text in step.said]

    def copied(self) -> "Plan":
        """Returns a copy of the plan. This is much faster than a deep copy, and plans can be long."""
        return self.model_copy(update={"steps": [step.copied() for step in self.steps]})

    def step(self, wanted: str) -> Step | None:
        """Finds a step by its id, its number (from 1), or its name."""
        wanted = wanted.strip()
        for number, step in enumerate(self.steps, 1):
            if wanted in (step.step_id, str(number)) or wanted.casefold() == step.name.casefold():
                return step
        return None

    def next_step(self) -> Step | None:
        """Returns the step that is in progress, else the first step that may start."""
        settled_ids = {step.step_id for step in self.steps if step.settled}
        open_steps = (s for s in self.steps if not s.settled and settled_ids.issuperset(s.depends_on))
        return self.current() or next(open_steps, None)


def dependency_problems(steps: Sequence[Step]) -> list[str]:
    """Returns the problems: unknown steps, steps that depend on themselves, and circles. Empty when all is well."""
    steps_by_id = {step.step_id: step for step in steps}
    problems = [
        f"step {step.name!r} depends on {needed_id!r}, which is no step of this plan"
        for step in steps
        for needed_id in step.depends_on
        if needed_id not in steps_by_id
    ]
    if circle := circular(steps):
        problems.append("these steps depend on each other in a circle: " + " -> ".join(circle))
    return problems


def circular(steps: Sequence[Step]) -> list[str]:
    """Returns the names of the steps that can never start: they wait for each other in a circle, or for such steps.
    Empty when every step can start some day."""
    known_ids = {step.step_id for step in steps}
    needs_by_step = {step.step_id: {need for need in step.depends_on if need in known_ids} for step in steps}
    while free_ids := [step_id for step_id, needs in needs_by_step.items() if not needs]:
        for step_id in free_ids:
            del needs_by_step[step_id]
        for needs in needs_by_step.values():
            needs.difference_update(free_ids)
    return [step.name for step in steps if step.step_id in needs_by_step]


def renamed(plan: Plan, wanted: str, name: str) -> Plan:
    """Returns the plan with another name for a step, or for the plan itself when the step is `0`."""
    if not name.strip():
        raise UsageError("plan.edit_usage")
    new_plan = plan.copied()
    if wanted == "0":
        new_plan.name = name.strip()
    else:
        _step(new_plan, wanted).name = name.strip()
    return new_plan


def moved(plan: Plan, wanted: str, place: str) -> Plan:
    """Returns the plan with a step at another place. A step never stands before one it depends on."""
    new_plan = plan.copied()
    step = _step(new_plan, wanted)
    if not place.isdecimal() or not 1 <= int(place) <= len(new_plan.steps):
        raise UsageError("plan.no_place", place=place, steps=len(new_plan.steps))
    new_plan.steps.remove(step)
    new_plan.steps.insert(int(place) - 1, step)
    positions = {placed_step.step_id: number for number, placed_step in enumerate(new_plan.steps)}
    for placed_step in new_plan.steps:
        for need in placed_step.depends_on:
            if positions[need] > positions[placed_step.step_id]:
                raise UsageError("plan.needs_before", step=placed_step.name, need=new_plan.steps[positions[need]].name)
    return new_plan


def reopened(plan: Plan, wanted: str) -> Plan:
    """Returns the plan with a step reset, so that it is done again."""
    new_plan = plan.copied()
    _step(new_plan, wanted).reopen()
    new_plan.status = "in_progress" if new_plan.status == "completed" else new_plan.status
    return new_plan


def without(plan: Plan, wanted: str) -> Plan:
    """Returns the plan without a step. Steps that depended on it now depend on what it depended on."""
    new_plan = plan.copied()
    step = _step(new_plan, wanted)
    if step.status != "pending":
        raise UsageError("plan.step_begun", step=step.name)
    new_plan.steps.remove(step)
    for other in new_plan.steps:
        if step.step_id in other.depends_on:
            other.depends_on = list(dict.fromkeys([n for n in other.depends_on if n != step.step_id] + step.depends_on))
    assert not circular(new_plan.steps)
    return new_plan


def _step(plan: Plan, wanted: str) -> Step:
    step = plan.step(wanted)
    if step is None:
        raise UsageError("plan.no_step", step=wanted)
    return step


ANYTHING = "*"
"""Stands for files that cannot be known beforehand: a command may touch any."""


def startable(plan: Plan, wanted: Collection[str], busy: Collection[str] = ()) -> list[Step]:
    """Returns the wanted steps that may start now: they are neither over nor busy, and a result shows that each step
    they depend on is done."""
    settled_ids = {step.step_id for step in plan.steps if step.settled}
    return [
        step
        for step in plan.steps
        if step.step_id in wanted
        and step.step_id not in busy
        and step.status in ("pending", "in_progress")
        and settled_ids.issuperset(step.depends_on)
    ]


def touched(step: Step, named: bool = False) -> frozenset[str]:
    """Returns the files that a step's open tasks may change; with `named` only the files that are known."""
    names: set[str] = set()
    for task in step.tasks:
        if task.status not in ("completed", "cancelled", "failed") and task.effect != "read":
            names.update(task.touches or ([] if named else [ANYTHING]))
    return frozenset(names)


def next_command(step: Step) -> str:
    """Returns the first open task of the step that may change any file; an empty text if there is none."""
    open_tasks = (task for task in step.tasks if task.status not in ("completed", "cancelled", "failed"))
    return next((task.line for task in open_tasks if task.effect != "read" and not task.touches), "")


def has_none_left(step: Step) -> bool:
    """Says whether the step needs new tasks: it has none, or it was opened again and all of its tasks are done."""
    return not step.tasks or (step.status == "pending" and all(task.status == "completed" for task in step.tasks))


def held(step: Step) -> frozenset[str]:
    """Returns the files that a step has changed so far."""
    return frozenset(path for task in step.tasks if task.status == "completed" for path in task.touches)


def next_task(step: Step) -> Task | None:
    """Returns the next open task; None when all are done, or when one has failed."""
    for task in step.tasks:
        if task.status in ("pending", "interrupted", "in_progress"):
            return task
        if task.status == "failed":
            return None
    return None


def clash(paths: frozenset[str], others: frozenset[str]) -> bool:
    """Says whether two sets of paths have a file in common. A folder stands for all that lies in it."""
    if ANYTHING in paths or ANYTHING in others:
        return bool(paths and others)
    return any(lies_in(path, other_path) or lies_in(other_path, path) for path in paths for other_path in others)


def lies_in(path: str, folder: str) -> bool:
    """Says whether a path is this folder or lies below it. Both are normalised and relative to the work folder `.`"""
    is_inside_work_folder = not f"{path}/".startswith("../")
    return (folder == "." and is_inside_work_folder) or f"{path}/".startswith(f"{folder}/")
