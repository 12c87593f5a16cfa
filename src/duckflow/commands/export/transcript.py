"""A session as a story: its facts and what happened in it."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from duckflow.commands.lines import cost_lines
from duckflow.commands.session_rows import short_folder
from duckflow.events import types as happened
from duckflow.events.apply import apply
from duckflow.i18n.figures import turns
from duckflow.i18n.words import Words
from duckflow.safety.secrets import redacted
from duckflow.state.action import Action
from duckflow.state.agent import AgentState
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Question
from duckflow.state.vitals import Vitals
from duckflow.store.journal import Headline
from duckflow.tools.toolbox import talk_operations

LONGEST = 20_000
USERS_OWN = ("user.shell",)
Kind = Literal["user", "said", "deed", "gate", "duck", "note"]


@dataclass(slots=True)
class Item:
    """One thing of a turn. `ok` is None while it is open: cut off, or never answered."""

    kind: Kind
    text: str = ""
    phrase: Phrase | None = None
    ok: bool | None = None
    details: list[Phrase] = field(default_factory=list[Phrase])
    output: str = ""
    diff: str = ""
    answer: str = ""
    choices: dict[str, Phrase] = field(default_factory=dict[str, Phrase])
    """What may be answered, by its key."""

    def answered(self, words: Words) -> str:
        """In the user's language."""
        if not self.answer:
            return words("export.unanswered")
        label = self.choices.get(self.answer)
        said = ": ".join(part for part in (words.phrase(label) if label else self.answer, self.text) if part)
        return words("export.answer", answer=said)


@dataclass(slots=True)
class TurnRecord:
    number: int
    at: float
    asked: str = ""
    items: list[Item] = field(default_factory=list[Item])
    why: Phrase | None = None
    outcome: str = ""


class Transcript:
    """Fed with every event of a session, in order. Secrets are out of it before anything is kept."""

    def __init__(self) -> None:
        self.state = AgentState()
        self.started = 0.0
        self.turns: list[TurnRecord] = []
        self.vitals: list[tuple[int, Vitals]] = []
        self._open: dict[str, Item] = {}
        self._shown_before: set[str] = set()
        self._jobs: dict[str, str] = {}

    def hear_all(self, events: Iterable[happened.Event]) -> "Transcript":
        for event in events:
            self.hear(event)
        return self

    def hear(self, event: happened.Event) -> None:
        apply(self.state, event)
        # The whole conversation is kept here, turn by turn; twice would be too much.
        self.state.messages.clear()
        match event:
            case happened.SessionOpened():
                self.started = self.started or event.at
            case happened.TurnBegan():
                self.turns.append(TurnRecord(event.turn, event.at))
            case happened.MessageAdded() if event.message.role == "user" and not event.message.job:
                self._asked(clean(event.message.text), event.message.meanwhile)
            case happened.TurnEnded() if self.turns:
                self.turns[-1].outcome, self.turns[-1].why = event.outcome, event.why
            case happened.VitalsChanged():
                self.vitals.append((self.state.turn, event.vitals))
            case happened.ActionStarted() | happened.ActionFinished():
                self._act(event)
            case happened.QuestionAsked() | happened.QuestionClosed():
                self._question(event)
            case _:
                self._note(event)

    def _asked(self, text: str, meanwhile: bool) -> None:
        if self.turns and not self.turns[-1].asked and not meanwhile:
            self.turns[-1].asked = text
        else:
            self._add(Item("user", text, say("chat.meanwhile") if meanwhile else None))

    def _act(self, event: happened.ActionStarted | happened.ActionFinished) -> None:
        if isinstance(event, happened.ActionStarted):
            if event.action.operation not in talk_operations():
                self._open[event.action.action_id] = item = self._deed(event.action, event.job)
                self._add(item)
            return
        result = event.result
        if result.said is not None:
            self._add(Item("said", clean(result.said)))
        elif item := self._open.pop(result.action_id, None):
            item.ok, item.phrase, item.output = result.ok, _cleaned(result.for_user), clean(result.for_model)

    def _deed(self, action: Action, job: str) -> Item:
        whose = f"⚙ {self._jobs.get(job, job)}: " if job else ""
        diff = "" if action.action_id in self._shown_before else _diff(action.args)
        # What the user has typed needs no reason.
        why = [say("export.why", why=clean(action.reasoning))] if action.operation not in USERS_OWN else []
        return Item(
            "deed",
            clean(f"{whose}{action.operation} {' '.join(action.about.split())}"),
            details=why,
            diff=diff,
        )

    def _question(self, event: happened.QuestionAsked | happened.QuestionClosed) -> None:
        match event:
            case happened.QuestionAsked():
                self._open[event.question.question_id] = item = self._asks(event.question)
                item.choices = {choice.key: choice.label for choice in event.question.choices}
                self._add(item)
            case happened.QuestionClosed(answer=answer) if answer:
                if item := self._open.pop(event.question_id, None):
                    item.ok = answer.choice != "no"
                    item.answer, item.text = answer.choice, clean(answer.text)
            case _:
                pass

    def _asks(self, question: Question) -> Item:
        gate = question.gate
        if gate is None:
            return Item("duck", phrase=question.title, details=[_cleaned(one) for one in question.details])
        self._shown_before.update(gate.action_ids)
        told = [say("job.asks", job=question.job_name)] if question.job_name else []
        told += [say("export.intent", intent=clean(one)) for one in gate.intent]
        told += [say("export.why", why=clean(gate.rationale))] if gate.rationale else []
        told += [_cleaned(reason) for reason in (*gate.reasons, *gate.lasting)]
        return Item("gate", phrase=question.title, details=told, diff=clean(gate.diff))

    def _note(self, event: happened.Event) -> None:
        match event:
            case happened.ModelChosen():
                self._add(Item("note", phrase=say("export.model_chosen", model=event.model)))
            case happened.ModeChosen():
                self._add(Item("note", phrase=say("mode.now", mode=event.mode)))
            case happened.PlanChanged() if event.plan.status == "draft":
                self._add(Item("note", phrase=say("export.plan_drafted", name=event.plan.name)))
            case happened.PlanChanged() if event.plan.status == "approved":
                self._add(Item("note", phrase=say("plan.approved", name=event.plan.name)))
            case happened.JobChanged():
                status = "resumed" if event.status == "running" else event.status
                name = self._jobs.get(event.job_id, event.job_id)
                self._add(Item("note", phrase=say(f"export.job_{status}", job=name)))
            case happened.JobStarted():
                self._jobs[event.job.job_id] = event.job.name
                self._add(Item("note", phrase=say("export.job_started", job=event.job.name)))
            case happened.JobEnded():
                report, name = event.report, self._jobs.get(event.job_id, event.job_id)
                counts = {"done": report.done, "failed": report.failed, "left": report.left}
                told = say(f"job.ended.{event.status}", job=name, **counts)
                why = [say("job.cause", cause=clean(cause)) for cause in report.causes]
                why += [say("job.next", next=clean(report.next_action))] if report.next_action else []
                self._add(Item("note", clean(report.summary), told, ok=event.status == "completed", details=why))
            case happened.TurnUndone():
                files = ", ".join(event.changed) or "–"
                key = "undo.done" if event.back else "undo.redone"
                self._add(Item("note", phrase=say(key, turn=event.turn, files=files)))
            case _:
                pass

    def _add(self, item: Item) -> None:
        """To the turn it belongs to; what happens before the first one needs no place."""
        if self.turns:
            self.turns[-1].items.append(item)


