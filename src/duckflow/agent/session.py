"""The one owner of state: adds what rules read out of texts to an event, journals it, applies it, and tells
everyone."""

import logging
import re
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic_core import PydanticSerializationError

from duckflow import DEFAULT_LANGUAGE
from duckflow.errors import JournalDamaged, JournalError
from duckflow.events.apply import apply
from duckflow.events.ports import Listener
from duckflow.events.types import (
    ActionFinished,
    DecisionMade,
    Event,
    MessageAdded,
    SessionOpened,
    SessionTitled,
    TurnEnded,
)
from duckflow.i18n.answer_words import may_be_goal, replies_only
from duckflow.i18n.answers import read_whole
from duckflow.i18n.asking import ends_asking, last_question
from duckflow.i18n.language import begins, joined, may_find, search
from duckflow.state.action import EXIT, ActionResult, Decision
from duckflow.state.agent import AgentState, Headline
from duckflow.state.data import shorten
from duckflow.state.phase import Phase
from duckflow.store.journal import Journal, JournalReader
from duckflow.store.pictures import remove_pictures
from duckflow.whole_text import make_value_whole

if TYPE_CHECKING:
    from duckflow.store.salvage import Salvaged


RECENT = 40
CODE = r"(?s)```.*?(?:```|\Z)|`[^`\n]*`"
SENTENCE = r"(?:[^.!?。！？\n]|[.](?=[^\s.]))+[.!?。！？]?"
MOST_CONSTRAINTS = 2
LINE = 100
HANDED_OVER = r"(?:\s*[@＠][^\s@＠]+)+$"
"""A pattern for files that are handed over together with an order. They are not part of the order."""


def annotate(event: Event, state: AgentState) -> Event:
    """Returns the event with facts that rules have found in its texts; the same event if there are none. Texts of jobs
    are not the user's, so they are not searched."""
    match event:
        case MessageAdded() if not event.message.job:
            fields = _read_message(event, state)
        case DecisionMade():
            fields = {"goal": _goal_of(event.decision, state)}
        case ActionFinished() if not event.job:
            fields = {"asked": _question_in(event.result, state.language)}
        case _:
            return event
    return event.model_copy(update=fields) if any(fields.values()) else event


def _read_message(event: MessageAdded, state: AgentState) -> dict[str, str | tuple[str, ...]]:
    message = event.message
    if message.role != "user":
        mentioned = message.operation.startswith("@")
        return {"file": message.operation.removeprefix("@") if mentioned else ""}
    return {
        "constraints": tuple(constraints_in(message.text, state.language)),
        "title": "" if state.title else shorten(message.text, 100),
    }


def constraints_in(text: str, language: str = DEFAULT_LANGUAGE) -> list[str]:
    """Returns the sentences that forbid something or narrow it down. A question does neither, a yes only says how far
    it goes, and "don't start yet" waits for the next message only. A message that is nothing but "don't do that" points
    at the last work. Of a sentence that is longer than a line only the clause that is an order by itself is taken: half
    of a description would say something else."""
    if not may_find("requests.forbids", text, language) or search("requests.points", text.strip(" .。!！\n"), language):
        return []
    masked_text = re.sub(CODE, lambda code: "x" * len(code[0]), text)
    joint_pattern = rf"(?i)^{joined('requests.joint', text, language)}[\s、,]*|{HANDED_OVER}"
    orders: list[str] = []
    for match in re.finditer(SENTENCE, masked_text):
        sentence = re.sub(joint_pattern, "", text[match.start() : match.end()].strip(" 、,\n"))
        forbids = search("requests.forbids", re.sub(joint_pattern, "", match[0].strip(" 、,")), language)
        if waits := search("requests.waits", sentence.rstrip(".。!！"), language):
            forbids = search("requests.forbids", sentence[: waits.start()], language)
        if forbids and not sentence.endswith(("?", "？")):
            order = sentence if len(sentence) <= LINE else _order(sentence, language)
            orders += [order.rstrip(".。!！")] if order else []
    return [] if orders and read_whole(text, language).plain_yes else orders[:MOST_CONSTRAINTS]


def _order(sentence: str, language: str) -> str:
    joint = rf"(?i)^{joined('requests.clause_joint', sentence, language)}\s+"
    clauses = (re.sub(joint, "", clause.strip()) for clause in re.split(r"[,;、，；]", sentence))
    return next((clause for clause in clauses if len(clause) <= LINE and _is_order(clause, language)), "")


def _is_order(clause: str, language: str) -> bool:
    if begins("requests.order", clause, language):
        return True
    return not clause.isascii() and search("requests.forbids", clause, language) is not None


def _goal_of(decision: Decision, state: AgentState) -> str:
    """Returns the goal if work begins and no goal was stated: then the user's message is the goal."""
    if decision.step is not Phase.EXECUTION or state.five.goal:
        return ""
    requests: list[str] = []
    for message in reversed(state.messages[-RECENT:]):
        answered = message.decision is not None and message.decision.next_step == "done"
        if answered and not all(replies_only(text, state.language) for text in requests):
            # The requests before this answer are done, unless what came after it is only a short reply ("write it").
            break
        if message.role == "user":
            requests.append(message.text)
            if may_be_goal(message.text, state.language):
                return shorten(message.text, 200)
    return shorten(requests[0] if requests else "", 200)


