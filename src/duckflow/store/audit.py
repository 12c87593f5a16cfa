"""The record: for every action the gate it passed, the answer, and what came of it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from duckflow.events.types import (
    ActionFinished,
    ActionStarted,
    DecisionMade,
    Event,
    Intervened,
    PastForgotten,
    QuestionAsked,
    QuestionClosed,
    Reviewed,
)
from duckflow.state.action import Action
from duckflow.state.phrase import Phrase


@dataclass(slots=True)
class AuditEntry:
    """One action, from the question to the evidence. `gate` is empty when none was needed."""

    at: float
    operation: str
    args: dict[str, Any]
    why: str
    gate: str = ""
    answer: str = ""
    ok: bool | None = None
    changed: tuple[str, ...] = ()
    evidence: str = ""
    told: Phrase | None = None
    subject: str = ""
    """Name of the argument that says what it is about."""

    @property
    def about(self) -> str:
        return str(self.args.get(self.subject, ""))

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"told": self.told.model_dump() if self.told else None}


def list_audit(events: Iterable[Event]) -> list[AuditEntry]:
    """Joined from the journal, in the order things were begun or asked for. What has no end was cut off; what was asked
    for and has no answer was not done."""
    entries: dict[str, AuditEntry] = {}
    decided: dict[str, Action] = {}
    asked: dict[str, tuple[str, ...]] = {}
    answers: dict[str, str] = {}
    gate_of: dict[str, str] = {}
    for event in events:
        match event:
            case DecisionMade():
                decided = {action.action_id: action for action in event.decision.actions}
            case QuestionAsked() if event.question.kind == "duck_call":
                why = f"{event.question.reason} ({event.question.severity})"
                entries[event.question.question_id] = AuditEntry(event.at, "duck_call", {}, why)
            case QuestionAsked():
                asked[event.question.question_id] = event.question.gate.action_ids if event.question.gate else ()
                for action_id in asked[event.question.question_id]:
                    gate = gate_of[action_id] = event.question.question_id
                    if action := decided.get(action_id):
                        entries[action_id] = _entry(event.at, action, gate)
            case QuestionClosed(answer=None):
                pass
            case QuestionClosed(answer=answer) if answer and (entry := entries.get(event.question_id)):
                entry.answer, entry.ok = _answered(answer.choice, answer.text), True
            case QuestionClosed(answer=answer) if answer:
                answers[event.question_id] = _answered(answer.choice, answer.text)
                for action_id in asked.get(event.question_id, ()):
                    if entry := entries.get(action_id):
                        entry.answer = answers[event.question_id]
            case Intervened():
                name = f"pacemaker.{event.how}"
                entries[f"{name} {len(entries)}"] = AuditEntry(
                    event.at, name, {}, event.severity, ok=True, told=event.what[-1]
                )
            case Reviewed():
                told = f"{event.review.rating}, {event.review.verdict} ({event.review.by})"
                entries[f"review {len(entries)}"] = AuditEntry(event.at, "review", {}, told, ok=True)
            case PastForgotten() if event.words:
                entries[f"forget {len(entries)}"] = AuditEntry(
                    event.at, "/forget", {"words": event.words}, "", ok=True, subject="words"
                )
            case ActionStarted():
                action = event.action
                gate = gate_of.get(action.action_id, "")
                entries[action.action_id] = _entry(event.at, action, gate, answers.get(gate, ""))
            case ActionFinished() if event.result.action_id in entries:
                result, entry = event.result, entries[event.result.action_id]
                entry.ok, entry.changed = result.ok, result.changed
                entry.evidence, entry.told = result.for_model, result.for_user
            case _:
                pass
    return list(entries.values())


def _entry(at: float, action: Action, gate: str, answer: str = "") -> AuditEntry:
    return AuditEntry(at, action.operation, action.args, action.reasoning, gate, answer, subject=action.subject)


def _answered(choice: str, text: str) -> str:
    return f"{choice}: {text}" if text and choice != "edit" else choice
