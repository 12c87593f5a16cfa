"""Watches results and undos: they open steps of the plan again, complete them, or withdraw a plan."""

from collections.abc import Sequence

from duckflow.agent.session import Session
from duckflow.events.types import ActionFinished, Event, MessageAdded, Noticed, PlanChanged, TurnUndone
from duckflow.events.work import StepChanged
from duckflow.i18n.template import note
from duckflow.state.action import Evidence, evidence_of
from duckflow.state.agent import OPEN
from duckflow.state.data import say
from duckflow.state.message import Message
from duckflow.state.plan import Plan, PlanStatus, Step, StepStatus
from duckflow.tools.plan.folder import WorkFolder


class StepChecks:
    """Opens a completed step again when a result speaks against it, and completes it when a later result shows that the
    step is done. Results of the conversation, of jobs and of the user's own undo all count. A plan of whose work an
    undo leaves nothing is withdrawn, until a redo."""

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
                self._withdraw(event) if event.back else self._restore(event)
                self._take_back(event) if event.back else self._bring_back()
                self._look(None, event.changed)
            case _:
                pass

    def _withdraw(self, event: TurnUndone) -> None:
        """Withdraws every plan of whose work the undo has left nothing."""
        for plan in list(self._session.state.plans.values()):
            if plan.status != "draft" and not plan.given_up and self._has_lost_all(plan, event):
                self._change_plan(plan, "withdrawn")

    def _has_lost_all(self, plan: Plan, event: TurnUndone) -> bool:
        """Says whether the undo took back work of the plan and has left none. A job that can go on keeps its plan, and
        so does the conversation as long as steps are open."""
        jobs = [job for job in self._session.state.jobs.values() if job.plan_id == plan.plan_id]
        if jobs:
            step_ids = {step.step_id for step in plan.steps}
            is_touched, is_left = not step_ids.isdisjoint(event.steps), not step_ids.isdisjoint(event.steps_left)
            return is_touched and not is_left and all(job.status not in OPEN for job in jobs)
        is_about_plan = _is_named(plan, event) and any(turn >= plan.since for turn in event.turns)
        return is_about_plan and plan.all_done and all(turn < plan.since for turn in event.turns_left)

    def _restore(self, event: TurnUndone) -> None:
        """Brings back every withdrawn plan whose work the redo has done again. Its steps are as they were."""
        for plan in list(self._session.state.plans.values()):
            is_step_redone = any(step.step_id in event.steps for step in plan.steps)
            is_redone = is_step_redone or (event.turn >= plan.since and _is_named(plan, event))
            if plan.status == "withdrawn" and is_redone:
                self._change_plan(plan, "completed" if plan.all_done else "in_progress")

    def _change_plan(self, plan: Plan, status: PlanStatus) -> None:
        """Withdraws a plan or brings it back, and tells the user and the model."""
        state, session, key = self._session.state, self._session, "withdrawn" if status == "withdrawn" else "restored"
        is_active = plan.plan_id == state.active_plan
        session.emit(PlanChanged(plan=plan.model_copy(update={"status": status}), active=is_active))
        session.emit(Noticed(what=say(f"plan.{key}", name=plan.name)))
        for_model = note(state.language, f"plan_{key}", plan=plan.name)
        session.emit(MessageAdded(message=Message(role="system", text=for_model, turn=state.turn)))

    def _take_back(self, event: TurnUndone) -> None:
        """Reopens the steps whose work or files the undo has reset, and the steps that depend on them."""
        from duckflow.tools.plan.folder import made_by

        plan = self._session.state.plan
        undone_steps = dict[str, str]()
        for step in plan.steps if plan and plan.status != "draft" and not plan.given_up else ():
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
        if plan is None or plan.status == "draft" or plan.given_up or not (evidence or changed):
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


def _is_named(plan: Plan, event: TurnUndone) -> bool:
    return any(plan.names(path) for path in event.changed)
