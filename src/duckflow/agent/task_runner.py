"""Runs one task through the dispatcher, in its time."""

from duckflow.agent.crew import Crew
from duckflow.agent.dispatcher import Dispatched
from duckflow.agent.job_pace import JobPace
from duckflow.agent.task_clock import at_most
from duckflow.errors import DuckflowError
from duckflow.events.types import MessageAdded
from duckflow.llm.decision import Reading
from duckflow.state.action import Action, Decision, Operation, TaskProfile
from duckflow.state.evidence import succeeded
from duckflow.state.message import Message
from duckflow.state.noun import shorten
from duckflow.state.phase import Phase
from duckflow.state.plan import Plan, Step, Task
from duckflow.tools.plan.proof import made_by

READ = "file_ops.read_file"
RESULT = 400
LOOKED_AT = 3


class TaskRunner:
    """Before a text is written, the model is shown what it builds on: the file itself and what this plan has made."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._looked_at: set[str] = set()
        self._explained: set[str] = set()

    def changes(self, task: Task) -> bool:
        operation = self._operation(task)
        return operation is None or operation.changes

    async def run(self, plan: Plan, step: Step, task: Task, pace: JobPace) -> tuple[bool, str]:
        """Whether it succeeded, and what came of it."""
        action = Action(operation=task.operation, args=task.args, reasoning=task.reasoning.strip() or step.name)
        seconds = self._crew.settings.task_seconds
        try:
            async with at_most(seconds):
                if (operation := self._operation(task)) and operation.body:
                    self._explain(plan, step)
                    await self._look(plan, task)
                done = await self._dispatch(action, step)
        except TimeoutError:
            return False, f"took longer than {seconds:g} s and was ended"
        except DuckflowError as problem:
            return False, f"{problem}"
        for result in done.results:
            pace.saw(action, result)
            self._looked_at.difference_update(result.changed)
        ok = bool(done.results) and not done.stop and all(map(succeeded, done.results))
        return ok, shorten(done.results[-1].for_model, RESULT) if done.results else "nothing was run"

    def _explain(self, plan: Plan, step: Step) -> None:
        """Once a step: what the texts of this job are for. Only the job's own history holds it."""
        if step.step_id in self._explained:
            return
        self._explained.add(step.step_id)
        text = f"Goal: {plan.goal}\nNow: {step.name}: {step.description}\nDone when: {step.success}"
        self._crew.session.emit(MessageAdded(message=Message(role="system", text=text)))

    async def _look(self, plan: Plan, task: Task) -> None:
        made = [path for step in plan.steps for path in made_by(step)]
        wanted = dict.fromkeys([*made[-LOOKED_AT:], str(task.args.get("path", ""))])
        for path in wanted:
            if path and path not in self._looked_at and self._crew.table.folder.exists(path):
                reading = Action(operation=READ, args={"path": path}, reasoning="the next text builds on it")
                await self._dispatch(reading, None)
                self._looked_at.add(path)

    async def _dispatch(self, action: Action, step: Step | None) -> Dispatched:
        return await self._crew.dispatcher.run(reading_of(action, step.name if step else action.reasoning))

    def _operation(self, task: Task) -> Operation | None:
        return next((one for one in self._crew.table.operations() if one.name == task.operation), None)


def reading_of(action: Action, rationale: str) -> Reading:
    """An action that follows from what was decided before, as if a model had just said it."""
    decision = Decision(
        rationale=rationale,
        goal_consistency="yes",
        constraint_check="yes",
        confidence=1.0,
        task_profile=TaskProfile.MULTI_STEP_TASK,
        step=Phase.EXECUTION,
        next_step="continue",
        prompt_pattern="base_main",
        actions=[action],
    )
    return Reading(decision)
