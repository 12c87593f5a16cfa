"""Turns, as undo knows them."""

from dataclasses import dataclass
from typing import NamedTuple


class UndoTurn(NamedTuple):
    """One turn of one session."""

    session: str
    number: int


@dataclass(frozen=True, slots=True)
class TurnState:
    """A turn that changed something. `undone`: its place in the order of undoing, 0 when it is not undone."""

    turn: int
    files: int
    undone: int
