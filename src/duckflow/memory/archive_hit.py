"""What goes into the archive, what a search finds there, and how far it looks."""

from typing import NamedTuple

Row = tuple[int, str, str, str, str, float, str]
"""Length in bytes, message id, session, role, operation, time, text."""


class Reach(NamedTuple):
    """How many places a search looks at, the rarest words first; of a common word at its latest ones."""

    places: int
    of_a_word: int
    neighbours: bool = True
    """Messages near one that has a word are found, too: an answer stands near what was asked."""


WIDE = Reach(3000, 800)
NEAR = Reach(800, 200)
"""For what is looked up unasked, in every turn: it costs the same in a long session as in a short one."""
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
    """How much of what was asked for it holds, 0 to about 1."""
