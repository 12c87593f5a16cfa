"""Plan, Step and Task: the rules they keep, and how a person changes them."""

from collections.abc import Collection, Sequence
from typing import Any, Literal

from pydantic import Field

from duckflow.errors import UsageError
from duckflow.state.action import Effect, Operation, first_given
from duckflow.state.noun import Noun, new_id

PlanStatus = Literal["draft", "approved", "in_progress", "completed", "failed"]
StepStatus = Literal["pending", "in_progress", "completed", "failed"]
TaskStatus = Literal["pending", "in_progress", "completed", "failed", "interrupted", "cancelled"]


class Task(Noun):
    task_id: str = Field(default_factory=new_id("task"))
    operation: str
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    reasoning: str = ""
    status: TaskStatus = "pending"
    result: str | None = None
    began: float = 0.0
    seconds: float = 0.0
    """How long it took; 0 before it is over."""
    effect: Effect = "run"
    touches: tuple[str, ...] = ()
    """The files it may change; nothing: any, unless it only reads."""
    makes: tuple[str, ...] = ()
    """The files that are there after it."""
    subject: str = ""
    """Name of the argument that says what it is about."""
    action_id: str = ""
    """The call of an agent's reply that it is."""

    @property
    def line(self) -> str:
        """The task in a few words."""
        return f"{self.operation} {self.args.get(self.subject, '')}".strip()

    @classmethod
    def of(cls, operation: Operation, args: dict[str, Any], reasoning: str = "", action_id: str = "") -> "Task":
        """A call of an operation, with what that says of it."""
        touches, makes = operation.touched(args), operation.made(args)
        return cls(
            operation=operation.name,
            args=args,
            reasoning=reasoning,
            effect=operation.effect,
            touches=touches,
            makes=makes,
            subject=first_given(operation.subject, args),
            action_id=action_id,
        )


class TaskList(Noun):
    tasks: list[Task] = Field(default_factory=list[Task])


class Step(Noun):
    step_id: str = Field(default_factory=new_id("step"))
    name: str
    description: str = ""
    status: StepStatus = "pending"
    success: str = ""
    """What shows that it is done."""
    depends_on: list[str] = Field(default_factory=list[str])
    evidence: str = ""
    """The recorded result by which it counts as completed; a step completed without one is unverified."""
    lacking: str = ""
    """What its criterion names and no result has shown: nothing that depends on it starts."""
    found: str = ""
    """What the agent that carried it out had to say in the end."""
    said: list[str] = Field(default_factory=list[str])
    """What the user said to it while it was carried out, word for word."""
    answered: int = 0
    """It was completed with so many of these words heard."""
    began: float = 0.0
    added: bool = False
    """Duckflow put it there, not the model."""
    task_list: TaskList = Field(default_factory=TaskList)

    @property
    def text(self) -> str:
        return f"{self.name} {self.description} {self.success}"

    @property
    def tasks(self) -> list[Task]:
        return self.task_list.tasks

    @property
    def open_words(self) -> list[str]:
        """What the user said to it since it was last completed."""
        return self.said[self.answered :]

    @property
    def unverified(self) -> bool:
        return self.status == "completed" and not self.evidence

    @property
    def settled(self) -> bool:
        """Whether what depends on it may start."""
        return self.status == "completed" and not self.lacking

    def reopen(self) -> None:
        """It is to be done anew."""
        self.status, self.evidence, self.lacking, self.task_list = "pending", "", "", TaskList()

    def copied(self) -> "Step":
        """A step of its own: what changes (status, tasks) is copied, what never does (arguments) is shared."""
        tasks = TaskList.model_construct(tasks=[task.model_copy() for task in self.tasks])
        return self.model_copy(update={"task_list": tasks, "depends_on": list(self.depends_on)})

    def tasks_done(self) -> int:
        return sum(task.status == "completed" for task in self.tasks)


class Plan(Noun):
    plan_id: str = Field(default_factory=new_id("plan"))
    name: str
    goal: str
    status: PlanStatus = "draft"
    risks: list[str] = Field(default_factory=list[str])
    steps: list[Step] = Field(default_factory=list[Step])
    checks: tuple[str, ...] = ()
    """Commands that its criteria name as checks. They are shown with the draft, and a yes to it is a yes to them, shut
    in the sandbox. A change of the approved plan adds none."""
    ended: bool = False
    """It was completed once. What was allowed until its end stays over, also where a step is opened again."""
    since: int = 0
    """The turn in which the user approved it."""
    approved: "Plan | None" = None
    """The plan as the user approved it, while this is a weaker draft of it that waits for a yes."""

    @property
    def under_way(self) -> bool:
        """Approved, and not over."""
        return self.status in ("approved", "in_progress")

    def done(self) -> int:
        return sum(step.status == "completed" for step in self.steps)

    def current(self) -> Step | None:
        return next((step for step in self.steps if step.status == "in_progress"), None)

    def outline(self) -> dict[str, Any]:
        """What came of it, for programs."""
        steps = [
            {"name": one.name, "status": one.status, "evidence": one.evidence, "unverified": one.unverified}
            for one in self.steps
        ]
        return {"name": self.name, "goal": self.goal, "status": self.status, "steps": steps}

    @property
    def told(self) -> str:
        """All that it says."""
        return " ".join((self.name, self.goal, *self.checks, *(step.text for step in self.steps)))

    def names(self, subject: str) -> bool:
        """Whether its goal or one of its steps may name this file or program, with or without an ending."""
        return subject.rpartition("/")[2].partition(".")[0].casefold() in self.told.casefold()

    def copied(self) -> "Plan":
        """A plan of its own; much faster than a deep copy, and plans can be long."""
        return self.model_copy(update={"steps": [step.copied() for step in self.steps]})

    def step(self, wanted: str) -> Step | None:
        """A step by its id, its number (from 1), or its name."""
        wanted = wanted.strip()
        for number, step in enumerate(self.steps, 1):
            if wanted in (step.step_id, str(number)) or wanted.casefold() == step.name.casefold():
                return step
        return None

    def next_step(self) -> Step | None:
        """The one in progress, else the first that may start."""
        settled = {step.step_id for step in self.steps if step.settled}
        open_steps = (s for s in self.steps if not s.settled and settled.issuperset(s.depends_on))
        return self.current() or next(open_steps, None)


