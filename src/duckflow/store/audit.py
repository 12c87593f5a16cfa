"""The record: for every action the gate it passed, the answer, and what came of it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from duckflow.events.types import (
    ActionFinished,
    ActionStarted,
    DuckAnswered,
    DuckCalled,
    Event,
    GateAnswered,
    GateOpened,
    Intervened,
    PastForgotten,
    Reviewed,
)
from duckflow.state.phrase import Phrase
from duckflow.state.question import Question


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

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"told": self.told.model_dump() if self.told else None}


def list_audit(events: Iterable[Event]) -> list[AuditEntry]:
    """Joined from the journal, in the order things were begun. What has no end was cut off."""
    entries: dict[str, AuditEntry] = {}
    asked: dict[str, Question] = {}
    answers: dict[str, str] = {}
    gate_of: dict[str, str] = {}
    for event in events:
        match event:
            case GateOpened():
                asked[event.question.question_id] = event.question
                for action_id in event.question.gate.action_ids if event.question.gate else ():
                    gate_of[action_id] = event.question.question_id
            case GateAnswered():
                answers[event.question_id] = _answered(event.answer.choice, event.answer.text)
            case Intervened():
                name = f"pacemaker.{event.how}"
                entries[f"{name} {len(entries)}"] = AuditEntry(
                    event.at, name, {}, event.severity, ok=True, told=event.what[-1]
                )
            case Reviewed():
                told = f"{event.review.rating}, {event.review.verdict} ({event.review.by})"
                entries[f"review {len(entries)}"] = AuditEntry(event.at, "review", {}, told, ok=True)
            case DuckCalled():
                why = f"{event.reason} ({event.severity})"
                entries[event.question.question_id] = AuditEntry(event.at, "duck_call", {}, why)
            case DuckAnswered() if event.question_id in entries:
                entry = entries[event.question_id]
                entry.answer, entry.ok = _answered(event.answer.choice, event.answer.text), True
            case PastForgotten() if event.words:
                entries[f"forget {len(entries)}"] = AuditEntry(event.at, "/forget", {"words": event.words}, "", ok=True)
            case ActionStarted():
                action = event.action
                gate = gate_of.get(action.action_id, "")
                entries[action.action_id] = AuditEntry(
                    event.at, action.operation, action.args, action.reasoning, gate, answers.get(gate, "")
                )
            case ActionFinished() if event.result.action_id in entries:
                result, entry = event.result, entries[event.result.action_id]
                entry.ok, entry.changed = result.ok, result.changed
                entry.evidence, entry.told = result.for_model, result.for_user
            case _:
                pass
    return list(entries.values())


def _answered(choice: str, text: str) -> str:
    return f"{choice}: {text}" if text and choice != "edit" else choice
