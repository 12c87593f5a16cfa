"""The plan and its jobs as the user controls them, and the checks that reopen a completed step when its evidence no
longer holds."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from duckflow.agent.policies.policy import Ending
from duckflow.agent.session import Session
from duckflow.agent.turns import Turns
from duckflow.errors import Outcome, ToolError, UsageError
from duckflow.events.types import ActionFinished, Event, Noticed, PlanChanged, TurnUndone
from duckflow.events.views import JobWish
from duckflow.events.work import StepChanged
from duckflow.i18n.typed import wish_in
from duckflow.state.action import Evidence, evidence_of
from duckflow.state.data import Phrase, said, say
from duckflow.state.plan import Plan, Step, StepStatus
from duckflow.state.progress import job_progress, told_end
from duckflow.tools.plan.folder import WorkFolder
from duckflow.tools.plan.steering import tell_changed_steps
from duckflow.work.approval import PlanApproval
from duckflow.work.jobs import JobRunner

if TYPE_CHECKING:
    from duckflow.work.sub_agents import SubAgents


class StepChecks:
    """Opens a completed step again when a result speaks against it, and completes it when a later result shows that the
    step is done. Results of the conversation, of jobs and of the user's own undo all count."""

    def __init__(self, session: Session, folder: WorkFolder) -> None:
        self._session = session
        self._folder = folder
        self._opened: set[str] = set()
        self._taken_back: list[dict[str, str]] = []
        """For each undo, the evidence of the steps whose work it undid, by the step's id."""
        self._listening = False
        session.subscribe(self._listen, PlanChanged)
        if session.state.plans:
            self._listen()

    def _listen(self, event: Event | None = None) -> None:
        """Subscribes to results once there is a plan. If a changed plan names its checks in another way, older results
        may show that its steps are done."""
        if isinstance(event, PlanChanged) and event.plan.under_way:
            for step in event.plan.steps:
                if step.unverified:
                    self._close(event.plan, step)
        if not self._listening:
            self._listening = True
            self._session.subscribe(self._hear, ActionFinished, TurnUndone)

    def _hear(self, event: Event) -> None:
        match event:
            case ActionFinished():
                if event.result.changed:
                    self._taken_back.clear()
                self._look(evidence_of(event.result), event.result.changed)
            case TurnUndone():
                self._take_back(event) if event.back else self._bring_back()
                self._look(None, event.changed)
            case _:
                pass

    def _take_back(self, event: TurnUndone) -> None:
        """Reopens the steps whose work or files the undo has reset, and the steps that depend on them."""
        from duckflow.tools.plan.folder import made_by

        plan = self._session.state.plan
        undone_steps = dict[str, str]()
        for step in plan.steps if plan and plan.status not in ("draft", "failed") else ():
            is_reset = step.step_id in event.steps or not set(event.cleared).isdisjoint(made_by(step))
            if (is_reset or not undone_steps.keys().isdisjoint(step.depends_on)) and step.status == "completed":
                undone_steps[step.step_id] = step.evidence
        self._taken_back.append(undone_steps)
        if plan and undone_steps:
            for step in (reopened_steps := [step for step in plan.steps if step.step_id in undone_steps]):
                self._change(plan, step, "pending")
            names, files = ", ".join(step.name for step in reopened_steps), ", ".join(event.changed)
            self._session.emit(Noticed(what=say("plan.step_reopened", step=names, why=files)))

    def _bring_back(self) -> None:
        """Completes the steps again whose undone work has been restored by a redo: nothing else has changed, so their
        evidence is valid again."""
        plan = self._session.state.plan
        undone_steps = self._taken_back.pop() if self._taken_back else {}
        for step in list(plan.steps) if plan else ():
            if plan and step.step_id in undone_steps:
                self._change(plan, step, "completed", undone_steps[step.step_id])

    def _look(self, evidence: Evidence | None, changed: Sequence[str]) -> None:
        plan = self._session.state.plan
        if plan is None or plan.status in ("draft", "failed") or not (evidence or changed):
            return
        from duckflow.tools.plan.proof import refuted

        why, reopened_steps = "", list[str]()
        for step in plan.steps:
            if step.status == "completed" and step.evidence:
                refutation = refuted(step, evidence, changed, self._folder)
                if refutation:
                    why, reopened_steps = refutation, [*reopened_steps, step.name]
                    self._opened.add(step.step_id)
                    self._change(plan, step, "pending")
            elif step.status == "completed" or step.step_id in self._opened:
                self._close(plan, step)
        if reopened_steps:
            self._session.emit(Noticed(what=say("plan.step_reopened", step=", ".join(reopened_steps), why=why)))

    def _close(self, plan: Plan, step: Step) -> None:
        """Completes a step if a result now shows that it is done. The step was called done too early, or a check had
        reopened it."""
        from duckflow.tools.plan.criterion import named_in
        from duckflow.tools.plan.proof import proof

        evidence = proof(self._session.state, step, self._folder) if named_in(step.success) else ""
        if evidence:
            self._opened.discard(step.step_id)
            self._change(plan, step, "completed", evidence)
            self._session.emit(Noticed(what=say("plan.step_shown", step=step.name, evidence=evidence)))

    def _change(self, plan: Plan, step: Step, status: StepStatus, evidence: str = "") -> None:
        self._session.emit(StepChanged(plan_id=plan.plan_id, step_id=step.step_id, status=status, evidence=evidence))


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
