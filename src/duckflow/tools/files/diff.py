"""What changes between two texts: how many lines, and a unified diff for a person's eyes."""

from collections import Counter
from dataclasses import dataclass

from duckflow.safety.shown import shown, shown_line

CONTEXT = 3
EXACTLY_COMPARED = 2000
"""Longer stretches are compared more roughly: a file of many equal lines would take minutes otherwise."""
COMPARED = 20_000
"""More changed lines than this are counted, not compared: the comparison would take too long."""
NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Diff:
    added: int
    removed: int
    text: str


def diff(before: str, after: str, path: str, limit: int) -> Diff:
    """`before` or `after` is empty for a file that is made or deleted. At most `limit` lines are shown."""
    old, new = before.split("\n"), after.split("\n")
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    changed_old, changed_new = old[start : len(old) - end], new[start : len(new) - end]
    if len(changed_old) + len(changed_new) > COMPARED:
        added, removed = Counter(changed_new) - Counter(changed_old), Counter(changed_old) - Counter(changed_new)
        return Diff(added.total(), removed.total(), f"{_header(path)}\n… +{added.total()} −{removed.total()}")
    lead = max(0, start - CONTEXT)
    tail = max(0, end - CONTEXT)
    lines = _unified(_marked(old)[lead : len(old) - tail], _marked(new)[lead : len(new) - tail], lead)
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    shown_lines = [shown_line(line) for line in lines[:limit]]
    if len(lines) > limit:
        shown_lines.append(f"… +{len(lines) - limit}")
    return Diff(added, removed, "\n".join([_header(path), *shown_lines]) if lines else "")


def _common(old: list[str], new: list[str]) -> int:
    """How many lines are the same from the start."""
    return next((count for count, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _marked(lines: list[str]) -> list[str]:
    """The last piece after a split is empty when the text ends with a newline; otherwise its end is marked."""
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]}\n{NO_NEWLINE}"]


def _unified(old: list[str], new: list[str], offset: int) -> list[str]:
    import difflib

    lines: list[str] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > EXACTLY_COMPARED)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        lines.append(f"@@ -{_range(first[1], last[2], offset)} +{_range(first[3], last[4], offset)} @@")
        for kind, old_from, old_to, new_from, new_to in group:
            if kind == "equal":
                lines += [" " + line for line in old[old_from:old_to]]
            else:
                lines += ["-" + line for line in old[old_from:old_to]]
                lines += ["+" + line for line in new[new_from:new_to]]
    return [part for line in lines for part in line.split("\n")]


def _range(start: int, stop: int, offset: int) -> str:
    length = stop - start
    first = start + offset + (1 if length else 0)
    return str(first) if length == 1 else f"{first},{length}"


def _header(path: str) -> str:
    return f"--- a/{shown(path)}\n+++ b/{shown(path)}"
