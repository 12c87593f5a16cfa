"""Removes what the user wants forgotten from lessons, archive, context, summaries and state. The journal stays."""

from collections.abc import Callable
from dataclasses import dataclass

from duckflow.agent.session import Session
from duckflow.events.types import PastForgotten
from duckflow.memory.castle import Castle, ProjectFacts
from duckflow.memory.gravel import Gravel
from duckflow.state.data import Phrase, folded, say, shorten

SHOWN = 3
LINE = 100


@dataclass(frozen=True, slots=True)
class Held:
    """Everything that contains the words to be forgotten."""

    numbers: tuple[int, ...]
    """Numbers of messages of this session."""
    archived: tuple[int, ...]
    """Numbers of messages in the archive, which covers all sessions of the project."""
    lessons: int
    lines: tuple[str, ...]

    @property
    def messages(self) -> int:
        return max(len(self.numbers), len(self.archived))


class Forgetting:
    """Finds everything that contains some words, so that the user can be asked; then forgets it."""

    def __init__(
        self, session: Session, gravel: Gravel, castle: Castle, facts: ProjectFacts, gone: Callable[[], None]
    ) -> None:
        self._session = session
        self._gravel = gravel
        self._castle = castle
        self._facts = facts
        self._gone = gone

    def holding(self, words: str) -> tuple[Phrase, ...]:
        """Returns phrases that say how many messages and lessons contain the words, and their first lines; none if no
        message or lesson does."""
        found_memories = self._held(words)
        if not (found_memories.messages or found_memories.lessons):
            return ()
        ask = say("memory.forget_ask", messages=found_memories.messages, lessons=found_memories.lessons, words=words)
        return (ask, *(say("memory.forget_line", text=line) for line in found_memories.lines))

    def forget(self, words: str) -> Phrase:
        """Forgets everything that holds the words. Raises OSError or ToolError when the lessons cannot be written; then
        nothing is forgotten."""
        found_memories = self._held(words)
        lessons = self._castle.forget(words)
        self._gravel.forget(found_memories.archived)
        self._facts.forget(words)
        self._session.emit(PastForgotten(numbers=found_memories.numbers, words=words))
        self._gone()
        return say("memory.forgotten", messages=found_memories.messages, lessons=lessons, words=words)

    def follow(self, forgotten: set[str]) -> None:
        """Forgets those messages of this session that another session has already forgotten."""
        state = self._session.state
        numbers = {number for number, message in enumerate(state.messages) if message.message_id in forgotten}
        if newly_forgotten := numbers.difference(state.context.forgotten):
            self._session.emit(PastForgotten(numbers=tuple(sorted(newly_forgotten))))

    def _held(self, words: str) -> Held:
        state, folded_words = self._session.state, folded(words)
        forgotten_numbers = set(state.context.forgotten)
        own_numbers = tuple(
            number
            for number, message in enumerate(state.messages)
            if number not in forgotten_numbers and folded_words in folded(message.whole)
        )
        archived_messages = self._gravel.holding(words)
        lessons = self._castle.holding(words)
        lines = [lesson.line() for lesson in lessons] + [
            f"{entry.operation or entry.role}: {entry.text}" for entry in archived_messages
        ]
        return Held(
            own_numbers,
            tuple(entry.number for entry in archived_messages),
            len(lessons),
            tuple(shorten(line, LINE) for line in lines[:SHOWN]),
        )
