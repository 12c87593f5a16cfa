"""Drafts by the model: asked for with a procedure, checked, and sent back with the exact problem at most twice."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from duckflow.errors import ReplyUnusable, ToolError
from duckflow.forms.schema import listed, strict_schema, tasks_schema
from duckflow.i18n.template import note, one_line, render
from duckflow.state.action import LIST_FILES, Operation
from duckflow.state.agent import AgentState
from duckflow.state.message import last_request
from duckflow.state.noun import shorten
from duckflow.state.plan import Plan, Step, Task
from duckflow.tools.plan.folder import facts, listing
from duckflow.tools.plan.ports import Folder, Think

if TYPE_CHECKING:
    from duckflow.tools.plan.step_context import FilePiece

T = TypeVar("T")
MAKES_FOLDER = r"\bmkdir\s+(?!-)"
SENT_BACK = 2
CONVERSATION = 1500
RECENT = 6
WISHES = 6000


def usable_in_tasks(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Tasks do things; they do not talk and do not plan."""
    return tuple(operation for operation in operations if operation.in_tasks)


async def drafted(think: Think, procedure: str, values: Mapping[str, str], schema: Any, read: Callable[[str], T]) -> T:
    """What the model drafts; a draft that stays unusable is a ToolError."""
    failures: list[tuple[str, str]] = []
    while True:
        reply = await think(procedure, values, schema, failures)
        try:
            return read(reply)
        except ReplyUnusable as problem:
            if len(failures) == SENT_BACK:
                raise ToolError(
                    f"no usable draft after {SENT_BACK + 1} tries: {problem.correction}",
                    "plan.unusable",
                    reason=problem.correction,
                ) from None
            failures.append((reply, problem.correction))


def taken(read: Callable[[Any], T], draft: Any) -> T:
    """What came with the call, drafted by the model in the context it has; what is wrong with it is a ToolError."""
    try:
        return read(draft)
    except ReplyUnusable as problem:
        reason = problem.correction
        raise ToolError(f"this plan cannot be used: {reason}", "plan.unusable", reason=reason) from None


class Revision(NamedTuple):
    """A change of a plan: in words, by its headings, by its steps."""

    text: str
    goal: str = ""
    name: str = ""
    steps: Any = None

    def new_headings(self) -> dict[str, str]:
        headings = {"goal": self.goal.strip(), "name": shorten(self.name, 100)}
        return {field: text for field, text in headings.items() if text}


