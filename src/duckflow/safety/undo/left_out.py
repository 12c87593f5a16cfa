"""Files that changed but cannot be brought back, by the reason why."""

from collections.abc import Iterable

from duckflow.safety.undo.fact import Fact
from duckflow.safety.undo.ledger import Change
from duckflow.safety.undo.settings import MB


def left_out_of(changes: Iterable[Change], largest_mb: int) -> dict[str, dict[str, int]]:
    """`large`, `special` (pipes and the like), `unkept` (not readable, or more than may be copied)."""
    listed = list(changes)
    # A file that was only moved can be moved back, however large it is.
    moved = _elusive(one.before for one in listed) & _elusive(one.after for one in listed)
    found: dict[str, dict[str, int]] = {}
    for one in listed:
        for fact in (one.before, one.after):
            if fact and not fact.kept and fact.content not in moved:
                found.setdefault(_reason(fact, largest_mb), {})[one.path] = 1
                break
    return found


def _reason(fact: Fact, largest_mb: int) -> str:
    if fact.kind == "special":
        return "special"
    return "large" if fact.size > largest_mb * MB else "unkept"


def _elusive(facts: Iterable[Fact | None]) -> set[str]:
    return {fact.content for fact in facts if fact and fact.elusive}
