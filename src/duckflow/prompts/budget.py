"""Budgets: a layer that is too long loses its parts in a fixed order, and never its rules."""

from collections.abc import Callable, Mapping

from duckflow.state.noun import shorten

Count = Callable[[str], int]
"""How many tokens a text is."""

FOUND = ("evidence", "lessons", "results", "failed", "files", "files_changed", "decisions", "done")
EVIDENCE = ("refs", "last_delta", *FOUND)
SUMMARIES = ("known", "conversation", "before")
CUTTING_ORDER = (*EVIDENCE, *SUMMARIES, "open_questions", "plan_brief", "why_now")
"""What was found, then what was said before, then what is open, then the plan. What the user asked for, the rules and
the goal are in none of these: they stay."""
WORTH_KEEPING = 8
ROUNDING = 2
"""A text counted by itself and as a part of another may differ by so many tokens."""


def fitted(
    values: Mapping[str, str], budget: int, written: Callable[[Mapping[str, str]], str], count: Count
) -> dict[str, str]:
    """The values with which the layer, as `written` from them, is within its budget."""
    kept = dict(values)
    for name in CUTTING_ORDER:
        if not kept.get(name):
            continue
        excess = count(written(kept)) - budget
        if excess <= 0:
            return kept
        kept[name] = shorter(kept[name], count(kept[name]) - excess - ROUNDING, count)
        if kept[name] and count(written(kept)) > budget:
            kept[name] = ""
    return kept


def shorter(text: str, tokens: int, count: Count) -> str:
    """Its first lines, or the beginning of its only one; nothing when hardly any would be left."""
    if tokens < WORTH_KEEPING:
        return ""
    lines = text.split("\n")
    if len(lines) == 1:
        return shorten(text, max(2, len(text) * tokens // max(1, count(text))))
    while lines and count("\n".join(lines)) > tokens:
        lines.pop()
    return "\n".join(lines)
