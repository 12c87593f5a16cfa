"""The user's word on a draft plan, read before any model is asked."""

from duckflow.agent.connection import ModelConnection
from duckflow.agent.duck_answer import Ending
from duckflow.agent.phases import Phases
from duckflow.agent.session import Session
from duckflow.events.types import Noticed, PlanChanged
from duckflow.safety.answers import read_answer
from duckflow.state.phrase import say
from duckflow.state.plan import Plan
from duckflow.tools.plan.ports import Jobs


class Approval:
    """Yes approves, no drops; everything else goes to the model, which may revise."""

    def __init__(self, session: Session, phases: Phases, jobs: Jobs, connection: ModelConnection) -> None:
        self._connection = connection
        self._session = session
        self._jobs = jobs
        self._phases = phases

    async def hear(self, text: str) -> tuple[str, Ending | None]:
        """What the model is told of it, or how the turn ends at once."""
        plan = self._session.state.plan
        if plan is None or plan.status != "draft":
            return "", None
        answer = read_answer(text)
        if answer and answer.choice == "yes":
            return await self.approve(plan)
        if answer and answer.choice == "no" and not answer.text:
            self.drop(plan)
            return "", ("pending_user", say("plan.dropped", name=plan.name))
        return (
            f"the draft plan {plan.name!r} waits for the user's yes. If this message asks for changes, use "
            "plan_tool.revise; otherwise answer it with response",
            None,
        )

    async def approve(self, plan: Plan) -> tuple[str, Ending | None]:
        """What the model is told to begin with, or how the turn ends at once."""
        self._session.emit(PlanChanged(plan=plan.model_copy(update={"status": "approved"})))
        self._session.emit(Noticed(what=say("plan.approved", name=plan.name)))
        self._phases.plan_approved()
        if (await self._connection.ready_profile()).local:
            # A small model loses the thread between a yes and the tasks: the whole plan is handed over at once.
            job = self._jobs.start(plan.plan_id, [step.step_id for step in plan.steps])
            return "", ("deferred", say("job.started", job=job.name))
        step = plan.next_step()
        first = f"{step.name} ({step.step_id})" if step else "-"
        return (
            f"the user approved the plan {plan.name!r}. Now task_tool.generate_list and task_loop.run for its "
            f"first step: {first}; then say what happens, with next_step defer",
            None,
        )

    def drop(self, plan: Plan) -> None:
        self._session.emit(PlanChanged(plan=plan.model_copy(update={"status": "failed"}), active=False))
        self._phases.plan_refused()
