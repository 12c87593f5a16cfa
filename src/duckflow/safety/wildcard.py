"""Patterns over paths: `*`, `?` and `[…]` within a name, `**` across folders, `{a,b}`. Matched without backtracking.

A star is tried at one place only, the first that fits, so a pattern of a thousand stars costs no more than its length
times that of the path. A regular expression made of it could take for ever."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

MOST_BRACES = 64
ANY_FOLDERS = "**"


class Wildcard:
    """One pattern for the whole of a path whose names are parted by `/`."""

    def __init__(self, pattern: str) -> None:
        self._names = [_Name(part) for part in _without_doubles(pattern.split("/"))]
        self.readable = all(name.readable for name in self._names)
        """Whether all of it makes sense; what does not fits nothing."""

    def matches(self, path: str) -> bool:
        return _match(self._names, path.split("/"))


def escaped(path: str) -> str:
    """The pattern that fits this path and nothing else."""
    return re.sub(r"([*?\[\\{])", r"\\\1", path)


@lru_cache(maxsize=256)
def wildcards(pattern: str) -> tuple[Wildcard, ...]:
    """One for each way to read the braces; a ValueError when these are too many."""
    return tuple(Wildcard(one) for one in _unbraced(pattern))


class _Name:
    """The pattern for one name: pieces of fixed length, with a star between each two."""

    def __init__(self, pattern: str) -> None:
        self.any_folders = pattern == ANY_FOLDERS
        self.readable = True
        try:
            self._pieces = [re.compile(piece, re.DOTALL) for piece in _pieces(pattern)]
        except re.error:
            # A range that runs backwards, such as `[z-a]`, holds nothing.
            self.readable = False
            self._pieces = [re.compile("(?!)")]

    def fits(self, name: str) -> bool:
        first, *middle = self._pieces
        if not middle:
            return first.fullmatch(name) is not None
        last = middle.pop()
        found = first.match(name)
        for piece in middle:
            if not found:
                return False
            found = piece.search(name, found.end())
        return found is not None and _ends_with(last, name, found.end())


def _ends_with(piece: re.Pattern[str], name: str, start: int) -> bool:
    """The piece has one length for all that it fits, so there is one place where it can stand."""
    place = len(name) - _length(piece.pattern)
    return place >= start and piece.fullmatch(name, place) is not None


@lru_cache(maxsize=1024)
def _length(pattern: str) -> int:
    """How many characters a piece stands for."""
    return len(re.findall(r"\[(?:\\.|[^\]\\])*\]|\\.|.", pattern, re.DOTALL))


def _match(names: Sequence[_Name], path: Sequence[str]) -> bool:
    """Folder by folder; after a `**` the rest is tried further down until it fits."""
    at = place = 0
    back: tuple[int, int] | None = None
    while place < len(path):
        if at < len(names) and names[at].any_folders:
            if at + 1 == len(names):
                return True
            back, at = (at + 1, place), at + 1
        elif at < len(names) and names[at].fits(path[place]):
            at, place = at + 1, place + 1
        elif back:
            at, place = back[0], back[1] + 1
            back = (at, place)
        else:
            return False
    return at == len(names)


def _without_doubles(names: Sequence[str]) -> Iterator[str]:
    """Several `**` in a row say no more than one."""
    before = ""
    for name in names:
        if not name == before == ANY_FOLDERS:
            yield name
        before = name


def _pieces(pattern: str) -> Iterator[str]:
    """Regular expressions without repetitions, parted at the stars."""
    piece, at, starred = "", 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            if not starred:
                yield piece
            piece, starred = "", True
            at += 1
            continue
        starred = False
        if char == "[" and (end := _class_end(pattern, at)):
            piece += _class(pattern[at + 1 : end])
            at = end + 1
            continue
        if char == "\\" and at + 1 < len(pattern):
            at += 1
            piece += re.escape(pattern[at])
        else:
            piece += "." if char == "?" else re.escape(char)
        at += 1
    yield piece


def _class_end(pattern: str, start: int) -> int:
    """Where a `[…]` closes; 0 when it does not. A `]` right after the opening belongs to it."""
    skip = 3 if pattern[start + 1 : start + 2] in ("!", "^") else 2
    return max(0, pattern.find("]", start + skip))


def _class(inside: str) -> str:
    negated = inside[0] in "!^"
    members = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[1:] if negated else inside)
    return f"[{'^' if negated else ''}{members}]"


def _unbraced(pattern: str) -> list[str]:
    """`a{b,c}` is `ab` and `ac`; braces that do not close are ordinary characters."""
    waiting, found = [pattern], list[str]()
    while waiting:
        one = waiting.pop()
        opened = one.find("{")
        closed = one.find("}", opened)
        inner = one.rfind("{", 0, closed)
        if opened < 0 or closed < 0 or inner < 0:
            found.append(one)
            continue
        waiting += [one[:inner] + choice + one[closed + 1 :] for choice in one[inner + 1 : closed].split(",")]
        if len(waiting) + len(found) > MOST_BRACES:
            raise ValueError(pattern)
    return found
