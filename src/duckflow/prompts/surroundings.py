"""What lies around a conversation, as far as prompts tell of it."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class NearRules(NamedTuple):
    """An AGENTS.md below the work folder's own, for the files beside and beneath it."""

    folder: str
    text: str


class Surroundings(Protocol):
    """The project. What is unknown is an empty text; nothing is looked up before it is asked for."""

    def rules(self) -> str:
        """AGENTS.md of the work folder."""
        ...

    def rules_near(self, paths: Sequence[str]) -> list[NearRules]:
        """The AGENTS.md files that apply to these paths, the nearest last."""
        ...

    def facts(self) -> str:
        """Languages and layout; stays the same for a session."""
        ...

    def known(self) -> str:
        """What earlier sessions tell; stays the same for a session."""
        ...

    def lessons(self) -> str:
        """What was learned here and bears on what is asked now."""
        ...

    def tests(self) -> str:
        """The command that runs its tests."""
        ...

    def skills(self, room: int, /) -> list[tuple[str, str]]:
        """Names of skills and what they are for, in about so many characters; stays the same for a session."""
        ...

    def limits(self, language: str, /) -> str:
        """What commands can reach and what is asked for, in a line; stays the same until the mode changes."""
        ...

    def branch(self) -> str:
        """The git branch, and what git is in the middle of."""
        ...
