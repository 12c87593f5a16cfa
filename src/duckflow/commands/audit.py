"""The audit: every action with the question that was asked before it, the user's answer, and the result."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from duckflow.events.types import Event
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.safety.path_names import shown
from duckflow.safety.secrets import redacted
from duckflow.state.action import Action
from duckflow.state.data import Phrase, say
from duckflow.state.question import Answer, Question
from duckflow.view.items import ActionItem, Item, NoticeItem, PlanItem, QuestionItem, TextItem, TurnItem
from duckflow.view.view import items_of

NAMED_ANSWERS = frozenset(("yes", "no", "session", "always", "edit", "all"))


@dataclass(slots=True)
class AuditEntry:
    """An audited action, from the question about it to the evidence of its result, or the user's yes to a plan. `gate`
    is empty if no question was needed."""

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
    """The name of the argument that says what the action is about."""
    why_told: Phrase | None = None
    answer_told: Phrase | None = None
    """`why_told` and `answer_told` are the reason and the answer as phrases. They are set if the program itself wrote
    `why` and `answer`."""
    answer_text: str = ""
    """The user's words that came with the answer."""

    @property
    def about(self) -> str:
        return str(self.args.get(self.subject, ""))

    def as_json(self) -> dict[str, Any]:
        phrases = {"told": self.told, "why_told": self.why_told, "answer_told": self.answer_told}
        return asdict(self) | {name: phrase.model_dump() if phrase else None for name, phrase in phrases.items()}

    def answer_line(self, words: Words) -> str:
        choice = words.phrase(self.answer_told) if self.answer_told else ""
        return ": ".join(filter(None, (choice, self.answer_text))) or self.answer


def list_audit(record: Iterable[tuple[int, Event]]) -> list[AuditEntry]:
    """Returns the entries in the order in which actions were begun or asked for. An action without an end was cut off.
    An action that was asked for and has no answer was not done."""
    entries: list[AuditEntry] = []
    message, approved_ids = "", set[str]()
    for item in items_of(record):
        match item:
            case TextItem(by="user"):
                message = item.text
            case PlanItem(plan=plan):
                is_new_approval = plan.status == "approved" and plan.plan_id not in approved_ids
                if is_new_approval or not item.active:
                    phrase = say("plan.approved", name=plan.name) if is_new_approval else None
                    args = {"name": plan.name}
                    entries.append(
                        AuditEntry(item.at, "plan", args, "", "", message, is_new_approval, told=phrase, subject="name")
                    )
                approved_ids = (
                    approved_ids - {plan.plan_id} if plan.status == "draft" else approved_ids | {plan.plan_id}
                )
            case TurnItem():
                message = ""
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
            entry = AuditEntry(item.at, f"pacemaker.{item.subject}", {}, str(item.severity), ok=True, told=item.what)
            entry.why_told = say(f"severity.{item.severity}") if item.severity else None
            yield entry
        case NoticeItem(about="reviewed", review=review) if review:
            reason = f"{review.rating}, {review.verdict} ({review.by})"
            yield AuditEntry(item.at, "review", {}, reason, ok=True)
        case NoticeItem(about="forgotten"):
            yield AuditEntry(item.at, "/forget", {"words": item.subject}, "", ok=True, subject="words")
        case NoticeItem(about="undone"):
            yield AuditEntry(item.at, "/undo" if item.subject else "/redo", {}, "", ok=True, told=item.what)
        case _:
            pass


def _deed(item: ActionItem, action: Action) -> AuditEntry:
    reason = "" if action.reasoning == action.operation else action.reasoning
    audit_entry = AuditEntry(item.at, item.operation, action.args, reason, item.gate, subject=action.subject)
    if item.gate:
        _note_answer(audit_entry, item.answer)
    if result := item.result:
        audit_entry.ok, audit_entry.changed = result.ok, result.changed
        audit_entry.evidence, audit_entry.told = result.for_model, result.for_user
    return audit_entry


def _duck_call(item: QuestionItem, question: Question) -> AuditEntry:
    reason = f"{question.reason} ({question.severity})"
    entry = AuditEntry(item.at, "duck_call", {}, reason, ok=True if item.answer else None, why_told=question.title)
    _note_answer(entry, item.answer, {choice.key: choice.label for choice in question.choices})
    return entry


def _note_answer(entry: AuditEntry, answer: Answer | None, labels: Mapping[str, Phrase] = MappingProxyType({})) -> None:
    if answer is None:
        return
    text = answer.text if answer.choice != "edit" else ""
    entry.answer, entry.answer_text = f"{answer.choice}: {text}" if text else answer.choice, text
    chosen_phrase = say(f"audit.chosen.{answer.choice}") if answer.choice in NAMED_ANSWERS else None
    entry.answer_told = labels.get(answer.choice) or chosen_phrase


MOST_NAMED = 10
MARKS = {True: "✓", False: "✗", None: "…"}


def audit_lines(entries: Iterable[AuditEntry], words: Words) -> list[str]:
    lines: list[str] = []
    for audit_entry in entries:
        time_text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(audit_entry.at))
        subject, outcome_text = audit_entry.about, words.phrase(audit_entry.told) if audit_entry.told else ""
        lines.append(f"{MARKS[audit_entry.ok]} {time_text}  {audit_entry.operation} {' '.join(subject.split())}")
        # The reason of an answer may only repeat how the answer begins.
        reason = "" if outcome_text.startswith(audit_entry.why.rstrip("…")) else audit_entry.why
        reason = words.phrase(audit_entry.why_told) if audit_entry.why_told else reason
        reason = words("audit.typed") if audit_entry.operation.startswith("user.") else reason
        unanswered_note = words("audit.unanswered") if audit_entry.gate and audit_entry.ok is None else ""
        line_values = {
            "audit.why": reason,
            "audit.answer": audit_entry.answer_line(words) or unanswered_note,
            "audit.came": outcome_text,
            "audit.changed": name_first(audit_entry.changed),
        }
        lines += [f"    {words(key)}: {text}".replace("\n", "\n      ") for key, text in line_values.items() if text]
    return [plain(redacted(line)) for line in lines] or [words("audit.nothing")]


def name_first(paths: Sequence[str]) -> str:
    """Returns the first few paths, and the number of further ones."""
    more_note = [f"… +{len(paths) - MOST_NAMED}"] if len(paths) > MOST_NAMED else []
    return ", ".join([*map(shown, paths[:MOST_NAMED]), *more_note])
