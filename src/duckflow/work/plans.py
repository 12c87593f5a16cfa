"""The plan and its jobs as the user controls them."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from duckflow.agent.policies.policy import Ending
from duckflow.agent.session import Session
from duckflow.agent.turns import Turns
from duckflow.errors import Outcome, ToolError, UsageError
from duckflow.events.talking import LineTaken
from duckflow.events.types import Noticed, PlanChanged
from duckflow.events.views import JobWish
from duckflow.i18n.typed import split_pause, wish_in
from duckflow.state.data import Phrase, said, say
from duckflow.state.plan import Plan
from duckflow.state.progress import job_progress, told_end
from duckflow.tools.plan.steering import tell_changed_steps
from duckflow.work.approval import PlanApproval
from duckflow.work.jobs import JobRunner

if TYPE_CHECKING:
    from duckflow.work.sub_agents import SubAgents


class PlannedWork:
    """Approves, changes and drops the plan; pauses, resumes and cancels its jobs; stops agents and talks to them."""

    def __init__(
        self,
        session: Session,
        turns: Turns,
        jobs: JobRunner,
        approval: PlanApproval,
        agents: "Callable[[], SubAgents]",
    ) -> None:
        self._agents = agents
        self._approval = approval
        self._session = session
        self._turns = turns
        self._jobs = jobs
        self._controls: set[asyncio.Task[Any]] = set()

    def approve_plan(self, shown: str) -> Awaitable[Outcome]:
        return self._turns.begin(partial(self._approve, shown))

    def drop_plan(self, plan: Plan) -> Phrase:
        return self._approval.drop(plan)

    def change_plan(self, plan: Plan) -> None:
        from duckflow.tools.plan.criterion import with_checks

        old_plan = self._session.state.plans[plan.plan_id]
        self._session.emit(PlanChanged(plan=with_checks(plan)))
        tell_changed_steps(self._session.emit, self._session.state, old_plan)

    async def settle(self) -> None:
        await self._jobs.settle()

    async def resume_all(self) -> None:
        for job in list(self._session.state.jobs.values()):
            if job.status == "interrupted" and job.was_running:
                await self._jobs.resume(job.job_id)

    async def jobs_over(self, alone: bool = False) -> None:
        await self._jobs.rest(alone)

    def end_cut_off_agents(self) -> str:
        from duckflow.work.sub_agents import mark_interrupted

        return mark_interrupted(self._session)

    async def aclose(self) -> None:
        await self._jobs.aclose()

    def control(self, wish: JobWish, job_id: str = "") -> None:
        task = asyncio.create_task(self._control(wish, job_id))
        self._controls.add(task)
        task.add_done_callback(self._controls.discard)

    async def controlled(self) -> None:
        await asyncio.gather(*self._controls)

    async def stop_agent(self, agent_id: str) -> None:
        self._agents().stop(agent_id)

    async def tell_agent(self, agent_id: str, text: str) -> None:
        if not text.strip():
            raise UsageError("agent.tell_usage")
        self._agents().tell(agent_id, text.strip())

    def aside(self, text: str) -> tuple[Phrase, ...] | None:
        state = self._session.state
        match wish_in(text, state):
            case None:
                return None
            case "progress":
                ended_lines = tuple(map(told_end, state.just_ended()))
                return ended_lines or tuple(line for job in state.live_jobs() for line in job_progress(state, job))
            case wish:
                self.control(wish)
                return ()

    def pause_first(self, text: str) -> str:
        split = split_pause(text, self._session.state)
        if split is None:
            return text
        self._session.emit(LineTaken(text=split.pause))
        self.control("pause")
        return split.rest

    async def _approve(self, shown: str) -> str | Ending:
        """Approves the draft that was shown. A turn that ran in between may have replaced it by another draft."""
        plan = self._session.state.plan
        if plan is None or plan.status != "draft":
            return Ending("done")
        if plan.fingerprint() != shown:
            return Ending("done", say("plan.changed_since", name=plan.name))
        return await self._approval.approve(plan)

    async def _control(self, wish: JobWish, job_id: str) -> None:
        try:
            match wish:
                case "pause":
                    job, phrase_key = await self._jobs.pause(job_id), "job.paused"
                case "resume":
                    job, phrase_key = await self._jobs.resume(job_id), "job.resumed"
                case "cancel":
                    job, phrase_key = await self._jobs.cancel(job_id), "job.cancelled"
            self._session.emit(Noticed(what=say(phrase_key, job=job.name)))
        except ToolError as problem:
            self._session.emit(Noticed(what=said(problem)))
