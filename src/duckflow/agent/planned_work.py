"""The plan and its jobs, as the user controls them."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from duckflow.agent.policies.plan_answer import PlanApproval
from duckflow.agent.policies.policy import Ending
from duckflow.agent.session import Session
from duckflow.agent.turns import Turns
from duckflow.errors import ToolError
from duckflow.events.types import Noticed, Outcome, PlanChanged
from duckflow.events.views import JobWish
from duckflow.i18n.typed import wish_in
from duckflow.state.phrase import Phrase, said, say
from duckflow.state.plan import Plan
from duckflow.state.progress import job_progress


class PlannedWork:
    """Approves, changes and drops the plan; pauses, resumes and cancels its jobs."""

    def __init__(self, session: Session, turns: Turns, approval: PlanApproval) -> None:
        self._approval = approval
        self._session = session
        self.turns = turns
        self._jobs = turns.jobs
        self._errands: set[asyncio.Task[Any]] = set()

    def approve_plan(self) -> Awaitable[Outcome]:
        return self.turns.begin(self._approve)

    def drop_plan(self, plan: Plan) -> None:
        self._approval.drop(plan)

    def change_plan(self, plan: Plan) -> None:
        self._session.emit(PlanChanged(plan=plan))

    async def settle(self) -> None:
        await self._jobs.settle()

    async def resume_all(self) -> None:
        """Those that were running when they were cut off."""
        for job in list(self._session.state.jobs.values()):
            if job.status == "interrupted" and job.was_running:
                await self._jobs.resume(job.job_id)

    async def jobs_over(self) -> None:
        await self._jobs.rest()

    def control(self, wish: JobWish, job_id: str = "") -> None:
        errand = asyncio.create_task(self._control(wish, job_id))
        self._errands.add(errand)
        errand.add_done_callback(self._errands.discard)

    def aside(self, text: str) -> tuple[Phrase, ...] | None:
        """What is said about running work (how far? pause, resume, cancel) is answered at once; else nothing."""
        state = self._session.state
        match wish_in(text, state):
            case None:
                return None
            case "progress":
                return tuple(line for job in state.live_jobs() for line in job_progress(state, job))
            case wish:
                self.control(wish)
                return ()

    async def _approve(self) -> str | Ending:
        """The draft as it is when its turn comes."""
        plan = self._session.state.plan
        if plan is None or plan.status != "draft":
            return Ending("done")
        return await self._approval.approve(plan)

    async def _control(self, wish: JobWish, job_id: str) -> None:
        try:
            match wish:
                case "pause":
                    job, key = await self._jobs.pause(job_id), "job.paused"
                case "resume":
                    job, key = await self._jobs.resume(job_id), "job.resumed"
                case "cancel":
                    job, key = await self._jobs.cancel(job_id), "job.cancelled"
            self._session.emit(Noticed(what=say(key, job=job.name)))
        except ToolError as problem:
            self._session.emit(Noticed(what=said(problem)))
