"""Patterns over paths: `*`, `?` and `[…]` within a name, `**` across folders. None takes long to match.

Within a name the standard library's patterns try a star at one place only, the first that fits; across folders it is
the same here. So a pattern of a thousand stars costs no more than its length times that of the path."""

import fnmatch
import re
from collections.abc import Sequence
from itertools import pairwise

ANY_FOLDERS = "**"
PARTS = r"(?s)\[([!^]?)(\]?[^\]]*)\]|\\(.)"
"""A class of characters, which may begin with `!` or `^`, or a character that is meant as it stands."""


class Wildcard:
    """One pattern for the whole of a path whose names are parted by `/`."""

    def __init__(self, pattern: str) -> None:
        names = pattern.split("/")
        # Several `**` in a row say no more than one.
        self._names = [_name(one) for before, one in pairwise(["", *names]) if not one == before == ANY_FOLDERS]
        self.readable = not any(name and "(?!)" in name.pattern for name in self._names)
        """Not with a range in it that runs backwards, such as `[z-a]`: that fits nothing."""

    def matches(self, path: str) -> bool:
        return _match(self._names, path.split("/"))


def escaped(path: str) -> str:
    """The pattern that fits this path and nothing else."""
    return re.sub(r"([*?\[\\{])", r"\\\1", path)


def _name(pattern: str) -> re.Pattern[str] | None:
    """For one name; nothing stands for any folders."""
    if pattern == ANY_FOLDERS:
        return None
    return re.compile(fnmatch.translate(re.sub(PARTS, _as_library_says, pattern)))


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