class Drafter:
    """Has plans and tasks drafted from what the state and the work folder tell."""

    def __init__(
        self,
        state: AgentState,
        think: Think,
        folder: Folder,
        operations: Callable[[], Sequence[Operation]],
        offered: Callable[[], Awaitable[tuple[Operation, ...]]],
        room: int,
    ) -> None:
        """`operations`: those a task may use now. `offered`: those as the model is told of them; it finds the model.
        `room`: so many characters of files are quoted to a step."""
        self.state = state
        self.think = think
        self.folder = folder
        self.operations = operations
        self._offered = offered
        self._room = room

    async def plan(self, goal: str, given: dict[str, Any] | None = None) -> Plan:
        """The plan that came with the call, or one that is asked for."""
        from duckflow.tools.plan.drafts import PlanDraft, plan_from
        from duckflow.tools.plan.task_check import with_tests

        def read(draft: Any) -> Plan:
            return plan_from(draft, goal)

        if given:
            plan = taken(read, given)
        else:
            values = {
                "goal": goal,
                "request": last_request(self.state.messages)[:CONVERSATION],
                "facts": facts(self.folder),
            }
            plan = await drafted(self.think, "plan", values, strict_schema(PlanDraft.model_json_schema()), read)
        return with_tests(plan, self.folder, self.state.language)

    async def revise(self, plan: Plan, revision: Revision) -> Plan:
        """Gives the plan as the call has it; what the call describes only in words is drafted."""
        from duckflow.tools.plan.drafts import RevisedPlanDraft, revised_from
        from duckflow.tools.plan.task_check import still_with_tests

        def read(draft: Any) -> Plan:
            return revised_from(draft, plan)

        plan = plan.model_copy(update=revision.new_headings())
        if revision.steps:
            revised = taken(read, {"steps": revision.steps})
        else:
            values = {"plan": as_listed(plan), "facts": facts(self.folder), "changes": revision.text}
            schema = strict_schema(RevisedPlanDraft.model_json_schema())
            revised = await drafted(self.think, "revise", values, schema, read)
        return still_with_tests(revised, plan, revision.text, self.state.language)

    async def tasks(self, plan: Plan, step: Step, changes: str = "") -> list[Task]:
        """The step's tasks: those done stay, the rest is drafted anew, from the step's own context."""
        return (await self._drafted_tasks(plan, step, changes, answers=False))[0]

    async def tasks_for(self, plan: Plan, step: Step, words: str) -> tuple[list[Task], str]:
        """The same with what the user has said to the step, and what the model says to that."""
        return await self._drafted_tasks(plan, step, words, answers=bool(words))

    async def _drafted_tasks(self, plan: Plan, step: Step, changes: str, answers: bool) -> tuple[list[Task], str]:
        from duckflow.tools.plan.step_context import failures, wishes

        operations = await self._offered()
        inline = any(map(_takes_text, operations))
        language = self.state.language
        material = self._quoted(plan, step, self.pieces(plan, step)) if inline else []
        values = self._told_of(plan, step) | {
            "conversation": wishes(self.state, plan, CONVERSATION),
            "changes": changes,
            "answer": note(language, "tasks_answer") if answers else "",
            "operations": listed(operations, language),
            "texts": note(language, "texts_inline" if inline else "texts_asked"),
            "material": "\n\n".join([*failures(step, language), *material]),
        }
        tasks, answer = await drafted(
            self.think,
            "tasks",
            values,
            tasks_schema(operations, answers),
            lambda text: self._tasks_from(text, operations, inline, answers),
        )
        return [task for task in step.tasks if task.status == "completed"] + tasks, answer

    async def writes_texts(self) -> bool:
        """Whether tasks come with the texts of their files; else those are asked for when the task runs."""
        return any(map(_takes_text, await self._offered()))

    def step_request(self, plan: Plan, step: Step) -> str:
        """What an agent is asked that carries the step out, with the files it builds on."""
        from duckflow.tools.plan.step_context import answers_given, failures, wishes

        language, files = self.state.language, self.pieces(plan, step)
        values = self._told_of(plan, step)
        for name in ("failed", "files"):
            values[name] = one_line(values[name])
        beside = [other for other in plan.steps if other.status == "in_progress" and other.step_id != step.step_id]
        values |= {
            "beside": "; ".join(f"{other.name} ({other.description})" for other in beside),
            "conversation": wishes(self.state, plan, WISHES),
            "found": answers_given(self.state),
            "constraints": "; ".join(self.state.five.constraints),
            "quoted": note(language, "step_quoted") if files else "",
        }
        material = [*failures(step, language), *self._quoted(plan, step, files)]
        return "\n\n".join([*material, render(language, "step_agent", **values)])

    def pieces(self, plan: Plan, step: Step) -> "list[FilePiece]":
        """The files that are quoted to the step, as they are now."""
        from duckflow.tools.plan.step_context import pieces

        return pieces(self.state, plan, step, self.folder, self._room)

    def _quoted(self, plan: Plan, step: Step, files: "Sequence[FilePiece]") -> list[str]:
        """The files, and in the room that they leave what the conversation has searched and run."""
        from duckflow.tools.plan.step_context import results

        room = self._room - sum(len(piece.text) for piece in files)
        seen = results(self.state, plan, step, self.folder, room)
        return [material.quoted(self.state.language) for material in (*files, *seen)]

    def _told_of(self, plan: Plan, step: Step) -> dict[str, str]:
        """The context of a step."""
        from duckflow.tools.plan.step_context import left_behind

        return {
            "goal": plan.goal,
            "step": step.name,
            "description": step.description,
            "success": step.success,
            "before": left_behind(plan, step),
            "said": " / ".join(step.open_words),
            "done": "; ".join(task.line for task in step.tasks if task.status == "completed"),
            "failed": "; ".join(task.line for task in step.tasks if task.status == "failed"),
            "files": listing(self.folder),
            "facts": facts(self.folder),
        }

    def _tasks_from(
        self, text: str, operations: tuple[Operation, ...], inline: bool, answers: bool
    ) -> tuple[list[Task], str]:
        from duckflow.tools.plan.drafts import TasksDraft, read_draft
        from duckflow.tools.plan.task_check import task_problems

        draft = read_draft(text, TasksDraft)
        if answers and not draft.answer.strip():
            raise ReplyUnusable(note(self.state.language, "tasks_answer"))
        if not (draft.tasks or answers):
            raise ReplyUnusable("tasks: at least one is needed")
        known = {operation.name: operation for operation in operations}
        tasks: list[Task] = []
        for one in draft.tasks:
            name = one.operation.strip()
            operation = known.get(name)
            if operation is None:
                tasks.append(Task(operation=name, args=one.args))
                continue
            # Elsewhere long text is asked for when the task runs, even if the model was too eager.
            body = "" if inline else operation.body
            args = {key: value for key, value in one.args.items() if value is not None and key != body}
            if isinstance(path := args.get("path"), str):
                if relative := _relative(path, self.state.folder):
                    args["path"] = relative
                elif operation.expects and (look := known.get(LIST_FILES)):
                    # A small model likes to make the work folder first: it is there, so a look is all there is to do.
                    operation, args = look, {}
            if isinstance(command := args.get("command"), str):
                # A list may be run again: a folder that is there already is no failure.
                args["command"] = re.sub(MAKES_FOLDER, "mkdir -p ", command)
            tasks.append(Task.of(operation, args, one.reasoning))
        if problems := task_problems(tasks, operations, self.folder.exists):
            raise ReplyUnusable("; ".join(problems))
        return tasks, draft.answer.strip()


