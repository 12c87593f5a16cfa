"""What an undo, a redo or a turn changes, worked out before anything is done."""

from dataclasses import dataclass

from duckflow.state.phrase import Phrase
from duckflow.state.question import FileImpact


@dataclass(frozen=True, slots=True)
class UndoPreview:
    """Which turn, what would happen to which file, and what is not part of it.

    `conflicts`: files that someone else changed since, so that they are not touched without a word."""

    turn: int
    impacts: tuple[FileImpact, ...] = ()
    diff: str = ""
    not_covered: tuple[Phrase, ...] = ()
    conflicts: tuple[Phrase, ...] = ()
