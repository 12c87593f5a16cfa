"""Carrying the indentation of a file over to new lines."""

from math import gcd


def reindent(old: list[str], current: list[str], new: list[str]) -> list[str] | None:
    """Returns the `new` lines with the file's indentation. `old` must match the `current` lines except for indentation.

    Either all lines differ by the same leading blanks, or the units differ (tabs for spaces) level by level. Any other
    difference would be a guess, so the result is None."""
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
    my_indent, their_indent = pairs[0]
    extra_indent = their_indent[: len(their_indent) - len(my_indent)] if their_indent.endswith(my_indent) else None
    if extra_indent is None or any(their_indent != extra_indent + my_indent for my_indent, their_indent in pairs):
        return None
    return [extra_indent + line if line.strip() else "" for line in new]


def _less(pairs: list[tuple[str, str]], new: list[str]) -> list[str] | None:
    """Handles a file that is indented less than the edit, by the same blanks on every line."""
    my_indent, their_indent = pairs[0]
    extra_indent = my_indent[: len(my_indent) - len(their_indent)] if my_indent.endswith(their_indent) else None
    if not extra_indent or any(my_indent != extra_indent + their_indent for my_indent, their_indent in pairs):
        return None
    if any(line.strip() and not line.startswith(extra_indent) for line in new):
        return None
    return [line[len(extra_indent) :] if line.strip() else "" for line in new]


def _other_unit(pairs: list[tuple[str, str]], new: list[str]) -> list[str] | None:
    """Handles a file that has the same levels in another unit, all shifted by the same number of levels."""
    my_unit = _unit([my_indent for my_indent, _ in pairs] + [leading(line) for line in new if line.strip()])
    their_unit = _unit([their_indent for _, their_indent in pairs])
    if not my_unit or not their_unit:
        return None
    shifts = {
        len(their_indent) // len(their_unit) - len(my_indent) // len(my_unit) for my_indent, their_indent in pairs
    }
    if len(shifts) != 1:
        return None
    shift = shifts.pop()
    levels = [len(leading(line)) // len(my_unit) + shift for line in new]
    if any(level < 0 and line.strip() for level, line in zip(levels, new, strict=True)):
        return None
    return [their_unit * level + line.lstrip() if line.strip() else "" for level, line in zip(levels, new, strict=True)]


def _unit(indents: list[str]) -> str:
    """Returns one level of indentation: a tab, or the number of spaces that all have in common; empty when tabs and
    spaces are mixed."""
    used_characters = set("".join(indents))
    if used_characters == {"\t"}:
        return "\t"
    return " " * gcd(*map(len, indents)) if used_characters == {" "} else ""
