"""The record: for every action the Gate it passed, the answer, and what came of it."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from duckflow.events.types import Event
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.safety.path_names import shown
from duckflow.safety.secrets import redacted
from duckflow.state.action import Action
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Answer, Question
from duckflow.view.items import ActionItem, Item, NoticeItem, PlanItem, QuestionItem, TextItem, TurnItem
from duckflow.view.view import items_of


@dataclass(slots=True)
class AuditEntry:
    """One action, from the question to the evidence; or the yes to a plan. `gate` is empty when none was needed."""

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


def list_audit(record: Iterable[tuple[int, Event]]) -> list[AuditEntry]:
    """In the order in which things were begun or asked for. An action without an end was cut off; one that was asked
    for and has no answer was not done."""
    entries: list[AuditEntry] = []
    said, approved = "", set[str]()
    for item in items_of(record):
        match item:
            case TextItem(by="user"):
                said = item.text
            case PlanItem(plan=plan):
                yes = plan.status == "approved" and plan.plan_id not in approved
                if yes or not item.active:
                    result = say("plan.approved", name=plan.name) if yes else None
                    args = {"name": plan.name}
                    entries.append(AuditEntry(item.at, "plan", args, "", "", said, yes, told=result, subject="name"))
                approved = approved - {plan.plan_id} if plan.status == "draft" else approved | {plan.plan_id}
            case TurnItem():
                said = ""
            case _:
                entries += _entries(item)
    return entries


def _entries(item: Item) -> Iterator[AuditEntry]:
    match item:
        case ActionItem(action=action) if action:
            yield _deed(item, action)
        case QuestionItem(question=question) if question and question.kind == "duck_call":
            yield _duck_call(item, question)
        case NoticeItem(about="intervened"):
            yield AuditEntry(item.at, f"pacemaker.{item.subject}", {}, str(item.severity), ok=True, told=item.what)
        case NoticeItem(about="reviewed", review=review) if review:
            why = f"{review.rating}, {review.verdict} ({review.by})"
            yield AuditEntry(item.at, "review", {}, why, ok=True)
        case NoticeItem(about="forgotten"):
            yield AuditEntry(item.at, "/forget", {"words": item.subject}, "", ok=True, subject="words")
        case NoticeItem(about="undone"):
            yield AuditEntry(item.at, "/undo" if item.subject else "/redo", {}, "", ok=True, told=item.what)
        case _:
            pass


def _deed(item: ActionItem, action: Action) -> AuditEntry:
    why = "" if action.reasoning == action.operation else action.reasoning
    entry = AuditEntry(item.at, item.operation, action.args, why, item.gate, subject=action.subject)
    if item.gate:
        entry.answer = _answered(item.answer)
    if result := item.result:
        entry.ok, entry.changed = result.ok, result.changed
        entry.evidence, entry.told = result.for_model, result.for_user
    return entry


def _duck_call(item: QuestionItem, question: Question) -> AuditEntry:
    why = f"{question.reason} ({question.severity})"
    return AuditEntry(item.at, "duck_call", {}, why, answer=_answered(item.answer), ok=True if item.answer else None)


def _answered(answer: Answer | None) -> str:
    if answer is None:
        return ""
    return f"{answer.choice}: {answer.text}" if answer.text and answer.choice != "edit" else answer.choice


MOST_NAMED = 10
MARKS = {True: "✓", False: "✗", None: "…"}


def audit_lines(entries: Iterable[AuditEntry], words: Words) -> list[str]:
    lines: list[str] = []
    for entry in entries:
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
        subject, came = entry.about, words.phrase(entry.told) if entry.told else ""
        lines.append(f"{MARKS[entry.ok]} {when}  {entry.operation} {' '.join(subject.split())}")
        # Of an answer the reason may be its own beginning.
        why = "" if came.startswith(entry.why.rstrip("…")) else entry.why
        why = words("audit.typed") if entry.operation.startswith("user.") else why
        unanswered = words("audit.unanswered") if entry.gate and entry.ok is None else ""
        parts = {
            "audit.why": why,
            "audit.answer": entry.answer or unanswered,
            "audit.came": came,
            "audit.changed": name_first(entry.changed),
        }
        lines += [f"    {words(key)}: {text}".replace("\n", "\n      ") for key, text in parts.items() if text]
    return [plain(redacted(line)) for line in lines] or [words("audit.nothing")]


def name_first(paths: Sequence[str]) -> str:
    """The first few paths, and how many there are beyond."""
    more = [f"… +{len(paths) - MOST_NAMED}"] if len(paths) > MOST_NAMED else []
    return ", ".join([*map(shown, paths[:MOST_NAMED]), *more])
