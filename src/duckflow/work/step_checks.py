"""A completed step stays so while its own check holds: a result that speaks against it opens it again."""

from collections.abc import Sequence

from duckflow.agent.session import Session
from duckflow.events.types import ActionFinished, Event, Noticed, TurnUndone
from duckflow.events.work import StepChanged
from duckflow.state.action import Evidence, evidence_of
from duckflow.state.phrase import say
from duckflow.state.plan import Plan, Step
from duckflow.tools.plan.ports import Folder


class StepChecks:
    """Listens, wherever something is done: in the conversation, in a job, by the user's own undo."""

    def __init__(self, session: Session, folder: Folder) -> None:
        self._session = session
        self._folder = folder
        self._opened: set[str] = set()
        session.subscribe(self._hear)

    def _hear(self, event: Event) -> None:
        match event:
            case ActionFinished():
                self._look(evidence_of(event.result), event.result.changed)
            case TurnUndone():
                self._look(None, event.changed)
            case _:
                pass

    def _look(self, found: Evidence | None, changed: Sequence[str]) -> None:
        plan = self._session.state.plan
        if plan is None or plan.status in ("draft", "failed") or not (found or changed):
            return
        from duckflow.tools.plan.proof import refuted

        why, opened = "", list[str]()
        for step in plan.steps:
            if step.status == "completed" and step.evidence:
                against = refuted(step, found, changed, self._folder)
                if against:
                    why, opened = against, [*opened, step.name]
                    self._opened.add(step.step_id)
                    self._change(plan, step, "")
            elif step.status == "completed" or step.step_id in self._opened:
                self._close(plan, step)
        if opened:
            self._session.emit(Noticed(what=say("plan.step_reopened", step=", ".join(opened), why=why)))

    def _close(self, plan: Plan, step: Step) -> None:
        """What is shown after all counts: for a step that was called done too early, and for one opened by a check."""
        from duckflow.state.criterion import named_in
        from duckflow.tools.plan.proof import proof

        evidence = proof(self._session.state, step, self._folder) if named_in(step.success) else ""
        if evidence:
            self._opened.discard(step.step_id)
            self._change(plan, step, evidence)
            self._session.emit(Noticed(what=say("plan.step_shown", step=step.name, evidence=evidence)))

    def _change(self, plan: Plan, step: Step, evidence: str) -> None:
        status = "completed" if evidence else "pending"
        self._session.emit(StepChanged(plan_id=plan.plan_id, step_id=step.step_id, status=status, evidence=evidence))
