"""One call of a program, as the shell would make it."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from duckflow.safety.commands.facts import NOTHING_KNOWN, CommandFacts
from duckflow.safety.commands.text.words import Word

VERSIONED = re.compile(r"^(python|pip|perl|ruby|node|php|lua|bash|gcc|clang|java)[-.\d]+$")


@dataclass(frozen=True, slots=True)
class Output:
    """What comes out of a command: its text where that can be said beforehand, and the programs that made it."""

    text: str | None = None
    programs: tuple[str, ...] = ()
    secret: bool = False
    """A file that looks like a secret went in."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """`>`, `>>`, `<` and their kin; `target` is a file, or a number for another stream."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        return ">" in self.operator and not (self.operator.endswith("&") and _is_stream(self.target.text))


@dataclass(frozen=True, slots=True)
class Assignment:
    """`NAME=value` before a command or alone."""

    name: str
    value: Word


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a call happens."""

    facts: CommandFacts = NOTHING_KNOWN
    place: str | None = ""
    """The folder it runs in, seen from the work folder; None when nobody can say."""
    downloaded: frozenset[str] = frozenset()
    """Files that the same text fetched from the network before."""
    written: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files that the same text wrote before, with what it wrote."""


@dataclass(frozen=True)
class Invocation:
    """Program, arguments, assignments, redirections, and what comes in."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    feed: Output | None = None
    scene: Scene = Scene()

    @cached_property
    def program(self) -> str:
        """The program's name without its folder and version; `RM` is `rm` on some disks."""
        name = posixpath.basename(self.words[0].text.rstrip("/")).lower().removesuffix(".exe")
        versioned = VERSIONED.match(name)
        return versioned[1] if versioned else name

    @cached_property
    def arguments(self) -> tuple[Word, ...]:
        return self.words[1:]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words[1:])

    def running(self, words: tuple[Word, ...]) -> "Invocation":
        """The same call with other words: what a wrapper runs."""
        return replace(self, words=words, assignments=(), redirects=())


def _is_stream(text: str) -> bool:
    return text.isdigit() or text == "-"
