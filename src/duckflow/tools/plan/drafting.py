"""Drafts of plans and tasks by the model. The model is asked with a procedure (a prompt for one purpose); an unusable
draft is sent back with the problem at most twice."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from duckflow.errors import ReplyUnusable, ToolError
from duckflow.forms.calls import listed
from duckflow.forms.schema import strict_schema, tasks_schema
from duckflow.i18n.template import note, one_line, render
from duckflow.state.action import LIST_FILES, Operation
from duckflow.state.agent import AgentState
from duckflow.state.data import shorten
from duckflow.state.message import last_request
from duckflow.state.plan import Plan, Step, Task
from duckflow.tools.plan.folder import WorkFolder, facts, listing
from duckflow.tools.plan.ports import Think

if TYPE_CHECKING:
    from duckflow.tools.plan.plan_talk import PlanTalk
    from duckflow.tools.plan.step_pieces import FilePiece

T = TypeVar("T")
MAKES_FOLDER = r"\bmkdir\s+(?!-)"
SENT_BACK = 2
CONVERSATION = 1500
RECENT = 6
WISHES = 6000


def usable_in_tasks(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Returns the operations that a task may use: tasks do things, they do not talk or plan."""
    return tuple(operation for operation in operations if operation.in_tasks)


async def drafted(think: Think, procedure: str, values: Mapping[str, str], schema: Any, read: Callable[[str], T]) -> T:
    """Returns the draft that the model writes. `procedure` names the prompt, `values` fill it, and `read` checks the
    reply. Raises a ToolError if the draft stays unusable."""
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
                ) from None
            failures.append((reply, problem.correction))


def taken(read: Callable[[Any], T], draft: Any) -> T:
    """Reads the draft that the model sent with its call. Raises a ToolError if the draft is wrong."""
    try:
        return read(draft)
    except ReplyUnusable as problem:
        raise ToolError(f"this plan cannot be used: {problem.correction}", "plan.unusable") from None


class Revision(NamedTuple):
    """A change of a plan: in words, as new headings, or as new steps."""

    text: str
    goal: str = ""
    name: str = ""
    steps: Any = None

    def new_headings(self) -> dict[str, str]:
        headings = {"goal": self.goal.strip(), "name": shorten(self.name, 100)}
        return {field: text for field, text in headings.items() if text}


