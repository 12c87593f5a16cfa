"""The one owner of state: adds facts that rules find in an event's texts, journals the event, applies it, and tells all
listeners."""

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
from duckflow.i18n.answer_words import answers_only, may_be_goal
from duckflow.i18n.answers import read_whole
from duckflow.i18n.asking import ends_asking, last_question, offers_more, question_in_passing
from duckflow.i18n.words import begins, joined, may_find, search
from duckflow.state.action import EXIT, RESPOND, ActionResult, Decision
from duckflow.state.agent import AgentState, Headline
from duckflow.state.data import shorten
from duckflow.state.message import Message
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
"""A pattern for files (`@file`) that a message hands over after an order. They are not part of the order."""


def annotate(event: Event, state: AgentState) -> Event:
    """Returns the event with facts that rules have found in its texts; the same event if there are none. Texts of jobs
    are not the user's, so they are not searched."""
    match event:
        case MessageAdded() if not event.message.job:
            fields = _read_message(event, state)
        case DecisionMade():
            fields = {"goal": _goal_of(event.decision, state)}
        case ActionFinished() if not event.job:
            fields = {"asked": _question_in(event.result, state)}
        case _:
            return event
    return event.model_copy(update=fields) if any(fields.values()) else event


def _read_message(event: MessageAdded, state: AgentState) -> dict[str, str | tuple[str, ...]]:
    message = event.message
    if message.role != "user":
        is_mention = message.operation.startswith("@")
        return {"file": message.operation.removeprefix("@") if is_mention else ""}
    return {
        "constraints": tuple(constraints_in(message.text, state.language)),
        "title": "" if state.title else shorten(message.text, 100),
    }


def constraints_in(text: str, language: str = DEFAULT_LANGUAGE) -> list[str]:
    """Returns the sentences of a message that forbid or restrict something, because they hold from now on. Left out are
    questions, a yes that only says how far it goes, "don't start yet", and a bare "don't do that", which is about the
    last work. Of a very long sentence only a clause that is an order by itself is taken."""
    if not may_find("requests.forbids", text, language) or search("requests.points", text.strip(" .。!！\n"), language):
        return []
    masked_text = re.sub(CODE, lambda code: "x" * len(code[0]), text)
    joint_pattern = rf"(?i)^{joined('requests.joint', text, language)}[\s、,]*|{HANDED_OVER}"
    orders: list[str] = []
    for match in re.finditer(SENTENCE, masked_text):
        sentence = re.sub(joint_pattern, "", text[match.start() : match.end()].strip(" 、,\n"))
        forbids = search("requests.forbids", re.sub(joint_pattern, "", match[0].strip(" 、,")), language)
        if wait_match := search("requests.waits", sentence.rstrip(".。!！"), language):
            forbids = search("requests.forbids", sentence[: wait_match.start()], language)
        if forbids and not sentence.endswith(("?", "？")):
            order = sentence if len(sentence) <= LINE else _order(sentence, language)
            orders += [order.rstrip(".。!！")] if order else []
    return [] if orders and read_whole(text, language).plain_yes else orders[:MOST_CONSTRAINTS]


def _order(sentence: str, language: str) -> str:
    joint_pattern = rf"(?i)^{joined('requests.clause_joint', sentence, language)}\s+"
    clauses = (re.sub(joint_pattern, "", clause.strip()) for clause in re.split(r"[,;、，；]", sentence))
    return next((clause for clause in clauses if len(clause) <= LINE and _is_order(clause, language)), "")


def _is_order(clause: str, language: str) -> bool:
    if begins("requests.order", clause, language):
        return True
    return not clause.isascii() and search("requests.forbids", clause, language) is not None


def _goal_of(decision: Decision, state: AgentState) -> str:
    """Returns the goal of work that begins. If the model's reply states no goal, the user's message is the goal."""
    if decision.step is not Phase.EXECUTION or state.five.goal:
        return ""
    requests: list[str] = []
    for message in reversed(state.messages[-RECENT:]):
        if _ends_request(message, state.language) and not all(answers_only(text, state.language) for text in requests):
            # The requests before this answer are done, unless only a short reply ("write it") came after it.
            break
        if message.role == "user":
            requests.append(message.text)
            if may_be_goal(message.text, state.language):
                return shorten(message.text, 200)
    return shorten(requests[0] if requests else "", 200)


def _ends_request(message: Message, language: str) -> bool:
    """Says whether a message is the model's last answer to a request: it says that the work is done, or offers more."""
    decision = message.decision
    return decision is not None and (
        decision.next_step == "done" or any(offers_more(text, language) for text in decision.said())
    )


def _question_in(result: ActionResult, state: AgentState) -> str:
    """Returns the question that a text of the model asks the user at its end; if the same reply also acts, a question
    anywhere in the text counts. Empty if there is none."""
    text, language = (result.said or "").rstrip(), state.language
    if result.operation == EXIT or not text:
        return ""
    if ends_asking(text, language):
        return shorten(last_question(text), 100)
    decision = next((message.decision for message in reversed(state.messages) if message.decision), None)
    has_deeds = decision is not None and any(action.operation != RESPOND for action in decision.actions)
    return shorten(question_in_passing(text, language), 100) if has_deeds else ""


log = logging.getLogger(__name__)

SNAPSHOT_EVERY = 500


class Bus:
    """Passes every event to every listener, in order of the events and of the subscriptions."""

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[Listener, tuple[type[Event], ...]]] = {}
        self._waiting: deque[Event] = deque()
        self._publishing = False

    def subscribe(self, listener: Listener, *kinds: type[Event]) -> Callable[[], None]:
        """Adds a listener for these kinds of events, or for all. Calling the returned function removes it at any
        time."""
        listener_key = object()
        self._listeners[listener_key] = listener, kinds or (Event,)

        def unsubscribe() -> None:
            self._listeners.pop(listener_key, None)

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
    """Owns a state and its journal. An event that goes in at `emit` is first written to the journal, then applied to
    the state, then passed to the listeners. It is on disk before anyone acts on it, so nothing that was seen on the
    screen is ever lost."""

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
        """Returns the event as it was written to the journal, and its number. Bytes in names of files that are no valid
        text are replaced by marks."""
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
        """Yields from the journal everything that happened after the event with the number `after`."""
        return self._journal.events(after)

    def close(self) -> None:
        self._journal.close()

    def discard(self) -> None:
        """Closes the journal and deletes its file, because nothing was said in the session."""
        self._journal.close()
        for suffix in (".db", ".db-wal", ".db-shm", ".lock"):
            self._journal.path.with_suffix(suffix).unlink(missing_ok=True)
        remove_pictures(self._journal.path)


class Opened(NamedTuple):
    """A session that was opened again, and what had to be done to recover a damaged journal."""

    session: Session
    salvaged: "Salvaged | None" = None


def begin(path: Path, session_id: str, folder: Path, language: str) -> Session:
    """Begins a new session with its first event."""
    session = Session(Journal(path), AgentState.model_construct())
    session.emit(SessionOpened(session_id=session_id, folder=str(folder), language=language))
    return session


def reopen(path: Path) -> Opened:
    """Resumes a session from its last snapshot. If the journal is damaged, the part before the damage is used."""
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
