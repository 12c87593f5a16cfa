"""A copy of a conversation that runs in another process, for a front end to read. Events keep it up to date."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from duckflow.events.apply import apply
from duckflow.events.event import Event, ModeChosen
from duckflow.events.ports import Hear
from duckflow.events.talking import NowChanged
from duckflow.events.types import QuestionAsked, QuestionClosed
from duckflow.events.views import CommandInfo, Meaning, Unheard
from duckflow.i18n.typed import read_line
from duckflow.remote.protocol import Welcome, read_event
from duckflow.state.agent import AgentState
from duckflow.state.data import Phrase, say
from duckflow.state.question import Question

Record = Callable[[int], asyncio.Future[list[dict[str, Any]]]]
"""A function that takes the number of an event, and returns a page of the stored events that follow it."""


class Mirror:
    """The copy of a conversation. Reading it never waits for the other process. Every listener hears every event once,
    in order."""

    def __init__(self) -> None:
        self._listeners: dict[object, Hear] = {}
        self._questions: dict[str, Question] = {}
        self._now = NowChanged(in_turn=False, busy=False, waiting=(), health_bar=say("health.bar"))
        self._tasks: set[asyncio.Task[None]] = set()
        self.number = 0
        self.catching_up = False
        """True while events from the record arrive. Their questions may be answered already, so they are not asked
        again."""
        self.mode = ""
        self.state = AgentState()
        self.commands: Iterable[CommandInfo] = ()
        self.process = 0
        self.terminal = False

    def welcome(self, welcome: Welcome) -> None:
        """Takes over the present state. A front end that reconnects has all stored events, but has missed the events
        that are not stored."""
        if not self.number:
            self.state = welcome.state
        self.number, self.mode, self.commands = welcome.number, welcome.mode, welcome.commands
        self.process, self.terminal = welcome.process, welcome.terminal
        self.catching_up = False
        open_questions = {question.question_id: question for question in welcome.questions}
        for question_id in self._questions.keys() - open_questions.keys():
            self.tell(0, QuestionClosed(question_id=question_id))
        for question in welcome.questions:
            if question.question_id not in self._questions:
                self.tell(0, QuestionAsked(question=question))
        self.tell(0, welcome.now)

    def tell(self, number: int, event: Event) -> None:
        """Takes an event and passes it on. A stored event that comes twice is passed on once."""
        if number:
            if number <= self.number:
                return
            apply(self.state, event)
            self.number = number
        match event:
            case QuestionAsked() if not self.catching_up:
                self._questions[event.question.question_id] = event.question
            case QuestionClosed():
                self._questions.pop(event.question_id, None)
            case NowChanged():
                self._now = event
            case ModeChosen():
                self.mode = event.mode
            case _:
                pass
        for listener in tuple(self._listeners.values()):
            listener(number, event)

    def listen(self, listener: Hear, after: int | None, record: Record) -> Callable[[], None]:
        key = object()
        if after is None or after >= self.number:
            self._listeners[key] = listener
        else:
            late_events: list[tuple[int, Event]] = []
            self._listeners[key] = lambda number, event: late_events.append((number, event))
            self.do(self._catch_up(key, listener, after, late_events, record))

        def stop() -> None:
            self._listeners.pop(key, None)

        return stop

    def do(self, work: Any) -> None:
        """Runs a task until it is done, or the mirror is closed."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        self._listeners.clear()
        for task in self._tasks:
            task.cancel()

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(sorted(self._questions.values(), key=lambda question: bool(question.job)))

    @property
    def waiting(self) -> tuple[Unheard, ...]:
        return self._now.waiting

    @property
    def in_turn(self) -> bool:
        return self._now.in_turn

    @property
    def busy(self) -> bool:
        return self._now.busy

    def health_bar(self) -> Phrase:
        return self._now.health_bar

    def reads_as(self, line: str) -> Meaning:
        return read_line(line, self.state, self.questions, self.commands)

    async def _catch_up(
        self, key: object, listener: Hear, after: int, late: list[tuple[int, Event]], record: Record
    ) -> None:
        """Passes on the stored events up to now, then the events that have come meanwhile."""
        last_number = self.number
        while after < last_number and (page := await record(after)):
            for event_entry in page:
                after = event_entry["number"]
                if after <= last_number and (event := read_event(event_entry)):
                    listener(after, event)
        while late:
            listener(*late.pop(0))
        if key in self._listeners:
            self._listeners[key] = listener
