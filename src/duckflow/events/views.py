"""Plain data that passes through the port `Conversation`, and the interfaces of slash commands, undo and memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from duckflow.state.changes import LATEST, UndoScope, WorkAuthor
from duckflow.state.data import Phrase
from duckflow.state.message import Message
from duckflow.state.question import FileImpact

Meaning = Literal["nothing", "answer", "unclear", "edit", "closed", "command", "own_command", "aside", "message"]
JobWish = Literal["pause", "resume", "cancel"]


class Attachment(NamedTuple):
    """Content that comes with a message but is not the user's own words. The name `stdin` stands for piped input."""

    name: str
    text: str = ""
    data: str = ""
    """A picture in base64. An attachment with a picture has no text."""


class Taken(NamedTuple):
    """The meaning that Duckflow saw in a line or an answer, and the phrases to show to the person who typed it.

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
    """One line of the list of sessions. `here` means that the session belongs to the present folder."""

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
    """True if the next session is a new one in the same folder and mode. `journal` then belongs to the session that is
    left."""
    detached: bool = False
    """True if the user leaves, and the jobs of this session go on without a terminal."""
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


class ContextPart(NamedTuple):
    """A part of the next request with its tokens. A budget of 0 means that the part has no budget of its own."""

    name: str
    tokens: int
    budget: int = 0


@dataclass(frozen=True, slots=True)
class PlannedUndo:
    """The preview of an undo: whose work it takes back, what would happen to which file, and what it leaves alone.
    `conflicts` names files in which someone else has changed the same lines since. Someone else may have changed the
    files in `maybe_yours` while a command ran, so the user is asked about them; `nothing_else` is true if there are no
    other files. `name` is the name of the job or step (empty for a turn), `wish` the beginning of the user's
    message."""

    authors: tuple[WorkAuthor, ...]
    name: str = ""
    impacts: tuple[FileImpact, ...] = ()
    diff: str = ""
    not_covered: tuple[Phrase, ...] = ()
    conflicts: tuple[Phrase, ...] = ()
    maybe_yours: tuple[Phrase, ...] = ()
    nothing_else: bool = False
    wish: str = ""

    @property
    def turn(self) -> int:
        return max(author.turn for author in self.authors)


@dataclass(frozen=True, slots=True)
class UndoResult:
    """The result of an undo or redo. `cleared` lists changed files that no work of the session changes any more."""

    authors: tuple[WorkAuthor, ...]
    name: str = ""
    changed: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    conflicts: tuple[Phrase, ...] = ()
    not_covered: tuple[Phrase, ...] = ()
    moved: tuple[WorkAuthor, ...] = ()
    """Those of the authors of whose changes an undo has undone any."""
    gone: tuple[WorkAuthor, ...] = ()
    """Those of the authors of whose changes an undo has left nothing."""

    @property
    def turn(self) -> int:
        return max(author.turn for author in self.authors)


class UndoPort(Protocol):
    """Undoes work, or does it again if `back` is false. A scope says which work: a turn, a job, a step, some files."""

    async def authors(self) -> list[WorkAuthor]:
        """Returns the turns, jobs and steps whose changes could be undone, the latest first."""
        ...

    async def diff(self, scope: UndoScope = LATEST) -> PlannedUndo: ...

    async def preview(self, back: bool, scope: UndoScope = LATEST) -> PlannedUndo: ...

    async def restore(self, back: bool, only_own: bool = False, scope: UndoScope = LATEST) -> UndoResult:
        """Carries out the undo or redo. With `only_own`, changes that somebody else may have made while a command ran
        stay."""
        ...

    def tell_left(self, preview: PlannedUndo) -> None:
        """Notes that the user declined this undo. The model is told what the user was asked."""
        ...


class ForgettingPort(Protocol):
    """Finds everything in memory that contains some words, and removes it."""

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
