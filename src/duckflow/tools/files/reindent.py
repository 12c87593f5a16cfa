"""Carrying the indentation of a file over to new lines."""

from math import gcd


def reindent(old: list[str], current: list[str], new: list[str]) -> list[str] | None:
    """Returns the `new` lines with the file's indentation, where `old` matches `found` except for indentation.

    Either all lines differ by the same leading blanks, or the units differ (tabs for spaces) level by level. Anything
    else would be a guess, and returns None."""
    pairs = [(leading(a), leading(b)) for a, b in zip(old, current, strict=True) if a.strip()]
    if not pairs:
        return None
    for change in (_more(pairs, new), _less(pairs, new), _other_unit(pairs, new)):
        if change is not None:
            return change
    return None


def leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _more(pairs: list[tuple[str, str]], new: list[str]) -> list[str] | None:
    """Handles a file that is indented further than the edit, by the same blanks on every line."""
    mine, theirs = pairs[0]
    extra = theirs[: len(theirs) - len(mine)] if theirs.endswith(mine) else None
    if extra is None or any(theirs != extra + mine for mine, theirs in pairs):
        return None
    return [extra + line if line.strip() else "" for line in new]


def _less(pairs: list[tuple[str, str]], new: list[str]) -> list[str] | None:
    """Handles a file that is indented less than the edit, by the same blanks on every line."""
    mine, theirs = pairs[0]
    extra = mine[: len(mine) - len(theirs)] if mine.endswith(theirs) else None
    if not extra or any(mine != extra + theirs for mine, theirs in pairs):
        return None
    if any(line.strip() and not line.startswith(extra) for line in new):
        return None
    return [line[len(extra) :] if line.strip() else "" for line in new]


def _other_unit(pairs: list[tuple[str, str]], new: list[str]) -> list[str] | None:
    """Handles a file that has the same levels in another unit, all shifted by the same number of levels."""
    my_unit = _unit([mine for mine, _ in pairs] + [leading(line) for line in new if line.strip()])
    their_unit = _unit([theirs for _, theirs in pairs])
    if not my_unit or not their_unit:
        return None
    shifts = {len(theirs) // len(their_unit) - len(mine) // len(my_unit) for mine, theirs in pairs}
    if len(shifts) != 1:
        return None
    shift = shifts.pop()
    levels = [len(leading(line)) // len(my_unit) + shift for line in new]
    if any(level < 0 and line.strip() for level, line in zip(levels, new, strict=True)):
        return None
    return [their_unit * level + line.lstrip() if line.strip() else "" for level, line in zip(levels, new, strict=True)]


def _unit(indents: list[str]) -> str:
    """Returns one level of indentation: a tab, or the number of spaces that all have in common; nothing when they are
    mixed."""
    used = set("".join(indents))
    if used == {"\t"}:
        return "\t"
    return " " * gcd(*map(len, indents)) if used == {" "} else ""