def _question_in(result: ActionResult, language: str) -> str:
    """Returns the question to the user that the text ends with, if any."""
    text = (result.said or "").rstrip()
    return shorten(last_question(text), 100) if result.operation != EXIT and ends_asking(text, language) else ""


log = logging.getLogger(__name__)

SNAPSHOT_EVERY = 500


class Bus:
    """Passes every event to every listener, in order of the events and of the subscriptions."""

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[Listener, tuple[type[Event], ...]]] = {}
        self._waiting: deque[Event] = deque()
        self._publishing = False

    def subscribe(self, listener: Listener, *kinds: type[Event]) -> Callable[[], None]:
        """Adds a listener for these kinds of events, or for all. The returned function takes it away, at any time."""
        key = object()
        self._listeners[key] = listener, kinds or (Event,)

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Publishes an event. An event that a listener itself causes comes after the current one, for every
        listener."""
        self._waiting.append(event)
        if self._publishing:
            return
        self._publishing = True
        pipe_error: BrokenPipeError | None = None
        try:
            while self._waiting:
                current_event = self._waiting.popleft()
                for key in tuple(self._listeners):
                    listener, kinds = self._listeners.get(key, (None, ()))
                    try:
                        if listener and isinstance(current_event, kinds):
                            listener(current_event)
                    except BrokenPipeError as problem:
                        pipe_error = problem
                    except Exception:
                        log.exception("a listener failed at %s", current_event.kind)
        finally:
            self._publishing = False
            self._waiting.clear()
        if pipe_error:
            # Nobody reads the output any more. That is no failure of a listener: it ends the program.
            raise pipe_error


class StateOwner:
    """Owns a state. Events are passed to `emit`, which changes the state and then informs the listeners."""

    def __init__(self, state: AgentState) -> None:
        self.state = state
        self._bus = Bus()

    def emit(self, event: Event) -> None:
        apply(self.state, event)
        self._bus.publish(event)

    def subscribe(self, listener: Listener, *kinds: type[Event]) -> Callable[[], None]:
        return self._bus.subscribe(listener, *kinds)


class Session(StateOwner):
    """Owns a state and its journal. An event that goes in at `emit` is written to the journal first, then come state
    and listeners. It is on disk before anyone acts on it, so what was seen on the screen is never lost."""

    def __init__(self, journal: Journal, state: AgentState) -> None:
        super().__init__(state)
        self._journal = journal

    def emit(self, event: Event) -> None:
        if event.journaled:
            event, seq = self._recorded(annotate(event, self.state))
            apply(self.state, event)
            if seq % SNAPSHOT_EVERY == 0:
                # Messages are left out: they are events of their own, so a snapshot stays small however long the
                # session gets.
                self._journal.save_snapshot(seq, self.state.model_dump_json(exclude={"messages"}))
            if isinstance(event, TurnEnded) or (isinstance(event, SessionTitled) and self.state.turn):
                self._journal.save_headline(Headline.of(self.state).model_dump_json())
        self._bus.publish(event)

    def _recorded(self, event: Event) -> tuple[Event, int]:
        """Returns the event as the journal holds it, and its number. Bytes of a file's name that are no text become
        marks there."""
        try:
            return event, self._journal.append(event)
        except PydanticSerializationError:
            event = type(event).model_validate(make_value_whole(event.model_dump()))
            return event, self._journal.append(event)

    @property
    def path(self) -> Path:
        return self._journal.path

    @property
    def number(self) -> int:
        """Returns the number of the latest event in the journal."""
        return self._journal.last_seq

    def record(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yields everything that happened after the event of this number, from the journal."""
        return self._journal.events(after)

    def close(self) -> None:
        self._journal.close()

    def discard(self) -> None:
        """Closes the journal and leaves no file behind, because nothing was said."""
        self._journal.close()
        for suffix in (".db", ".db-wal", ".db-shm", ".lock"):
            self._journal.path.with_suffix(suffix).unlink(missing_ok=True)
        remove_pictures(self._journal.path)


class Opened(NamedTuple):
    """A session that was opened again, and what had to be saved from a damaged journal."""

    session: Session
    salvaged: "Salvaged | None" = None


def begin(path: Path, session_id: str, folder: Path, language: str) -> Session:
    """Begins a new session with its first event."""
    session = Session(Journal(path), AgentState.model_construct())
    session.emit(SessionOpened(session_id=session_id, folder=str(folder), language=language))
    return session


def reopen(path: Path) -> Opened:
    """Resumes a session by replay from the last snapshot. A damaged journal is opened up to the damage."""
    try:
        return Opened(_resumed(path))
    except JournalDamaged:
        from duckflow.store.salvage import salvage

        salvaged = salvage(path)
        return Opened(_resumed(path), salvaged)


def _resumed(path: Path) -> Session:
    journal = Journal(path)
    try:
        journal.check()
        return Session(journal, replay(journal))
    except JournalError:
        journal.close()
        raise


def replay(journal: JournalReader, from_snapshot: bool = True) -> AgentState:
    """Returns the state that the journal's events lead to."""
    state, seq = AgentState(), 0
    if from_snapshot and (snapshot := journal.last_snapshot()):
        state, seq = AgentState.model_validate_json(snapshot.body), snapshot.seq
        # A job's messages are kept with the job, in the snapshot: they are no part of the conversation.
        state.messages = [event.message for event in journal.messages(until=seq) if not event.message.job]
    for _, event in journal.events(after=seq):
        apply(state, event)
    return state
