"""The values that cross the port `Conversation`: plain data, and views of what lies behind it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from duckflow.state.changes import LATEST, UndoScope, WorkAuthor
from duckflow.state.message import Message
from duckflow.state.phrase import Phrase
from duckflow.state.question import FileImpact

Meaning = Literal["nothing", "answer", "unclear", "edit", "closed", "command", "own_command", "aside", "message"]
JobWish = Literal["pause", "resume", "cancel"]


class Attachment(NamedTuple):
    """Content that comes with a message but is not the user's own words. The name `stdin` stands for piped input."""

    name: str
    text: str = ""
    data: str = ""
    """A picture in base64; then there is no text."""


class Taken(NamedTuple):
    """The meaning that a line or an answer was taken to have, and what to tell the person who gave it.

    `unclear`: the question is still open. `edit`: the person wants to change the question's `gate.editable` first and
    then answers with the choice `edit` and the new text. `closed`: the question is not open any more."""

    meaning: Meaning
    told: tuple[Phrase, ...] = ()
    question_id: str = ""


class Unheard(NamedTuple):
    """A message that the model has not heard yet. The model gets it before its next call, or (`later`) after the
    running turn."""

    text: str
    later: bool


class SessionSummary(NamedTuple):
    """One line of the list of sessions. `here`: it belongs to the present folder."""

    session_id: str
    title: str
    asked: str
    folder: str
    turns: int
    cost_usd: float
    updated: float
    here: bool
    archived: bool = False


class NextSession(NamedTuple):
    """The place to go on when a conversation is left: another session, or a branch of one."""

    journal: Path
    fork: bool = False
    new: bool = False
    """The next session is a new one in the same folder and mode; `journal` is that of the session that is left."""
    detached: bool = False
    """The user leaves, and the jobs of this very session go on without a terminal."""
    model: str = ""
    """The model that was chosen during the conversation; it stays chosen."""


class CommandInfo(Protocol):
    """A slash command as it is offered: its name, its help in one line, and words that may follow it."""

    @property
    def name(self) -> str: ...

    @property
    def help(self) -> Phrase: ...

    @property
    def words(self) -> tuple[str, ...]: ...


class ContextPart(Protocol):
    """A part of the next request with its tokens. A budget of 0 means that it has none of its own."""

    @property
    def name(self) -> str: ...

    @property
    def tokens(self) -> int: ...

    @property
    def budget(self) -> int: ...


class PlannedUndo(Protocol):
    """The changes that an undo would make."""

    @property
    def turn(self) -> int: ...

    @property
    def name(self) -> str:
        """Returns the name of the job or step; empty for a turn."""
        ...

    @property
    def wish(self) -> str:
        """Returns the beginning of the turn's message."""
        ...

    @property
    def impacts(self) -> tuple[FileImpact, ...]: ...

    @property
    def diff(self) -> str: ...

    @property
    def not_covered(self) -> tuple[Phrase, ...]: ...

    @property
    def conflicts(self) -> tuple[Phrase, ...]: ...

    @property
    def maybe_yours(self) -> tuple[Phrase, ...]: ...

    @property
    def nothing_else(self) -> bool:
        """Says whether the undo would change nothing except what may be the user's own work."""
        ...


class UndoResult(Protocol):
    """The changes that an undo has made."""

    @property
    def turn(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def changed(self) -> tuple[str, ...]: ...

    @property
    def not_covered(self) -> tuple[Phrase, ...]: ...

    @property
    def conflicts(self) -> tuple[Phrase, ...]: ...


class UndoPort(Protocol):
    """Undoes work, or (`back` false) does it again. A scope says which work: a turn, a job, a step, some files."""

    async def authors(self) -> list[WorkAuthor]:
        """Returns the turns, jobs and steps whose changes could be undone, the latest first."""
        ...

    async def diff(self, scope: UndoScope = LATEST) -> PlannedUndo: ...

    async def preview(self, back: bool, scope: UndoScope = LATEST) -> PlannedUndo: ...

    async def restore(self, back: bool, only_own: bool = False, scope: UndoScope = LATEST) -> UndoResult:
        """Carries it out. With `only_own`, changes that somebody else may have made while a command ran stay as they
        are."""
        ...

    def tell_left(self, preview: PlannedUndo) -> None:
        """Notes that the user declined this undo. The model is told what the user was asked."""
        ...


class ForgettingPort(Protocol):
    """Forgetting: finds what contains some words, and removes it from memory."""

    def holding(self, words: str) -> tuple[Phrase, ...]: ...

    def forget(self, words: str) -> Phrase: ...


class MemoryPort(Protocol):
    """The memory of the conversation."""

    @property
    def forgetting(self) -> ForgettingPort: ...

    def report(self) -> tuple[Phrase, ...]: ...

    def find(self, question: str, in_context: bool = False) -> tuple[int, str]: ...

    async def compact(self, focus: str) -> Phrase: ...

    def own_messages(self) -> Sequence[Message]:
        """Returns the user's messages, each the beginning of a turn that is still in the conversation."""
        ...

    def go_back(self, message: Message) -> None:
        """Takes this message and all after it out of the conversation, and offers its text to be said differently."""
        ...
