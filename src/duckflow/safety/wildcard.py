"""Patterns over paths: `*`, `?` and `[…]` within a name, `**` across folders, `{a,b}`. None takes long to match.

Within a name the standard library's patterns try a star at one place only, the first that fits; across folders it is
the same here. So a pattern of a thousand stars costs no more than its length times that of the path."""

import fnmatch
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

MOST_BRACES = 64
ANY_FOLDERS = "**"
PARTS = re.compile(r"\[([!^]?)(\]?[^\]]*)\]|\\(.)", re.DOTALL)
"""A class of characters, which may begin with `!` or `^`, or a character that is meant as it stands."""


class Wildcard:
    """One pattern for the whole of a path whose names are parted by `/`."""

    def __init__(self, pattern: str) -> None:
        self._names = [_name(part) for part in _without_doubles(pattern.split("/"))]
        self.readable = not any(name and "(?!)" in name.pattern for name in self._names)
        """Not with a range in it that runs backwards, such as `[z-a]`: that fits nothing."""

    def matches(self, path: str) -> bool:
        return _match(self._names, path.split("/"))


def escaped(path: str) -> str:
    """The pattern that fits this path and nothing else."""
    return re.sub(r"([*?\[\\{])", r"\\\1", path)


@lru_cache(maxsize=256)
def wildcards(pattern: str) -> tuple[Wildcard, ...]:
    """One for each way to read the braces; a ValueError when these are too many."""
    return tuple(Wildcard(one) for one in _unbraced(pattern))


def _name(pattern: str) -> re.Pattern[str] | None:
    """For one name; nothing stands for any folders."""
    if pattern == ANY_FOLDERS:
        return None
    return re.compile(fnmatch.translate(PARTS.sub(_as_library_says, pattern)))


def _as_library_says(found: re.Match[str]) -> str:
    if found[3] is None:
        return f"[{'!' if found[1] else ''}{found[2]}]"
    return found[3] if found[3] == "!" else f"[{found[3]}]"


def _match(names: Sequence[re.Pattern[str] | None], path: Sequence[str]) -> bool:
    """Folder by folder; after a `**` the rest is tried further down until it fits."""
    at = place = 0
    back: tuple[int, int] | None = None
    while place < len(path):
        name = names[at] if at < len(names) else None
        if at < len(names) and name is None:
            if at + 1 == len(names):
                return True
            back, at = (at + 1, place), at + 1
        elif name and name.match(path[place]):
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
