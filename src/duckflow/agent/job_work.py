"""The work of one job: its steps as their dependencies allow, their tasks in order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection

from duckflow.agent.crew import Crew
from duckflow.agent.job_pace import JobPace
from duckflow.agent.task_runner import TaskRunner
from duckflow.errors import DuckflowError
from duckflow.events.types import Noticed
from duckflow.events.work import StepChanged, TaskChanged, TasksPlanned
from duckflow.pacemaker.vitals import Signal
from duckflow.state.phrase import Phrase, said, say
from duckflow.state.plan import Plan, Step, StepStatus, Task, TaskStatus
from duckflow.state.progress import task_line
from duckflow.state.question import Choice, Question
from duckflow.state.schedule import next_task, side_by_side, startable
from duckflow.tools.plan.drafting import draft_tasks
from duckflow.tools.plan.proof import proof

log = logging.getLogger(__name__)

AGAIN = (Choice(key="yes", label=say("job.again.yes")), Choice(key="no", label=say("job.again.no")))


class JobWork:
    """Looks at the state before every task, so that what changed meanwhile counts at once."""

    def __init__(
        self, crew: Crew, plan_id: str, step_ids: Collection[str], clearance: Callable[[], Awaitable[None]]
    ) -> None:
        self._crew = crew
        self._plan_id = plan_id
        self._step_ids = step_ids
        self._clearance = clearance
        self._pace = JobPace(crew)
        self._runner = TaskRunner(crew)

    async def run(self) -> bool:
        """Whether all its steps are completed. After a failure nothing new is started; what runs beside it ends."""
        running: dict[asyncio.Task[bool], str] = {}
        going_well = True
        try:
            while True:
                for step in await self._ready(list(running.values())) if going_well else ():
                    running[asyncio.create_task(self._run_step(step.step_id))] = step.step_id
                if not running:
                    break
                over, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for one in over:
                    del running[one]
                    going_well &= one.result()
        finally:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        return all(step.status == "completed" for step in self._plan.steps if step.step_id in self._step_ids)

    @property
    def _plan(self) -> Plan:
        return self._crew.session.state.plans[self._plan_id]

    def _step(self, step_id: str) -> Step | None:
        return next((step for step in self._plan.steps if step.step_id == step_id), None)

    async def _ready(self, busy: list[str]) -> list[Step]:
        """The steps to start now. One without tasks gets them first: only then is known which files it touches."""
        limit = self._crew.settings.steps_at_once
        for step in startable(self._plan, self._step_ids, busy)[: max(0, limit - len(busy))]:
            if not step.tasks and not await self._plan_tasks(step):
                return []
        steps = [step for step in startable(self._plan, self._step_ids, busy) if step.tasks]
        return side_by_side(steps, [step for step in self._plan.steps if step.step_id in busy], limit)

    async def _plan_tasks(self, step: Step) -> bool:
        try:
            await self._clearance()
            tasks = await draft_tasks(self._crew.table, self._plan, step)
        except DuckflowError as problem:
            log.info("no tasks for %s: %s", step.name, problem)
            self._mark(step.step_id, "failed")
            self._crew.session.emit(Noticed(what=say("task.not_planned", step=step.name)))
            self._crew.session.emit(Noticed(what=said(problem)))
            return False
        self._crew.session.emit(TasksPlanned(plan_id=self._plan_id, step_id=step.step_id, tasks=tuple(tasks)))
        return True

    async def _run_step(self, step_id: str) -> bool:
        self._mark(step_id, "in_progress")
        while True:
            await self._clearance()
            await self._pace.beat(self._clearance)
            step = self._step(step_id)
            if step is None:
                return True
            task = next_task(step)
            if task is None:
                return self._end(step)
            if await self._may_run(task):
                await self._run_task(step, task)
            else:
                self._tell(step_id, task, "cancelled", "left out by the user")

    def _end(self, step: Step) -> bool:
        if any(task.status == "failed" for task in step.tasks):
            self._mark(step.step_id, "failed")
            self._notice(say("plan.step_now.failed", step=step.name))
            return False
        evidence = proof(self._crew.session.state, step, self._crew.table.folder)
        self._mark(step.step_id, "completed", evidence)
        told = say("plan.step_shown", step=step.name, evidence=evidence)
        self._notice(told if evidence else say("plan.step_unverified", step=step.name))
        self._pace.notice(Signal.DONE)
        return True

    async def _may_run(self, task: Task) -> bool:
        """What was cut off in the middle may have been done already: it is run again only when the user says so."""
        if task.status == "pending" or not self._runner.changes(task):
            return True
        question = Question(kind="gate", title=say("job.again", task=task_line(task)), choices=AGAIN)
        return (await self._crew.ask(question)).choice == "yes"

    async def _run_task(self, step: Step, task: Task) -> None:
        self._tell(step.step_id, task, "in_progress", None)
        try:
            ok, result = await self._runner.run(self._plan, step, task, self._pace)
        except asyncio.CancelledError:
            self._tell(step.step_id, task, "interrupted", task.result)
            raise
        self._tell(step.step_id, task, "completed" if ok else "failed", result)

    def _notice(self, what: Phrase) -> None:
        """The end of a step among others; where it is the only one, the job's own summary tells it."""
        if len(self._step_ids) > 1:
            self._crew.session.emit(Noticed(what=what))

    def _tell(self, step_id: str, task: Task, status: TaskStatus, result: str | None) -> None:
        task_id = task.task_id
        self._crew.session.emit(
            TaskChanged(plan_id=self._plan_id, step_id=step_id, task_id=task_id, status=status, result=result)
        )

    def _mark(self, step_id: str, status: StepStatus, evidence: str = "") -> None:
        self._crew.session.emit(StepChanged(plan_id=self._plan_id, step_id=step_id, status=status, evidence=evidence))
