"""A session as a story: its facts and its turns."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from duckflow.commands.command import cost_lines
from duckflow.commands.session_rows import short_folder
from duckflow.events.apply import apply
from duckflow.events.types import Event
from duckflow.i18n.words import Words, turns
from duckflow.safety.secret_diffs import leads_to_secret, without_secret_lines
from duckflow.safety.secrets import redacted
from duckflow.state.agent import AgentState, Headline
from duckflow.state.data import Phrase, say
from duckflow.state.phase import Vitals
from duckflow.state.question import NOBODY, Question
from duckflow.view.items import (
    ActionItem,
    ChosenItem,
    Item,
    NoticeItem,
    PlanItem,
    QuestionItem,
    ReportItem,
    TextItem,
    TurnItem,
    VitalsItem,
)
from duckflow.view.view import View

LONGEST = 20_000
USERS_OWN = ("user.shell",)
PLANS_TOLD = {"draft": "export.plan_drafted", "approved": "plan.approved"}
Kind = Literal["user", "said", "deed", "gate", "duck", "note"]


@dataclass(slots=True)
class Entry:
    """One entry of a turn, as both formats write it. `ok` is None if the action was cut off, or the question never
    answered."""

    kind: Kind
    text: str = ""
    phrase: Phrase | None = None
    ok: bool | None = None
    details: list[Phrase] = field(default_factory=list[Phrase])
    output: str = ""
    diff: str = ""
    answer: str = ""
    choices: dict[str, Phrase] = field(default_factory=dict[str, Phrase])
    """The possible answers, by their keys."""

    def answered(self, words: Words) -> str:
        """Returns the answer in the user's language."""
        if not self.answer:
            return words("export.unanswered")
        label = self.choices.get(self.answer)
        answer = ": ".join(part for part in (words.phrase(label) if label else self.answer, self.text) if part)
        return words("export.answer", answer=answer)


@dataclass(slots=True)
class TurnRecord:
    number: int
    at: float
    asked: str = ""
    entries: list[Entry] = field(default_factory=list[Entry])
    why: Phrase | None = None
    outcome: str = ""


class Transcript:
    """The transcript of a session, fed with every event in order. Secrets are removed before anything is kept."""

    def __init__(self) -> None:
        self.state = AgentState()
        self.started = 0.0
        self.turns: list[TurnRecord] = []
        self.vitals: list[tuple[int, Vitals]] = []
        self._view = View()
        self._entries: dict[str, Entry] = {}

    def hear_all(self, record: Iterable[tuple[int, Event]]) -> "Transcript":
        for number, event in record:
            self.hear(number, event)
        return self

    def hear(self, number: int, event: Event) -> None:
        apply(self.state, event)
        # The whole conversation is stored here turn by turn, so the state does not need it as well.
        self.state.messages.clear()
        for item in self._view.hear(number, event):
            self._draw(item)

    def _draw(self, item: Item) -> None:
        match item:
            case ChosenItem():
                self.started = self.started or item.at
            case TurnItem(outcome=None):
                self.turns.append(TurnRecord(item.turn, item.at))
            case TurnItem(outcome=outcome, why=why) if self.turns and outcome:
                self.turns[-1].outcome, self.turns[-1].why = outcome, why
            case TextItem(by="user"):
                self._asked(clean(item.text), item.meanwhile)
            case TextItem(by="model"):
                self._add(Entry("said", clean(item.text)))
            case VitalsItem():
                self.vitals.append((item.turn, item.vitals))
            case ActionItem():
                self._act(item)
            case QuestionItem(question=question) if question:
                self._question(item, question)
            case _:
                self._note(item)

    def _asked(self, text: str, meanwhile: bool) -> None:
        if self.turns and not self.turns[-1].asked and not meanwhile:
            self.turns[-1].asked = text
        else:
            self._add(Entry("user", text, say("chat.meanwhile") if meanwhile else None))

    def _act(self, item: ActionItem) -> None:
        """Adds an action at the place where it began, not where it was asked about."""
        if item.talks or item.state in ("asked", "left"):
            return
        entry = self._entries.get(item.id)
        if entry is None:
            entry = self._entries[item.id] = _deed(item, Path(self.state.folder))
            self._add(entry)
        if result := item.result:
            entry.ok, entry.phrase, entry.output = result.ok, _cleaned(result.for_user), clean(result.for_model)

    def _question(self, item: QuestionItem, question: Question) -> None:
        entry = self._entries.get(item.id)
        if entry is None:
            entry = self._entries[item.id] = _asks(question, Path(self.state.folder))
            self._add(entry)
        if answer := item.answer:
            entry.ok = answer.choice not in ("no", NOBODY)
            entry.answer, entry.text = answer.choice, clean(answer.text)

    def _note(self, item: Item) -> None:
        match item:
            case NoticeItem(about="model"):
                self._add(Entry("note", phrase=say("export.model_chosen", model=item.subject)))
            case NoticeItem(about="mode" | "job" | "undone"):
                self._add(Entry("note", phrase=item.what))
            case PlanItem(plan=plan) if plan.status in PLANS_TOLD:
                self._add(Entry("note", phrase=say(PLANS_TOLD[plan.status], name=plan.name)))
            case ReportItem(report=report):
                step_counts = {"done": report.done, "failed": report.failed, "left": report.left}
                summary = say(f"job.ended.{item.status}", job=item.job_name, **step_counts)
                details = [say("job.cause", cause=clean(cause)) for cause in report.causes]
                details += [say("job.next", next=clean(report.next_action))] if report.next_action else []
                self._add(Entry("note", clean(report.summary), summary, ok=item.status == "completed", details=details))
            case _:
                pass

    def _add(self, entry: Entry) -> None:
        """Adds an entry to the current turn. Entries before the first turn are left out."""
        if self.turns:
            self.turns[-1].entries.append(entry)