def clean(text: str) -> str:
    """Without what looks like a secret, and not endless."""
    text = redacted(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… (+{len(text) - LONGEST})"


def _cleaned(phrase: Phrase) -> Phrase:
    values = {name: clean(value) if isinstance(value, str) else value for name, value in phrase.values.items()}
    return phrase.model_copy(update={"values": values})


def _diff(args: dict[str, Any]) -> str:
    """What an edit did that nobody was asked about, from its own arguments."""
    edits = args.get("edits") or [args]
    if isinstance(edits, str):
        return clean(edits)
    lines: list[str] = []
    for one in cast("list[dict[str, Any]]", edits):
        lines += [f"-{line}" for line in str(one.get("old") or "").splitlines()]
        lines += [f"+{line}" for line in str(one.get("new") or one.get("content") or "").splitlines()]
    return clean("\n".join(lines))


def title(transcript: Transcript) -> str:
    return Headline.of(transcript.state).title or transcript.state.session_id


def facts(transcript: Transcript, words: Words) -> list[tuple[str, str]]:
    """Names and values, in the user's language."""
    state = transcript.state
    told = [
        (words("export.session"), state.session_id),
        (words("export.started"), time.strftime("%Y-%m-%d %H:%M", time.localtime(transcript.started))),
        (words("export.folder"), short_folder(state.folder)),
        (words("export.length"), turns(state.turn, words)),
        (words("export.model"), ", ".join(state.usage_by_model) or state.model),
    ]
    if state.forked_from:
        told.append((words("export.branch_of"), state.forked_from))
    if state.five.goal:
        told.append((words("five.goal"), state.five.goal))
    return [(name, value) for name, value in told if value]


def costs(transcript: Transcript, words: Words) -> list[str]:
    return [line.strip() for line in cost_lines(transcript.state, 0.0, words)[1:]]
