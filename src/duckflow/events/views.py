"""What crosses the port `Conversation`: plain values, and views of what lies behind it."""

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
    """What comes with a message and is not the user's words: `stdin` for what was piped in."""

    name: str
    text: str = ""
    data: str = ""
    """Of a picture, in base64; then there is no text."""


class Taken(NamedTuple):
    """What a line or an answer was taken for, and what to tell the person who gave it.

    `unclear`: the question is still open. `edit`: the person wants to change the question's `gate.editable` first and
    then answers with the choice `edit` and the new text. `closed`: the question is not open any more."""

    meaning: Meaning
    told: tuple[Phrase, ...] = ()
    question_id: str = ""


class Unheard(NamedTuple):
    """A message the model has not heard yet: it will before its next call, or (`later`) after the running turn."""

    text: str
    later: bool


class SessionSummary(NamedTuple):
    """One line of the list of sessions. `here`: it belongs to the folder one is in."""

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
    """Where the user goes when a conversation is left for another session, or for a branch of one."""

    journal: Path
    fork: bool = False
    new: bool = False
    """A new one, in the same folder and mode; the journal is that of the one that is left."""
    detached: bool = False
    """The user goes, and the jobs of this very session go on without a terminal."""
    model: str = ""
    """The model that was chosen in the chat; it stays chosen."""


class CommandInfo(Protocol):
    """A slash command as it is offered: its name, its help in one line, and words that may follow it."""

    @property
    def name(self) -> str: ...

    @property
    def help(self) -> Phrase: ...

    @property
    def words(self) -> tuple[str, ...]: ...


class ContextPart(Protocol):
    """A part of the next request with its tokens; 0 for no budget of its own."""

    @property
    def name(self) -> str: ...

    @property
    def tokens(self) -> int: ...

    @property
    def budget(self) -> int: ...


class PlannedUndo(Protocol):
    """What an undo would change."""

    @property
    def turn(self) -> int: ...

    @property
    def name(self) -> str:
        """The job's or step's name; a turn has none."""
        ...

    @property
    def wish(self) -> str:
        """How the message of the turn began."""
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
        """Than what may be yours."""
        ...


class UndoResult(Protocol):
    """What an undo has changed."""

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
    """Work can be taken back, and (`back` false) that again. A scope says which: a turn, a job, a step, some files."""

    async def authors(self) -> list[WorkAuthor]:
        """Whose work could be taken back, the latest first."""
        ...

    async def diff(self, scope: UndoScope = LATEST) -> PlannedUndo: ...

    async def preview(self, back: bool, scope: UndoScope = LATEST) -> PlannedUndo: ...

    async def restore(self, back: bool, only_own: bool = False, scope: UndoScope = LATEST) -> UndoResult:
        """`only_own`: what somebody else may have changed while a command ran stays as it is."""
        ...

    def tell_left(self, preview: PlannedUndo) -> None:
        """The user does not want it so; the model learns what was asked."""
        ...


class ForgettingPort(Protocol):
    """What holds some words, and how to be rid of it."""

    def holding(self, words: str) -> tuple[Phrase, ...]: ...

    def forget(self, words: str) -> Phrase: ...


class MemoryPort(Protocol):
    """What the conversation remembers."""

    @property
    def forgetting(self) -> ForgettingPort: ...

    def report(self) -> tuple[Phrase, ...]: ...

    def find(self, question: str, in_context: bool = False) -> tuple[int, str]: ...

    async def compact(self, focus: str) -> Phrase: ...

    def own_messages(self) -> Sequence[Message]:
        """What the user said, each the beginning of a turn that is still in the conversation."""
        ...

    def go_back(self, message: Message) -> None:
        """This message and all after it leave the conversation; its text is offered to be said differently."""
        ...
