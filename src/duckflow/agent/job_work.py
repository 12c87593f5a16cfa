"""The work of one job: its steps as their dependencies allow, their tasks in order, each through the dispatcher."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.settings import AgentSettings
from duckflow.agent.task_runner import TaskRunner
from duckflow.agent.turn_pacemaker import intervention
from duckflow.errors import DuckflowError
from duckflow.events.types import DuckAnswered, DuckCalled, Noticed
from duckflow.events.work import JobChanged, StepChanged, TaskChanged, TasksPlanned
from duckflow.pacemaker.interventions import ENDS_TURN, DuckCall, Replan
from duckflow.pacemaker.pacemaker import LoopView, Pacemaker
from duckflow.pacemaker.step import step_of
from duckflow.pacemaker.vitals import Signal
from duckflow.prompts.template import note
from duckflow.state.action import Action, TaskProfile
from duckflow.state.agent import AgentState
from duckflow.state.evidence import succeeded
from duckflow.state.job import Job
from duckflow.state.phrase import Phrase, said, say
from duckflow.state.plan import Plan, Step, StepStatus, Task, TaskStatus
from duckflow.state.progress import only_asked, task_line
from duckflow.state.question import Choice, Question
from duckflow.state.schedule import has_none_left, next_task, side_by_side, startable
from duckflow.tools.plan.drafting import Drafter
from duckflow.tools.plan.proof import proof

log = logging.getLogger(__name__)

AGAIN = (Choice(key="yes", label=say("job.again.yes")), Choice(key="no", label=say("job.again.no")))


class JobWork:
    """Looks at the state before every task, so that what changed meanwhile counts at once.

    To its Pacemaker a task is a loop, and every completed one is progress; the ceiling counts for each step."""

    def __init__(
        self,
        job: Job,
        actor: Actor,
        state: AgentState,
        dispatcher: Dispatcher,
        drafter: Drafter,
        pacemaker: Pacemaker,
        settings: AgentSettings,
        wait_until_clear: Callable[[], Awaitable[None]],
    ) -> None:
        self._plan_id = job.plan_id
        self._step_ids = job.step_ids
        self._actor = actor
        self._state = state
        self._drafter = drafter
        self._pacemaker = pacemaker
        self._settings = settings
        self._wait_until_clear = wait_until_clear
        self._runner = TaskRunner(actor, dispatcher, drafter, settings)
        self._repaired: set[str] = set()
        self._unwanted: set[str] = set()

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
        return self._state.plans[self._plan_id]

    def _step(self, step_id: str) -> Step | None:
        return next((step for step in self._plan.steps if step.step_id == step_id), None)

    async def _ready(self, busy: list[str]) -> list[Step]:
        """The steps to start now. One without tasks gets them first: only then is known which files it touches."""
        limit = self._settings.steps_at_once
        for step in startable(self._plan, self._step_ids, busy)[: max(0, limit - len(busy))]:
            if has_none_left(step) and not await self._plan_tasks(step):
                return []
        steps = [step for step in startable(self._plan, self._step_ids, busy) if step.tasks]
        chosen = side_by_side(steps, [step for step in self._plan.steps if step.step_id in busy], limit)
        for step in steps:
            if step not in chosen and step.status == "in_progress":
                self._mark(step.step_id, "pending")
        return chosen

    async def _plan_tasks(self, step: Step) -> bool:
        try:
            await self._wait_until_clear()
            self._mark(step.step_id, "in_progress")
            await self._runner.read_files(self._plan, step)
            tasks = await self._drafter.tasks(self._plan, step)
        except DuckflowError as problem:
            log.info("no tasks for %s: %s", step.name, problem.key)
            self._mark(step.step_id, "failed")
            self._actor.emit(Noticed(what=say("task.not_planned", step=step.name)))
            self._actor.emit(Noticed(what=said(problem)))
            return False
        self._actor.emit(TasksPlanned(plan_id=self._plan_id, step_id=step.step_id, tasks=tuple(tasks)))
        return True

    async def _repair(self, step: Step) -> bool:
        """What failed goes back to the model once, with its cause; whether there are other tasks now. A task that the
        user does not want, and has said nothing more about, is not tried another way."""
        failed = next((task for task in step.tasks if task.status == "failed"), None)
        if failed is None or step.step_id in self._repaired or failed.task_id in self._unwanted:
            return False
        self._repaired.add(step.step_id)
        try:
            await self._runner.read_files(self._plan, step)
            tasks = await self._drafter.tasks(self._plan, step)
        except DuckflowError as problem:
            log.info("%s is not repaired: %s", step.name, problem.key)
            return False
        self._actor.emit(Noticed(what=say("task.repair", step=step.name, task=task_line(failed))))
        self._actor.emit(TasksPlanned(plan_id=self._plan_id, step_id=step.step_id, tasks=tuple(tasks)))
        return True

    async def _run_step(self, step_id: str) -> bool:
        if (step := self._step(step_id)) and step.status != "in_progress":
            self._mark(step_id, "in_progress")
        taken = 0
        while True:
            await self._wait_until_clear()
            await self._beat(taken)
            taken += 1
            step = self._step(step_id)
            if step is None:
                return True
            task = next_task(step)
            if task is None and await self._repair(step):
                continue
            if task is None:
                return self._end(step)
            if await self._may_run(task):
                await self._run_task(step, task)
            else:
                self._tell(step_id, task, "cancelled", note(self._state.language, "task_left_out"))

    async def _beat(self, taken: int) -> None:
        """Nothing, a line on the screen, or a question; when the answer is to stop, the job pauses."""
        view = LoopView(taken, TaskProfile.MULTI_STEP_TASK, plan_running=True)
        verdict, emit = self._pacemaker.beat(view), self._actor.emit
        if isinstance(verdict, Replan) and (told := intervention(verdict)):
            emit(told)
        if not isinstance(verdict, DuckCall):
            return
        question = verdict.question()
        emit(DuckCalled(question=question, reason=verdict.reason, severity=verdict.severity))
        answer = await self._actor.ask(question)
        resolution = self._pacemaker.answered(verdict, answer.choice, answer.text, loop=taken)
        emit(DuckAnswered(question_id=question.question_id, answer=answer, effect=resolution.effect.value))
        if resolution.effect in ENDS_TURN:
            emit(JobChanged(job_id=self._actor.job_id, status="paused"))
            await self._wait_until_clear()

    def _end(self, step: Step) -> bool:
        if any(task.status == "failed" for task in step.tasks):
            self._mark(step.step_id, "failed")
            self._notice(say("plan.step_now.failed", step=step.name))
            return False
        evidence = proof(self._state, step, self._drafter.folder)
        self._mark(step.step_id, "completed", evidence)
        told = say("plan.step_shown", step=step.name, evidence=evidence)
        self._notice(told if evidence else say("plan.step_unverified", step=step.name))
        return True

    async def _may_run(self, task: Task) -> bool:
        """What was cut off in the middle may have been done already: it is run again only when the user says so."""
        if task.status == "pending" or not self._runner.changes(task):
            return True
        question = Question(kind="gate", title=say("job.again", task=task_line(task)), choices=AGAIN)
        return (await self._actor.ask(question)).choice == "yes"

    async def _run_task(self, step: Step, task: Task) -> None:
        self._tell(step.step_id, task, "in_progress", None)
        action = Action(operation=task.operation, args=task.args, reasoning=task.reasoning.strip() or step.name)
        try:
            done, told = await self._runner.run(self._plan, step, action)
            while done.stop == "refused" and done.refusal:
                # A no with a wish is no failure: the task is put as the user wants it, and asked for again.
                action = await self._runner.put_differently(self._plan, step, task, action, done.refusal)
                done, told = await self._runner.run(self._plan, step, action)
        except asyncio.CancelledError:
            job = self._state.jobs[self._actor.job_id]
            cut_off = "pending" if only_asked(self._state, job) else "interrupted"
            self._tell(step.step_id, task, cut_off, task.result)
            raise
        for result in done.results:
            self._pacemaker.observe(step_of(action, result))
        ok = bool(done.results) and not done.stop and all(map(succeeded, done.results))
        if done.stop == "refused" and not done.refusal:
            self._unwanted.add(task.task_id)
        self._tell(step.step_id, task, "completed" if ok else "failed", told)
        if ok:
            self._pacemaker.notice(Signal.DONE)

    def _notice(self, what: Phrase) -> None:
        """The end of a step among others; where it is the only one, the job's own summary tells it."""
        if len(self._step_ids) > 1:
            self._actor.emit(Noticed(what=what))

    def _tell(self, step_id: str, task: Task, status: TaskStatus, result: str | None) -> None:
        task_id = task.task_id
        self._actor.emit(
            TaskChanged(plan_id=self._plan_id, step_id=step_id, task_id=task_id, status=status, result=result)
        )

    def _mark(self, step_id: str, status: StepStatus, evidence: str = "") -> None:
        self._actor.emit(StepChanged(plan_id=self._plan_id, step_id=step_id, status=status, evidence=evidence))
