"""The result of a turn without a person: its answers, its actions, the actions that were left out, and how it ended."""

from typing import Any

from duckflow.errors import Outcome, ended_well, exit_code_of
from duckflow.events.ports import Conversation
from duckflow.events.types import Event
from duckflow.i18n.words import Words
from duckflow.state.action import ActionResult
from duckflow.state.agent import AgentState
from duckflow.state.checks import state_of
from duckflow.state.data import LEFT_OUT, Phrase
from duckflow.state.mode import Mode
from duckflow.state.phase import Status
from duckflow.state.question import Question
from duckflow.state.turn_summary import CalledDuck, DoneAction, TurnSummary
from duckflow.view.items import (
    PASSING,
    ActionItem,
    Item,
    NoticeItem,
    PlanItem,
    QuestionItem,
    ReportItem,
    TextItem,
    TurnItem,
    notice_line,
)
from duckflow.view.view import View

UNVERIFIED = "review.unverified"


class TurnReport:
    """Gathers the events of one turn and its jobs into a result. `alone` is true if nobody leads the conversation: then
    a job that is cancelled between turns counts as given up. With `require_proof`, work called done without proof is no
    success."""

    def __init__(
        self, conversation: Conversation, words: Words, view: View, alone: bool = True, require_proof: bool = False
    ) -> None:
        self._conversation = conversation
        self._words = words
        self._view = view
        self._alone = alone
        self._require_proof = require_proof
        self.said: list[str] = []
        self.notices: list[str] = []
        self.duck_calls: list[Question] = []
        self.stopped_at: Question | None = None
        """The latest Gate (the question before a risky action) that nobody was there to answer."""
        self.complaint = ""
        """The reason why the message could not be taken."""
        self.left_undone = ""
        """A sentence about a plan that should have been carried through and was not; empty if there is none."""
        self.ended: tuple[Outcome, Phrase | None] | None = None
        """The outcome of the turn, and its reason."""
        self._actions: list[DoneAction] = []
        self._left_out: list[str] = []
        """The actions left out because nobody could be asked."""
        self._acted = self._lacks_deeds = False
        """Two flags: an action was done; an action that would have changed things was left out."""
        self._job_failed = False
        self._stopped: set[str] = set()
        """The jobs that were paused and then ended, because nobody is there to resume them."""
        self._doubt = ""
        self._waits = False
        """True if the turn ended with a question that must be answered before the work can go on."""

    @property
    def empty(self) -> bool:
        return not (self.said or self._actions or self.ended)

    def hear(self, number: int, event: Event) -> list[Item]:
        """Takes an event, and returns the items that the event has changed."""
        items = list(self._view.hear(number, event))
        for item in items:
            self._note(item)
        return items

    def result(self, state: AgentState, fits: bool = True, outcome: Outcome | None = None) -> TurnSummary:
        """Returns the summary. `fits` says whether the answer has the wanted shape. Without an `outcome`, the outcome
        of the turn counts."""
        outcome, cause = outcome or self._outcome(state, fits), self.ended[1] if self.ended else None
        reason = self._words.phrase(cause) if cause else self.complaint
        if self.stopped_at and outcome == "gate":
            reason = _stopped_at(self.stopped_at, self._conversation.choices.mode, self._words)
        is_drafted = state.plan is not None and state.plan.status == "draft"
        is_offer = outcome == "pending_user" and not (self._waits or is_drafted)
        code = exit_code_of("done" if is_offer else outcome)
        left_out_note = self._words("headless.left_out", what=", ".join(self._left_out)) if self._left_out else ""
        answer = "\n\n".join(filter(None, (*self.said, left_out_note)))
        check_state = state_of(state.check_runs)
        return TurnSummary(
            session_id=state.session_id,
            model=state.model,
            result=answer or (reason if code == 0 else ""),
            outcome=outcome,
            exit_code=code,
            why=reason or self._doubt or self.left_undone,
            question=state.asked if outcome == "pending_user" else "",
            duck_calls=tuple(map(self._verdict, self.duck_calls)),
            vitals=state.vitals,
            plan=state.plan.outline() if state.plan else None,
            turn=state.turn,
            loops=state.loop,
            actions=tuple(self._actions),
            checks=check_state.removesuffix("_before"),
            check_runs=tuple(
                {**run.report.model_dump(mode="json"), "outdated": run.outdated, "as_before": run.as_before}
                for run in state.check_runs
            ),
            proof=self._proof(state),
            left_out=tuple(self._left_out),
            files_changed=tuple(dict.fromkeys(path for action in self._actions for path in action.changed)),
            usage=state.usage,
        )

    def _outcome(self, state: AgentState, fits: bool) -> Outcome:
        """Returns how the turn ended. A turn that ended well still fails if its jobs fail, its answer has the wrong
        shape, or the checks of its changes fail."""
        outcome = self.ended[0] if self.ended else "done" if self.said else "failed"
        if not ended_well(outcome):
            return outcome
        if self._stopped:
            return "pacemaker" if any(call.job in self._stopped for call in self.duck_calls) else "failed"
        if self._left_out and (self._waits or (self._lacks_deeds and not self._acted)):
            # The task could not be done without the actions left out.
            return "gate"
        check_state = state_of(state.check_runs)
        if (check_state == "failing" and state.changed_in_turn) or (check_state.startswith("failing") and self._doubt):
            return "failed"
        if self._doubt and state.status is Status.ERROR:
            # The last command has failed, or the model itself says that the work is not done.
            return "failed"
        if self._job_failed or self.left_undone or not fits:
            return "failed"
        is_unproven = state.changed_in_turn and not (state.proof and state.proof.holds)
        return "unproven" if self._require_proof and is_unproven else outcome

    def _proof(self, state: AgentState) -> dict[str, Any] | None:
        proof = state.proof
        if proof is None:
            return None
        sentences = tuple(self._words.phrase(part) for part in proof.parts())
        return {**proof.model_dump(mode="json", exclude={"why"}), "verdict": proof.verdict, "said": sentences}

    def _note(self, item: Item) -> None:
        match item:
            case QuestionItem(closed=False, question=question) if question and question.kind == "duck_call":
                self.duck_calls.append(question)
            case ActionItem(result=result) if result:
                self._note_result(result)
            case TextItem(by="model", state="whole", text=text) if text:
                self.said.append(text)
            case NoticeItem(about="job"):
                self._job_failed = item.subject == "interrupted"
            case NoticeItem(what=what) if item.about in PASSING and what:
                self.notices.append(notice_line(item, self._words))
                self._doubt = self.notices[-1] or self._doubt if what.key == UNVERIFIED else self._doubt
            case PlanItem(active=True, plan=plan) if plan.status == "draft":
                from duckflow.commands.plan_tree import plan_tree

                self.said.append(plan_tree(plan, self._words))
            case ReportItem():
                from duckflow.commands.plan_tree import job_summary

                self.said.append(job_summary(item.job_name, item.status, item.report, self._words))
                self._job_failed = item.status == "failed"
                has_called = any(call.job == item.job for call in self.duck_calls)
                if item.status == "cancelled" and self._alone and (has_called or not self._conversation.in_turn):
                    self._stopped.add(item.job)
            case TurnItem(outcome=outcome) if outcome:
                self.ended = outcome, item.why
                self._waits = item.waits
            case _:
                pass

    def _note_result(self, result: ActionResult) -> None:
        changed_paths = tuple(result.changed)
        self._actions.append(
            DoneAction(operation=result.operation, ok=result.ok, changed=changed_paths, for_model=result.for_model)
        )
        has_effect = result.effect not in ("read", "talk")
        if result.for_user.key == LEFT_OUT:
            subject = str(result.for_user.values["what"])
            self._left_out += [subject] if subject not in self._left_out else []
            self._lacks_deeds |= has_effect
        self._left_out = [subject for subject in self._left_out if subject not in changed_paths]
        self._acted |= result.ok and has_effect

    def _verdict(self, call: Question) -> CalledDuck:
        details = tuple(self._words.phrase(phrase) for phrase in call.details)
        situation = self._words.phrase(call.title)
        return CalledDuck(reason=call.reason, severity=call.severity, situation=situation, findings=details)


def _stopped_at(question: Question, mode: str, words: Words) -> str:
    """Says which action needs a yes, and which mode would let it through."""
    files = ", ".join(_what(question, words))
    if question.gate and all(operation.startswith("mcp__") for operation in question.gate.operations):
        return words("headless.gate_outside", files=files)
    if mode == Mode.FULL_AUTO or (question.gate and question.gate.always):
        return words("headless.gate_always", files=files)
    only_edits = mode == Mode.ASK and question.gate and not question.gate.commands
    return words("headless.gate", files=files, mode=Mode.AUTO_EDIT if only_edits else Mode.FULL_AUTO)


def _what(question: Question, words: Words) -> list[str]:
    """Returns the whole commands and the files; if there are none, the operations and the reasons of their risk."""
    gate = question.gate
    if gate is None:
        return []
    reasons = [words.phrase(reason) for reason in gate.reasons]
    return [*gate.commands, *(impact.path for impact in gate.impacts)] or [*gate.operations, *reasons]
