"""What came of an undo or redo."""

from dataclasses import dataclass

from duckflow.state.phrase import Phrase


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an undo or redo did. Not `done`: only conflicts were found, and nothing was touched."""

    turn: int
    done: bool
    changed: tuple[str, ...] = ()
    conflicts: tuple[Phrase, ...] = ()
    not_covered: tuple[Phrase, ...] = ()
