"""The rows of the archive, the hits of a search there, and how far a search looks."""

from typing import NamedTuple

Row = tuple[int, str, str, str, str, float, str]
"""Fields of a row: length in bytes, message id, session, role, operation, time, text."""


class Reach(NamedTuple):
    """The number of places that a search looks at, the rarest words first; for a common word, only its latest
    places."""

    places: int
    of_a_word: int
    neighbours: bool = True
    """Messages near one that has a word are found, too, since an answer stands near its question."""


WIDE = Reach(3000, 800)
NEAR = Reach(800, 200)
"""The reach of the automatic search in every turn: it costs the same in a long session as in a short one."""
ITSELF = WIDE._replace(neighbours=False)


class ArchiveHit(NamedTuple):
    """A message from the archive."""

    number: int
    message_id: str
    session: str
    role: str
    operation: str
    at: float
    text: str
    share: float = 0.0
    """The share of the question that it answers, from 0 to about 1."""