def dependency_problems(steps: Sequence[Step]) -> list[str]:
    """Unknown steps, steps that depend on themselves, and circles; nothing when all is well."""
    known = {step.step_id: step for step in steps}
    problems = [
        f"step {step.name!r} depends on {wanted!r}, which is no step of this plan"
        for step in steps
        for wanted in step.depends_on
        if wanted not in known
    ]
    if circle := circular(steps):
        problems.append("these steps depend on each other in a circle: " + " -> ".join(circle))
    return problems


def circular(steps: Sequence[Step]) -> list[str]:
    """The names of the steps that form or wait for a circle, in order; nothing when every step can start some day."""
    known = {step.step_id for step in steps}
    waiting = {step.step_id: {one for one in step.depends_on if one in known} for step in steps}
    while free := [step_id for step_id, needs in waiting.items() if not needs]:
        for step_id in free:
            del waiting[step_id]
        for needs in waiting.values():
            needs.difference_update(free)
    return [step.name for step in steps if step.step_id in waiting]


def renamed(plan: Plan, wanted: str, name: str) -> Plan:
    """Another name for a step, or for the plan when the step is `0`."""
    if not name.strip():
        raise UsageError("plan.edit_usage")
    new = plan.copied()
    if wanted == "0":
        new.name = name.strip()
    else:
        _step(new, wanted).name = name.strip()
    return new


def moved(plan: Plan, wanted: str, place: str) -> Plan:
    """A step at another place; a step never stands before one it depends on."""
    new = plan.copied()
    step = _step(new, wanted)
    if not place.isdecimal() or not 1 <= int(place) <= len(new.steps):
        raise UsageError("plan.no_place", place=place, steps=len(new.steps))
    new.steps.remove(step)
    new.steps.insert(int(place) - 1, step)
    at = {one.step_id: number for number, one in enumerate(new.steps)}
    for one in new.steps:
        for need in one.depends_on:
            if at[need] > at[one.step_id]:
                raise UsageError("plan.needs_before", step=one.name, need=new.steps[at[need]].name)
    return new


def reopened(plan: Plan, wanted: str) -> Plan:
    """The plan with a step that is to be done anew."""
    new = plan.copied()
    _step(new, wanted).reopen()
    new.status = "in_progress" if new.status == "completed" else new.status
    return new


def without(plan: Plan, wanted: str) -> Plan:
    """The plan without a step; what depended on it depends on what it depended on."""
    new = plan.copied()
    step = _step(new, wanted)
    if step.status != "pending":
        raise UsageError("plan.step_begun", step=step.name)
    new.steps.remove(step)
    for one in new.steps:
        if step.step_id in one.depends_on:
            one.depends_on = list(dict.fromkeys([n for n in one.depends_on if n != step.step_id] + step.depends_on))
    assert not circular(new.steps)
    return new


def _step(plan: Plan, wanted: str) -> Step:
    step = plan.step(wanted)
    if step is None:
        raise UsageError("plan.no_step", step=wanted)
    return step


ANYTHING = "*"
"""Stands for files that cannot be told beforehand: a command may touch any."""


def startable(plan: Plan, wanted: Collection[str], busy: Collection[str] = ()) -> list[Step]:
    """The wanted steps that are not over, not busy, and whose dependencies are completed and shown."""
    settled = {step.step_id for step in plan.steps if step.settled}
    return [
        step
        for step in plan.steps
        if step.step_id in wanted
        and step.step_id not in busy
        and step.status in ("pending", "in_progress")
        and settled.issuperset(step.depends_on)
    ]


def touched(step: Step, named: bool = False) -> frozenset[str]:
    """The files that a step's open tasks may change; with `named` only those that can be told."""
    names: set[str] = set()
    for task in step.tasks:
        if task.status not in ("completed", "cancelled", "failed") and task.effect != "read":
            names.update(task.touches or ([] if named else [ANYTHING]))
    return frozenset(names)


def has_none_left(step: Step) -> bool:
    """Whether it needs (other) tasks: it has none, or it was opened again with all of them done."""
    return not step.tasks or (step.status == "pending" and all(task.status == "completed" for task in step.tasks))


def held(step: Step) -> frozenset[str]:
    """The files that a step has changed so far."""
    return frozenset(path for task in step.tasks if task.status == "completed" for path in task.touches)


def next_task(step: Step) -> Task | None:
    """The next open task; nothing when all are done, or when one has failed."""
    for task in step.tasks:
        if task.status in ("pending", "interrupted", "in_progress"):
            return task
        if task.status == "failed":
            return None
    return None


def clash(one: frozenset[str], other: frozenset[str]) -> bool:
    """Says whether both may change the same file. A folder stands for all that lies in it."""
    if ANYTHING in one or ANYTHING in other:
        return bool(one and other)
    return any(lies_in(path, place) or lies_in(place, path) for path in one for place in other)


def lies_in(path: str, folder: str) -> bool:
    """Says whether a path is this one or lies below it. Both are plain and relative to the work folder, which is `.`"""
    inside = not f"{path}/".startswith("../")
    return (folder == "." and inside) or f"{path}/".startswith(f"{folder}/")
