"""The user's word on a draft plan, read before any model is asked."""

from duckflow.agent.connection import ModelConnection
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.agent.session import Session
from duckflow.events.types import Noticed, PlanChanged
from duckflow.i18n.answers import read_answer
from duckflow.i18n.template import note
from duckflow.state.phrase import say
from duckflow.state.plan import Plan
from duckflow.tools.plan.ports import Jobs


class PlanApproval:
    """Approves or drops a plan: by events, whoever the yes or no came from."""

    def __init__(self, session: Session, phases: Phases, jobs: Jobs, connection: ModelConnection) -> None:
        self._session = session
        self._phases = phases
        self._jobs = jobs
        self._connection = connection

    async def approve(self, plan: Plan) -> str | Ending:
        """What the model is told to begin with, or how the turn ends at once."""
        self._session.emit(PlanChanged(plan=plan.model_copy(update={"status": "approved"})))
        self._session.emit(Noticed(what=say("plan.approved", name=plan.name)))
        self._phases.plan_approved()
        profile = await self._connection.ready_profile()
        if profile.local:
            # A small model loses the thread between a yes and the tasks: the whole plan is handed over at once.
            job = self._jobs.start(plan.plan_id, [step.step_id for step in plan.steps])
            return Ending("deferred", say("job.started", job=job.name))
        step = plan.next_step()
        first = f"{step.name} ({step.step_id})" if step else "-"
        # A model that calls tools makes the calls of a step when its time comes: no list is needed before.
        told = "plan_approved_native" if profile.native_tools else "plan_approved"
        return note(self._session.state.language, told, plan=plan.name, step=first)

    def drop(self, plan: Plan) -> None:
        self._session.emit(PlanChanged(plan=plan.model_copy(update={"status": "failed"}), active=False))
        self._phases.plan_refused()


class PlanAnswer(Policy):
    """Yes approves, no drops; everything else goes to the model, which may revise."""

    def __init__(self, approval: PlanApproval) -> None:
        self._approval = approval

    async def opening(self, turn: TurnSoFar) -> str | Ending | None:
        plan = turn.state.plan
        if plan is None or plan.status != "draft":
            return None
        answer = read_answer(turn.request)
        if answer and answer.choice == "yes":
            return await self._approval.approve(plan)
        if answer and answer.choice == "no" and not answer.text:
            self._approval.drop(plan)
            return Ending("pending_user", say("plan.dropped", name=plan.name))
        return turn.note("plan_waits", plan=plan.name)