def _takes_text(operation: Operation) -> bool:
    return bool(operation.body) and operation.body in operation.parameters.get("properties", {})


def _relative(path: str, folder: str) -> str:
    """A path as the folder sees it; the folder itself is nothing."""
    path = path.strip().rstrip("/")
    if path in (".", folder.rstrip("/")):
        return ""
    return path.removeprefix(f"{folder.rstrip('/')}/")


def as_listed(plan: Plan, known: bool = False) -> str:
    """The plan as numbered lines, for the model; `known`: without what it has just written itself."""
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    lines = [f"{plan.plan_id} {plan.name!r} ({plan.status})" + (f", goal: {plan.goal}" if not known else "")]
    for number, step in enumerate(plan.steps, 1):
        needs = ", ".join(str(numbers.get(need, need)) for need in step.depends_on)
        state = f"{step.status}, unverified" if step.unverified else step.status
        lines.append(
            f"{number}. {step.name} [{state}] {step.step_id}"
            + (f" after {needs}" if needs else "")
            + (f", tasks {step.tasks_done()} of {len(step.tasks)}" if step.tasks else "")
            + (f": {step.description}" if step.description and not known else "")
            + (f" (done when: {step.success})" if step.success else "")
        )
    return "\n".join([*lines, *(f"risk: {risk}" for risk in plan.risks if not known)])


def conversation(state: AgentState) -> str:
    """What the user said last, in short."""
    said = [shorten(message.text, 200) for message in state.messages if message.role == "user"]
    return shorten(" / ".join(said[-RECENT:]), CONVERSATION)
