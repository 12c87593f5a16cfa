"""One task of a job: shown what it builds on, run in its time through the dispatcher."""

from collections.abc import Iterable
from dataclasses import replace

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatched, Dispatcher
from duckflow.agent.settings import AgentSettings
from duckflow.errors import DuckflowError
from duckflow.events.types import MessageAdded, Noticed
from duckflow.events.work import TasksPlanned
from duckflow.forms.form import Reading
from duckflow.i18n.template import note, render
from duckflow.state.action import READ_FILE, Action, Decision, Operation, TaskProfile
from duckflow.state.message import Message
from duckflow.state.phase import Phase
from duckflow.state.phrase import said
from duckflow.state.plan import Plan, Step, Task, TaskList
from duckflow.tools.plan.drafting import Drafter
from duckflow.tools.plan.folder import made_by
from duckflow.tools.plan.step_context import files_of, left_behind
from duckflow.tools.shell.causes import telling_part

RESULT = 800
LOOKED_AT = 3


class TaskRunner:
    """Runs one task, in its time. Before a text is written, the model is shown what it builds on: the file itself and
    what this plan has made."""

    def __init__(self, actor: Actor, dispatcher: Dispatcher, drafter: Drafter, settings: AgentSettings) -> None:
        self._actor = actor
        self._dispatcher = dispatcher
        self._drafter = drafter
        self._seconds = settings.task_seconds
        self._looked_at: set[tuple[str, str]] = set()
        """By the step that has them in its context."""
        self._explained: set[str] = set()

    def changes(self, task: Task) -> bool:
        operation = self._operation(task.operation)
        return operation is None or operation.changes

    def actor_of(self, step: Step) -> Actor:
        """Who acts for the step."""
        return replace(self._actor, step_id=step.step_id)

    async def dispatch(self, reading: Reading, actor: Actor) -> Dispatched:
        """What is no task."""
        return await self._dispatcher.run(reading, actor)

    async def run(self, plan: Plan, step: Step, action: Action, actor: Actor, why: str) -> tuple[Dispatched, str]:
        """What came of it, and that in words for the model."""
        language = self._drafter.state.language
        try:
            async with replace(actor, step_id=step.step_id).at_most(self._seconds) as actor:
                operation = self._operation(action.operation)
                if operation and operation.body and operation.body not in action.args:
                    self._explain(plan, step, actor)
                    await self._look(plan, step, action, actor)
                done = await self._dispatcher.run(_reading(action, why), actor)
        except TimeoutError:
            return Dispatched(), note(language, "task_too_long", seconds=f"{self._seconds:g}")
        except DuckflowError as problem:
            return Dispatched(), f"{problem}"
        for result in done.results:
            self._looked_at -= {(step_id, path) for step_id, path in self._looked_at if path in result.changed}
        return done, telling_part(done.results[-1].for_model, RESULT) if done.results else note(
            language, "task_not_run"
        )

    async def put_differently(self, plan: Plan, step: Step, task: Task, action: Action, wish: str) -> Action:
        """A text is written anew; other arguments are drafted anew. Where that fails it stays as it is."""
        language = self._drafter.state.language
        if (operation := self._operation(task.operation)) and operation.body:
            purpose = note(language, "task_wish", reasoning=action.reasoning, wish=wish)
            args = {name: value for name, value in action.args.items() if name != operation.body}
            return action.model_copy(update={"reasoning": purpose, "args": args})
        told = note(language, "task_instead", task=f"{task.operation} {task.args}", wish=wish)
        try:
            drafted = (await self._drafter.tasks(plan, step.model_copy(update={"task_list": TaskList()}), told))[0]
        except DuckflowError as problem:
            self._actor.emit(Noticed(what=said(problem)))
            return action
        put = {"operation": drafted.operation, "args": drafted.args, "status": "in_progress"}
        tasks = tuple(one.model_copy(update=put) if one.task_id == task.task_id else one for one in step.tasks)
        self._actor.emit(TasksPlanned(plan_id=plan.plan_id, step_id=step.step_id, tasks=tasks))
        return Action(operation=drafted.operation, args=drafted.args, reasoning=drafted.reasoning or action.reasoning)

    def _explain(self, plan: Plan, step: Step, actor: Actor) -> None:
        """Once a step: what its texts are for. Only the step's own history holds it."""
        if step.step_id in self._explained:
            return
        self._explained.add(step.step_id)
        values = {"goal": plan.goal, "step": step.name, "description": step.description, "success": step.success}
        values |= {"before": left_behind(plan, step), "constraints": "; ".join(self._drafter.state.five.constraints)}
        text = render(self._drafter.state.language, "task_purpose", **values)
        actor.emit(MessageAdded(message=Message(role="system", text=text)))

    async def _look(self, plan: Plan, step: Step, action: Action, actor: Actor) -> None:
        made = [path for one in plan.steps for path in made_by(one)]
        await self._read([*made[-LOOKED_AT:], str(action.args.get("path", ""))], step, actor)

    async def read_files(self, plan: Plan, step: Step) -> None:
        """Before tasks are drafted with their texts: what they may change counts as read as it is now, and is not
        overwritten when somebody changes it meanwhile."""
        if await self._drafter.writes_texts():
            await self._read(files_of(plan, step), step, self.actor_of(step))

    async def _read(self, paths: Iterable[str], step: Step, actor: Actor) -> None:
        for path in dict.fromkeys(paths):
            if path and (step.step_id, path) not in self._looked_at and self._drafter.folder.exists(path):
                why = note(self._drafter.state.language, "task_builds_on")
                look = Action(operation=READ_FILE, args={"path": path}, reasoning=why)
                await self._dispatcher.run(_reading(look, why), actor)
                self._looked_at.add((step.step_id, path))

    def _operation(self, name: str) -> Operation | None:
        return next((one for one in self._drafter.operations() if one.name == name), None)


def _reading(action: Action, why: str) -> Reading:
    return Reading(Decision.made_up(why, [action], TaskProfile.MULTI_STEP_TASK, Phase.EXECUTION))
