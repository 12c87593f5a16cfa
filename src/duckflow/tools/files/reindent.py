"""Carrying the indentation of a file over to new lines."""

from math import gcd


def reindent(old: list[str], current: list[str], new: list[str]) -> list[str] | None:
    """Returns the `new` lines with the file's indentation. `old` must match the `current` lines except for indentation.

    Either all lines differ by the same leading blanks, or the units differ (tabs for spaces) level by level. Any other
    difference would be a guess, so the result is None."""
    indent_pairs = [(leading(a), leading(b)) for a, b in zip(old, current, strict=True) if a.strip()]
    if not indent_pairs:
        return None
    for change in (_more(indent_pairs, new), _less(indent_pairs, new), _other_unit(indent_pairs, new)):
        if change is not None:
            return change
    return None


def leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _more(pairs: list[tuple[str, str]], new: list[str]) -> list[str] | None:
    """Handles a file that is indented further than the edit, by the same blanks on every line."""
    edit_indent, file_indent = pairs[0]
    extra_indent = file_indent[: len(file_indent) - len(edit_indent)] if file_indent.endswith(edit_indent) else None
    if extra_indent is None or any(file_indent != extra_indent + edit_indent for edit_indent, file_indent in pairs):
        return None
    return [extra_indent + line if line.strip() else "" for line in new]


def _less(pairs: list[tuple[str, str]], new: list[str]) -> list[str] | None:
    """Handles a file that is indented less than the edit, by the same blanks on every line."""
    edit_indent, file_indent = pairs[0]
    extra_indent = edit_indent[: len(edit_indent) - len(file_indent)] if edit_indent.endswith(file_indent) else None
    if not extra_indent or any(edit_indent != extra_indent + file_indent for edit_indent, file_indent in pairs):
        return None
    if any(line.strip() and not line.startswith(extra_indent) for line in new):
        return None
    return [line[len(extra_indent) :] if line.strip() else "" for line in new]


def _other_unit(pairs: list[tuple[str, str]], new: list[str]) -> list[str] | None:
    """Handles a file that has the same levels in another unit, all shifted by the same number of levels."""
    edit_unit = _unit([edit_indent for edit_indent, _ in pairs] + [leading(line) for line in new if line.strip()])
    file_unit = _unit([file_indent for _, file_indent in pairs])
    if not edit_unit or not file_unit:
        return None
    level_shifts = {
        len(file_indent) // len(file_unit) - len(edit_indent) // len(edit_unit) for edit_indent, file_indent in pairs
    }
    if len(level_shifts) != 1:
        return None
    level_shift = level_shifts.pop()
    levels = [len(leading(line)) // len(edit_unit) + level_shift for line in new]
    if any(level < 0 and line.strip() for level, line in zip(levels, new, strict=True)):
        return None
    return [file_unit * level + line.lstrip() if line.strip() else "" for level, line in zip(levels, new, strict=True)]


def _unit(indents: list[str]) -> str:
    """Returns one level of indentation: a tab, or the number of spaces that all have in common; empty when tabs and
    spaces are mixed."""
    used_characters = set("".join(indents))
    if used_characters == {"\t"}:
        return "\t"
    return " " * gcd(*map(len, indents)) if used_characters == {" "} else ""
