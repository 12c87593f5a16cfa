"""What a text has set up so far: variables, functions, aliases, the folder it went to, what it fetched."""

import posixpath
from dataclasses import dataclass, field, replace

from duckflow.safety.commands.facts import CommandFacts
from duckflow.safety.commands.invocation import Scene
from duckflow.safety.commands.text.words import UNKNOWN, Word

LONGEST_VALUE = 4000
Values = tuple[Word, ...]


@dataclass(slots=True)
class Scope:
    """Kept while the commands of a text are followed in order."""

    facts: CommandFacts
    variables: dict[str, Values] = field(default_factory=dict[str, Values])
    functions: dict[str, str] = field(default_factory=dict[str, str])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    arguments: Values | None = ()
    """`$1`, `$2`, …; None inside a function that nobody has called yet."""
    place: str | None = ""
    downloaded: set[str] = field(default_factory=set[str])
    written: dict[str, str] = field(default_factory=dict[str, str])

    def scene(self) -> Scene:
        return Scene(self.facts, self.place, frozenset(self.downloaded), self.written)

    def called_with(self, arguments: Values | None) -> "Scope":
        """The same scope seen from inside a function or `bash -c`: names are shared, `$1` is not."""
        return replace(self, arguments=arguments)

    def assign(self, name: str, value: Word) -> None:
        """A value that keeps doubling is not followed."""
        self.variables[name] = (value if len(value.text) <= LONGEST_VALUE else UNKNOWN,)

    def go(self, target: Word | None) -> None:
        """`cd`: follow it where that can be said beforehand."""
        if target is None or not target.known or self.place is None:
            self.place = None
            return
        text = target.text
        folder = self.facts.folder.rstrip("/")
        if folder and (text == folder or text.startswith(folder + "/")):
            self.place = text[len(folder) :].lstrip("/")
        elif text.startswith(("/", "~", "-")):
            self.place = None
        else:
            place = posixpath.normpath(posixpath.join(self.place, text))
            self.place = "" if place == "." else place
            if place.startswith(".."):
                self.place = None