def _deed(item: ActionItem, folder: Path) -> Entry:
    job_prefix = f"⚙ {item.job_name}: " if item.job else ""
    action = item.action
    is_secret = action is not None and leads_to_secret(str(action.args.get("path") or ""), folder)
    # A command of the user's own needs no reason, and a Gate has already shown the diff.
    tells_reason = action and item.operation not in USERS_OWN
    return Entry(
        "deed",
        clean(f"{job_prefix}{item.operation} {' '.join(action.about.split()) if action else ''}"),
        details=[say("export.why", why=clean(action.reasoning))] if action and tells_reason else [],
        diff="" if item.gate or not action or is_secret else _diff(action.args),
    )


def _asks(question: Question, folder: Path) -> Entry:
    choices = {choice.key: choice.label for choice in question.choices}
    gate = question.gate
    if gate is None:
        details = [_cleaned(phrase) for phrase in question.details]
        return Entry("duck", phrase=question.title, details=details, choices=choices)
    details = [say("job.asks", job=question.job_name)] if question.job_name else []
    details += [say("export.intent", intent=clean(intent)) for intent in gate.intent]
    details += [say("export.why", why=clean(gate.rationale))] if gate.rationale else []
    details += [_cleaned(reason) for reason in (*gate.reasons, *gate.lasting)]
    diff = clean(without_secret_lines(gate.diff, folder))
    return Entry("gate", phrase=question.title, details=details, diff=diff, choices=choices)


def clean(text: str) -> str:
    """Removes texts that look like a secret, and limits the length."""
    text = redacted(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… (+{len(text) - LONGEST})"


def _cleaned(phrase: Phrase) -> Phrase:
    values = {name: clean(value) if isinstance(value, str) else value for name, value in phrase.values.items()}
    return phrase.model_copy(update={"values": values})


def _diff(args: dict[str, Any]) -> str:
    """Makes a diff from the arguments of an edit, if the user was not asked about it and so saw no diff."""
    edits = args.get("edits") or [args]
    if isinstance(edits, str):
        return clean(edits)
    lines: list[str] = []
    for edit in cast("list[dict[str, Any]]", edits):
        lines += [f"-{line}" for line in str(edit.get("old") or "").splitlines()]
        lines += [f"+{line}" for line in str(edit.get("new") or edit.get("content") or "").splitlines()]
    return clean("\n".join(lines))


def title(transcript: Transcript) -> str:
    return Headline.of(transcript.state).title or transcript.state.session_id


def facts(transcript: Transcript, words: Words) -> list[tuple[str, str]]:
    """Returns the names and values of the session's facts, in the user's language."""
    state = transcript.state
    rows = [
        (words("export.session"), state.session_id),
        (words("export.started"), time.strftime("%Y-%m-%d %H:%M", time.localtime(transcript.started))),
        (words("export.folder"), short_folder(state.folder)),
        (words("export.length"), turns(state.turn, words)),
        (words("export.model"), ", ".join(state.usage_by_model) or state.model),
    ]
    if state.forked_from:
        rows.append((words("export.branch_of"), state.forked_from))
    if state.five.goal:
        rows.append((words("five.goal"), state.five.goal))
    return [(name, value) for name, value in rows if value]


def costs(transcript: Transcript, words: Words) -> list[str]:
    return [line.strip() for line in cost_lines(transcript.state, 0.0, words)[1:]]
