"""The background worker: runs jobs beside the conversation, in the conversation's process and on its state."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.phases import Phases
from duckflow.agent.session import Session
from duckflow.agent.settings import AgentSettings
from duckflow.agent.undo import UndoKeeper
from duckflow.errors import DuckflowError, ProviderUnreachable, ToolError
from duckflow.events.ports import Ask
from duckflow.events.types import ActionFinished, DecisionMade, Event, MessageAdded, Noticed, TurnEnded
from duckflow.events.work import JobChanged, JobEnded, JobStarted, TaskChanged
from duckflow.i18n.template import note
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.state.action import STEERING
from duckflow.state.agent import AgentState, Job, JobReport, JobStatus
from duckflow.state.data import said, say
from duckflow.state.message import Message
from duckflow.state.progress import in_the_middle, only_asked, steps_of
from duckflow.tools.plan.drafting import Drafter
from duckflow.tools.plan.steering import tell_unheard
from duckflow.work.file_locks import FileLocks
from duckflow.work.job_report import count_results, tell_end, write_report

if TYPE_CHECKING:
    from duckflow.work.agents import Agents

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunningJob:
    """A job's asyncio task, and the actor in whose name it acts. `ending` is the status that the job gets when it is
    cancelled."""

    actor: Actor
    task: asyncio.Task[None] | None = None
    ending: JobStatus = "interrupted"


class JobRunner:
    """Starts, pauses, resumes and cancels jobs; raises a ToolError if that cannot be done."""

    def __init__(
        self,
        session: Session,
        ask: Ask,
        dispatcher: Dispatcher,
        drafter: Drafter,
        phases: Phases,
        undo: UndoKeeper,
        make_pacemaker: Callable[[], Pacemaker],
        settings: AgentSettings,
        agents: "Callable[[], Agents]",
        locks: FileLocks,
    ) -> None:
        self._session = session
        self._ask = ask
        self._dispatcher = dispatcher
        self._drafter = drafter
        self._phases = phases
        self._undo = undo
        self._make_pacemaker = make_pacemaker
        self._settings = settings
        self._agents = agents
        self._locks = locks
        self._running: dict[str, RunningJob] = {}
        self._settling = False
        self._heard = asyncio.Event()
        """An asyncio event. It is cleared while it is not yet known whether the user's last words concern the jobs."""
        self._heard.set()
        self._stop_listening: Callable[[], None] = lambda: None
        session.subscribe(self._follow, JobChanged)
        for job in session.state.live_jobs():
            # A crash has cut the job off; it stays so until the user resumes it.
            _mark_interrupted(self._session, job)

    def start(self, plan_id: str, step_ids: Sequence[str]) -> Job:
        state = self._session.state
        for live_job in state.live_jobs():
            if set(live_job.step_ids) & set(step_ids):
                raise ToolError(self._note("job_at_it", job=live_job.job_id), "job.already", job=live_job.name)
        plan = state.plans[plan_id]
        single_step = plan.step(step_ids[0]) if len(step_ids) == 1 else None
        name = _numbered(single_step.name if single_step else plan.name, state)
        job = Job(name=name, plan_id=plan_id, step_ids=list(step_ids))
        self._session.emit(JobStarted(job=job))
        self._run_in_background(job)
        return state.jobs[job.job_id]

    async def pause(self, job_id: str) -> Job:
        """Pauses a job, and returns when everything that it runs has stopped. Raises a ToolError if something goes
        on."""
        job = self._find(job_id, ("running",))
        self._session.emit(JobChanged(job_id=job.job_id, status="paused"))
        running = self._running.get(job.job_id)
        if running and not await running.actor.pause.all_stopped():
            raise ToolError(self._note("job_moves", job=job.job_id), "job.moves", job=job.name)
        return job

    async def resume(self, job_id: str) -> Job:
        job = self._find(job_id, ("paused", "interrupted"))
        self._session.emit(JobChanged(job_id=job.job_id, status="running"))
        if job.job_id not in self._running:
            self._run_in_background(job)
        return job

    async def cancel(self, job_id: str) -> Job:
        """Cancels a job, and returns when everything that the job ran has ended."""
        job = self._find(job_id, ("running", "paused", "interrupted"))
        running = self._running.get(job.job_id)
        if running is None or running.task is None:
            self._end(job, "cancelled", count_results(self._drafter, job))
            return job
        running.ending = "cancelled"
        running.task.cancel()
        await asyncio.wait([running.task])
        if not await running.actor.pause.end_commands():
            raise ToolError(self._note("job_not_gone", job=job.job_id), "job.not_gone", job=job.name)
        return job

    def hold(self) -> None:
        """Keeps jobs from beginning a task until it is clear whether what the user has said is about them."""
        self._heard.clear()
        self._stop_listening = self._session.subscribe(self._hear, DecisionMade, ActionFinished, TurnEnded)

    async def settle(self) -> None:
        """Waits until no task is in the middle of its work. No new task is begun, unless this call is cancelled: then
        the jobs go on."""
        self._settling = True
        self._heard.clear()
        try:
            await _until_settled(self._session)
        except asyncio.CancelledError:
            self._settling = False
            self._heard.set()
            raise

    async def rest(self, alone: bool) -> None:
        """Waits until no job runs any more; a paused job does not count. `alone` means that nobody is there who could
        resume a paused job, so such a job is cancelled."""
        job_changed = asyncio.Event()
        unsubscribe = self._session.subscribe(lambda _: job_changed.set(), JobChanged)
        try:
            while tasks := self._tasks(paused=False):
                job_changed.clear()
                change = asyncio.create_task(job_changed.wait())
                await asyncio.wait({*tasks, change}, return_when=asyncio.FIRST_COMPLETED)
                change.cancel()
        finally:
            unsubscribe()
        for job in self._session.state.live_jobs() if alone else ():
            if job.status == "paused":
                await self.cancel(job.job_id)

    async def aclose(self) -> None:
        """Stops every job. The next session can resume them."""
        tasks = self._tasks(paused=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _tasks(self, paused: bool) -> list[asyncio.Task[None]]:
        jobs = self._session.state.jobs
        running = [
            running_job for job_id, running_job in self._running.items() if paused or jobs[job_id].status != "paused"
        ]
        return [job.task for job in running if job.task]

    def _run_in_background(self, job: Job) -> None:
        actor = Actor(self._session.emit, self._ask, job.job_id, job.name, hearing=self._heard)
        running = self._running[job.job_id] = RunningJob(actor)
        running.task = asyncio.create_task(self._run(job.job_id, running))

    async def _run(self, job_id: str, running: RunningJob) -> None:
        job = self._session.state.jobs[job_id]
        try:
            await self._carry_out(job, running)
            self._tell_lesson(job, running.actor)
        finally:
            self._running.pop(job_id, None)

    async def _carry_out(self, job: Job, running: RunningJob) -> None:
        from duckflow.work.steps import JobWork
        from duckflow.work.tasks import JobStopped

        work = JobWork(
            job,
            running.actor,
            self._dispatcher,
            self._drafter,
            self._agents(),
            self._make_pacemaker(),
            self._settings,
            self._locks,
        )
        try:
            status: JobStatus = "completed" if await work.run() else "failed"
            self._end(job, status, await write_report(self._drafter, self._undo, job, status))
        except asyncio.CancelledError:
            if running.ending == "cancelled":
                self._end(job, "cancelled", count_results(self._drafter, job))
            else:
                _mark_interrupted(self._session, job)
        except JobStopped:
            await running.actor.pause.end_commands()
            self._end(job, "cancelled", count_results(self._drafter, job))
        except ProviderUnreachable as problem:
            _wait_for_model(self._session, job, problem)
        except Exception as problem:
            log.info("job %s failed: %r", job.job_id, problem, exc_info=not isinstance(problem, DuckflowError))
            self._end(job, "failed", count_results(self._drafter, job))

    def _tell_lesson(self, job: Job, actor: Actor) -> None:
        """Tells the user what a completed plan or a failed job has taught. It is kept only if the user wants that."""
        plan, lesson = self._session.state.plans.get(job.plan_id), job.report.lesson if job.report else ""
        is_over = plan is not None and (job.status == "failed" or plan.status == "completed")
        if self._settings.offer_lessons and lesson and is_over:
            actor.emit(Noticed(what=say("job.lesson", lesson=lesson)))

    def _end(self, job: Job, status: JobStatus, report: JobReport) -> None:
        state, emit = self._session.state, self._session.emit
        emit(JobEnded(job_id=job.job_id, status=status, report=report))
        tell_unheard(emit, steps_of(state, job))
        text = tell_end(state.language, job, status, report)
        emit(MessageAdded(message=Message(role="system", text=text, turn=state.turn)))
        if status != "cancelled":
            self._phases.job_ended(status == "completed", "\n".join(report.causes))

    def _let_go(self) -> None:
        self._stop_listening()
        if not self._settling:
            self._heard.set()

    def _note(self, key: str, **values: str) -> str:
        """Returns a sentence for the model, in the session's language."""
        return note(self._session.state.language, key, **values)

    def _find(self, job_id: str, statuses: tuple[JobStatus, ...]) -> Job:
        """Finds the job by its id or name; without an id, the latest job with one of these statuses."""
        jobs = self._session.state.jobs
        matching_jobs = [
            job for job in jobs.values() if job.status in statuses and job_id in ("", job.job_id, job.name)
        ]
        if not matching_jobs:
            known_jobs = ", ".join(f"{job.job_id} ({job.status})" for job in jobs.values()) or "–"
            raise ToolError(self._note("job_none", statuses=", ".join(statuses), known=known_jobs), "job.none_such")
        return matching_jobs[-1]

    def _follow(self, event: Event) -> None:
        if isinstance(event, JobChanged) and (running := self._running.get(event.job_id)):
            pause = running.actor.pause
            (pause.pause if event.status == "paused" else pause.resume)()

    def _hear(self, event: Event) -> None:
        match event:
            case DecisionMade():
                if all(action.operation not in STEERING for action in event.decision.actions):
                    self._let_go()
            case ActionFinished() if event.result.operation in STEERING:
                self._let_go()
            case TurnEnded():
                self._let_go()
            case _:
                pass


def _numbered(name: str, state: AgentState) -> str:
    """Adds a number to a name that another job already has, because a question must say which job asks it."""
    taken_names = {job.name for job in state.jobs.values()}
    numbered = (f"{name} ({number})" for number in count(2))
    return (
        name if name not in taken_names else next(candidate for candidate in numbered if candidate not in taken_names)
    )


async def _until_settled(session: Session) -> None:
    """Returns when no job is in the middle of a task, however long that takes."""
    something_happened = asyncio.Event()
    unsubscribe = session.subscribe(lambda _: something_happened.set())
    try:
        while any(in_the_middle(session.state, job) for job in session.state.live_jobs()):
            await something_happened.wait()
            something_happened.clear()
    finally:
        unsubscribe()


def _mark_interrupted(session: Session, job: Job) -> None:
    """Marks the tasks that had begun when the job was cut off: the user is asked before they run again. A task that
    only waited for the user's yes begins anew and asks its question again."""
    status = "pending" if only_asked(session.state, job) else "interrupted"
    for step in steps_of(session.state, job):
        for task in step.tasks:
            if task.status == "in_progress":
                session.emit(
                    TaskChanged(plan_id=job.plan_id, step_id=step.step_id, task_id=task.task_id, status=status)
                )
    session.emit(JobChanged(job_id=job.job_id, status="interrupted"))


def _wait_for_model(session: Session, job: Job, problem: ProviderUnreachable) -> None:
    """Interrupts the job, as the model cannot be reached. When the model is back, the user can resume the job."""
    _mark_interrupted(session, job)
    for line in (said(problem), say("job.interrupted", job=job.name)):
        session.emit(Noticed(what=line))