class Drafter:
    """Gets plans and tasks drafted by the model. The request quotes the state and the work folder."""

    def __init__(
        self,
        state: AgentState,
        think: Think,
        folder: WorkFolder,
        operations: Callable[[], Sequence[Operation]],
        offered: Callable[[], Awaitable[tuple[Operation, ...]]],
        room: int,
    ) -> None:
        """`operations` returns the operations that a task may use now. `offered` returns their descriptions for the
        model that drafts. `room` is the number of characters of files that are quoted to a step."""
        self.state = state
        self.think = think
        self.folder = folder
        self.operations = operations
        self._offered = offered
        self._room = room

    async def plan(self, goal: str, draft_in_call: dict[str, Any] | None = None) -> Plan:
        """Returns the plan that came with the call, or has one drafted."""
        from duckflow.tools.plan.drafts import PlanDraft, plan_from
        from duckflow.tools.plan.task_check import with_tests

        def read(draft: Any) -> Plan:
            return plan_from(draft, goal)

        if draft_in_call:
            plan = taken(read, draft_in_call)
        else:
            prompt_values = {
                "goal": goal,
                "request": last_request(self.state.messages)[:CONVERSATION],
                "facts": facts(self.folder),
            }
            plan = await drafted(self.think, "plan", prompt_values, strict_schema(PlanDraft.model_json_schema()), read)
        return with_tests(plan, self.folder, self.state.language)

    async def revise(self, plan: Plan, revision: Revision) -> Plan:
        """Returns the plan with the changes of the call. Changes that are described only in words are drafted by the
        model."""
        from duckflow.tools.plan.drafts import RevisedPlanDraft, revised_from
        from duckflow.tools.plan.task_check import still_with_tests

        def read(draft: Any) -> Plan:
            return revised_from(draft, plan)

        plan = plan.model_copy(update=revision.new_headings())
        if revision.steps:
            revised_plan = taken(read, {"steps": revision.steps})
        else:
            prompt_values = {"plan": as_listed(plan), "facts": facts(self.folder), "changes": revision.text}
            schema = strict_schema(RevisedPlanDraft.model_json_schema())
            revised_plan = await drafted(self.think, "revise", prompt_values, schema, read)
        return still_with_tests(revised_plan, plan, revision.text, self.state.language)

    async def tasks(self, plan: Plan, step: Step, changes: str = "") -> list[Task]:
        """Returns the step's tasks. Completed tasks stay; all other tasks are drafted anew, from the step's own
        context."""
        return (await self._drafted_tasks(plan, step, changes, answers=False))[0]

    async def tasks_for(self, plan: Plan, step: Step, words: str) -> tuple[list[Task], str]:
        """Drafts tasks that take up what the user has said to the step. Returns them with the model's answer to the
        user."""
        return await self._drafted_tasks(plan, step, words, answers=bool(words))

    async def _drafted_tasks(self, plan: Plan, step: Step, changes: str, answers: bool) -> tuple[list[Task], str]:
        from duckflow.tools.plan.plan_talk import talk_of, wishes
        from duckflow.tools.plan.step_context import failures

        operations = await self._offered()
        inline = any(map(_takes_text, operations))
        language, talk = self.state.language, talk_of(self.state, plan, step)
        quoted_files = self._quoted(plan, step, talk, self.pieces(plan, step)) if inline else []
        prompt_values = self._told_of(plan, step) | {
            # A small model cannot hand the user's words on to its job.
            "conversation": wishes(talk, CONVERSATION, all_later=True),
            "changes": changes,
            "answer": note(language, "tasks_answer") if answers else "",
            "operations": listed(operations, language),
            "texts": note(language, "texts_inline" if inline else "texts_asked"),
            "material": "\n\n".join([*failures(step, language), *quoted_files]),
        }
        tasks, answer = await drafted(
            self.think,
            "tasks",
            prompt_values,
            tasks_schema(operations, answers),
            lambda text: self._tasks_from(text, operations, inline, answers),
        )
        return [task for task in step.tasks if task.status == "completed"] + tasks, answer

    async def writes_texts(self) -> bool:
        """Says whether tasks come with the texts of their files. If not, the texts are requested when the task runs."""
        return any(map(_takes_text, await self._offered()))

    def step_request(self, plan: Plan, step: Step) -> str:
        """Returns the request to the agent that carries the step out, with the files it builds on."""
        from duckflow.tools.plan.plan_talk import findings, said_to_job, talk_of, wishes
        from duckflow.tools.plan.step_context import failures

        language, files, talk = self.state.language, self.pieces(plan, step), talk_of(self.state, plan, step)
        prompt_values = self._told_of(plan, step)
        for name in ("failed", "files"):
            prompt_values[name] = one_line(prompt_values[name])
        parallel_steps = [
            other for other in plan.steps if other.status == "in_progress" and other.step_id != step.step_id
        ]
        prompt_values |= {
            "beside": "; ".join(f"{other.name} ({other.work})" for other in parallel_steps),
            "conversation": wishes(talk, WISHES),
            "told": said_to_job(plan, step, language, WISHES),
            "found": findings(talk),
            "constraints": "; ".join(self.state.five.constraints),
            "quoted": note(language, "step_quoted") if files else "",
        }
        material = [*failures(step, language), *self._quoted(plan, step, talk, files)]
        return "\n\n".join([*material, render(language, "step_agent", **prompt_values)])

    def pieces(self, plan: Plan, step: Step) -> "list[FilePiece]":
        """Returns the files that are quoted to the step, as they are now."""
        from duckflow.tools.plan.plan_talk import talk_of
        from duckflow.tools.plan.step_pieces import pieces

        return pieces(self.state, plan, step, talk_of(self.state, plan, step), self.folder, self._room)

    def _quoted(self, plan: Plan, step: Step, talk: "PlanTalk", files: "Sequence[FilePiece]") -> list[str]:
        """Quotes the files, and in the remaining room the results of searches and commands of the conversation."""
        from duckflow.tools.plan.step_context import results

        room_left = self._room - sum(len(piece.text) for piece in files)
        seen_results = results(self.state, plan, step, talk, self.folder, room_left, files)
        return [material.quoted(self.state.language) for material in (*files, *seen_results)]

    def _told_of(self, plan: Plan, step: Step) -> dict[str, str]:
        """Returns the values for the prompt that describe a step."""
        from duckflow.tools.plan.step_context import left_behind

        return {
            "goal": plan.goal,
            "step": step.name,
            "description": step.description,
            "own_files": ", ".join(step.files),
            "success": step.success,
            "before": left_behind(plan, step, self.state.language),
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
        operations_by_name = {operation.name: operation for operation in operations}
        tasks: list[Task] = []
        for task in draft.tasks:
            name = task.operation.strip()
            operation = operations_by_name.get(name)
            if operation is None:
                tasks.append(Task(operation=name, args=task.args))
                continue
            # Otherwise a long text is requested when the task runs, so a text that the model gave too early is dropped.
            body_field = "" if inline else operation.body
            args = {key: value for key, value in task.args.items() if value is not None and key != body_field}
            if isinstance(path := args.get("path"), str):
                if relative_path := _relative(path, self.state.folder):
                    args["path"] = relative_path
                elif operation.expects and (list_operation := operations_by_name.get(LIST_FILES)):
                    # A small model often wants to make the work folder first. It exists, so the task becomes a mere
                    # look.
                    operation, args = list_operation, {}
            if isinstance(command := args.get("command"), str):
                # A task may be run again, so a folder that exists already must not be a failure.
                args["command"] = re.sub(MAKES_FOLDER, "mkdir -p ", command)
            tasks.append(Task.of(operation, args, task.reasoning))
        if problems := task_problems(tasks, operations, self.folder.exists):
            raise ReplyUnusable("; ".join(problems))
        return tasks, draft.answer.strip()


def _takes_text(operation: Operation) -> bool:
    return bool(operation.body) and operation.body in operation.parameters.get("properties", {})


def _relative(path: str, folder: str) -> str:
    """Returns a path relative to the folder; an empty text for the folder itself."""
    path = path.strip().rstrip("/")
    if path in (".", folder.rstrip("/")):
        return ""
    return path.removeprefix(f"{folder.rstrip('/')}/")


def as_listed(plan: Plan, known: bool = False) -> str:
    """Returns the plan as numbered lines for the model. If the model has just written the plan, `known` leaves out the
    texts that it knows."""
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    lines = [f"{plan.plan_id} {plan.name!r} ({plan.status})" + (f", goal: {plan.goal}" if not known else "")]
    for number, step in enumerate(plan.steps, 1):
        needs_text = ", ".join(str(numbers.get(need, need)) for need in step.depends_on)
        status_text = f"{step.status}, unverified" if step.unverified else step.status
        lines.append(
            f"{number}. {step.name} [{status_text}] {step.step_id}"
            + (f" after {needs_text}" if needs_text else "")
            + (f", tasks {step.tasks_done()} of {len(step.tasks)}" if step.tasks else "")
            + (f": {step.description}" if step.description and not known else "")
            + (f" (done when: {step.success})" if step.success else "")
        )
    return "\n".join([*lines, *(f"risk: {risk}" for risk in plan.risks if not known)])


def conversation(state: AgentState) -> str:
    """Returns the latest messages of the user, shortened."""
    messages = [shorten(message.text, 200) for message in state.messages if message.role == "user"]
    return shorten(" / ".join(messages[-RECENT:]), CONVERSATION)
