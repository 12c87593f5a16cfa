"""The background worker: runs jobs beside the conversation, in the same process, on the same state."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from duckflow.agent.crew import Crew
from duckflow.agent.job_report import computed, report
from duckflow.agent.job_work import JobWork
from duckflow.agent.lesson_offer import offer_lesson
from duckflow.agent.session import Session
from duckflow.errors import DuckflowError, ToolError
from duckflow.events.types import ActionFinished, DecisionMade, Event, MessageAdded, TurnEnded
from duckflow.events.work import JobChanged, JobEnded, JobStarted, TaskChanged
from duckflow.state.acting import act_for
from duckflow.state.job import Job, JobReport, JobStatus
from duckflow.state.message import Message
from duckflow.state.progress import steps_of
from duckflow.tools.reins import Reins, on_reins

log = logging.getLogger(__name__)

REVISES = "plan_tool.revise"


@dataclass(slots=True)
class Worker:
    """A job's asyncio task. Its reins are pulled while the job is paused; `ending` says why it was cancelled."""

    reins: Reins = field(default_factory=Reins)
    task: asyncio.Task[None] | None = None
    ending: JobStatus = "interrupted"


class TaskLoop:
    """Starts, pauses, resumes and cancels jobs. What cannot be done is a ToolError."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._crew: Crew | None = None
        self._workers: dict[str, Worker] = {}
        self._heard = asyncio.Event()
        self._heard.set()
        session.subscribe(self._hear)

    def equip(self, crew: Crew) -> None:
        """Give it what jobs work with. Jobs that a crash has cut off are marked, and wait to be resumed."""
        self._crew = crew
        for job in self._session.state.live_jobs():
            self._cut_off(job)

    def start(self, plan_id: str, step_ids: Sequence[str]) -> Job:
        state = self._session.state
        for other in state.live_jobs():
            if set(other.step_ids) & set(step_ids):
                raise ToolError(f"{other.job_id} is already working on that", "job.already", job=other.name)
        plan = state.plans[plan_id]
        only = plan.step(step_ids[0]) if len(step_ids) == 1 else None
        job = Job(name=only.name if only else plan.name, plan_id=plan_id, step_ids=list(step_ids))
        self._session.emit(JobStarted(job=job))
        self._employ(job.job_id)
        return state.jobs[job.job_id]

    async def pause(self, job_id: str) -> Job:
        """Returns when everything it runs stands still."""
        job = self._find(job_id, ("running",))
        self._session.emit(JobChanged(job_id=job.job_id, status="paused"))
        worker = self._workers.get(job.job_id)
        if worker and not await worker.reins.still():
            raise ToolError(
                f"{job.job_id} is paused, but not everything that it runs could be stopped", "job.moves", job=job.name
            )
        return job

    async def resume(self, job_id: str) -> Job:
        job = self._find(job_id, ("paused", "interrupted"))
        self._session.emit(JobChanged(job_id=job.job_id, status="running"))
        if job.job_id not in self._workers:
            self._employ(job.job_id)
        return job

    async def cancel(self, job_id: str) -> Job:
        """Returns when everything it ran is gone."""
        job = self._find(job_id, ("running", "paused", "interrupted"))
        worker = self._workers.get(job.job_id)
        if worker is None or worker.task is None:
            await self._end(job, "cancelled")
            return job
        worker.ending = "cancelled"
        worker.task.cancel()
        await asyncio.wait([worker.task])
        if not await worker.reins.end():
            raise ToolError(f"{job.job_id} is cancelled, but some of it may still run", "job.not_gone", job=job.name)
        return job

    def hold(self) -> None:
        """The user has said something: no job begins a task before it is clear whether that concerns it."""
        if self._session.state.live_jobs():
            self._heard.clear()

    async def rest(self) -> None:
        """Until no job runs any more."""
        while running := [worker.task for worker in self._workers.values() if worker.task]:
            await asyncio.wait(running)

    async def aclose(self) -> None:
        """Stop everything; what was running can be resumed in the next session."""
        running = [worker.task for worker in self._workers.values() if worker.task]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    def _employ(self, job_id: str) -> None:
        worker = self._workers[job_id] = Worker()
        worker.task = asyncio.create_task(self._work(job_id, worker))

    async def _work(self, job_id: str, worker: Worker) -> None:
        assert self._crew
        job = self._session.state.jobs[job_id]
        act_for(job_id, job.name)
        on_reins(worker.reins)
        try:
            await self._carry_out(job, worker)
            await offer_lesson(self._crew, job)
        except DuckflowError as problem:
            log.info("no lesson of job %s: %s", job_id, problem)
        finally:
            self._workers.pop(job_id, None)

    async def _carry_out(self, job: Job, worker: Worker) -> None:
        assert self._crew
        try:
            work = JobWork(self._crew, job.plan_id, job.step_ids, lambda: self._clearance(worker))
            await self._end(job, "completed" if await work.run() else "failed")
        except asyncio.CancelledError:
            if worker.ending == "cancelled":
                await self._end(job, "cancelled")
            else:
                self._cut_off(job)
        except DuckflowError as problem:
            log.info("job %s failed: %s", job.job_id, problem)
            self._tell_end(job, "failed", self._computed(job, "failed"))
        except Exception:
            log.exception("job %s failed", job.job_id)
            self._tell_end(job, "failed", self._computed(job, "failed"))

    async def _clearance(self, worker: Worker) -> None:
        """Wait here before every task: for the end of a pause, and until the user's words have been heard."""
        await worker.reins.slack()
        while not self._heard.is_set():
            await self._heard.wait()
            await worker.reins.slack()

    async def _end(self, job: Job, status: JobStatus) -> None:
        assert self._crew
        words = self._computed(job, status) if status == "cancelled" else await report(self._crew.table, job, status)
        self._tell_end(job, status, words)

    def _tell_end(self, job: Job, status: JobStatus, words: JobReport) -> None:
        assert self._crew
        self._session.emit(JobEnded(job_id=job.job_id, status=status, report=words))
        lines = [f"Job {job.job_id} '{job.name}' ended: {status}. {words.done} tasks done, {words.failed} failed, "]
        lines[0] += f"{words.left} left. {words.summary}"
        lines += [f"Failed: {cause}" for cause in words.causes]
        if words.next_action:
            lines.append(f"Recommended: {words.next_action}")
        turn = self._session.state.turn
        self._session.emit(MessageAdded(message=Message(role="system", text="\n".join(lines), turn=turn, job="")))
        if status != "cancelled":
            self._crew.phases.job_ended(status == "completed", "\n".join(words.causes))

    def _computed(self, job: Job, status: JobStatus) -> JobReport:
        assert self._crew
        return computed(self._crew.table, job, status)

    def _cut_off(self, job: Job) -> None:
        for step in steps_of(self._session.state, job):
            for task in step.tasks:
                if task.status == "in_progress":
                    self._session.emit(
                        TaskChanged(
                            plan_id=job.plan_id, step_id=step.step_id, task_id=task.task_id, status="interrupted"
                        )
                    )
        self._session.emit(JobChanged(job_id=job.job_id, status="interrupted"))

    def _find(self, job_id: str, statuses: tuple[JobStatus, ...]) -> Job:
        """The job meant; without an id the latest that fits."""
        jobs = self._session.state.jobs
        fitting = [job for job in jobs.values() if job.status in statuses and job_id in ("", job.job_id, job.name)]
        if not fitting:
            known = ", ".join(f"{job.job_id} ({job.status})" for job in jobs.values()) or "none"
            raise ToolError(f"no job is {' or '.join(statuses)}. Jobs: {known}", "job.none_such")
        return fitting[-1]

    def _hear(self, event: Event) -> None:
        match event:
            case JobChanged() if worker := self._workers.get(event.job_id):
                (worker.reins.pull if event.status == "paused" else worker.reins.let_go)()
            case DecisionMade():
                if all(action.operation != REVISES for action in event.decision.actions):
                    self._heard.set()
            case ActionFinished() if event.result.operation == REVISES:
                self._heard.set()
            case TurnEnded():
                self._heard.set()
            case _:
                pass
