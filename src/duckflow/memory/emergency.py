"""The way out when even what must stay in the context is too much. Needs no model."""

from collections.abc import Sequence
from dataclasses import replace

from duckflow.memory.entries import Entry, Pins, cut
from duckflow.memory.tokens import MESSAGE_OVERHEAD

SHARE = 0.9
"""Of the budget: what was cut is harder to estimate."""


def emergency(entries: Sequence[Entry], pins: Pins, budget: float) -> list[Entry]:
    """The way out when even what must stay is too much: pins and the latest, each cut to a share of the room."""
    last = entries[-1].number
    must = [replace(one) for one in entries if one.number in pins or one.number == last]
    for entry in must:
        cut(entry, budget * SHARE / len(must) - MESSAGE_OVERHEAD)
    room = budget * SHARE - sum(entry.tokens for entry in must)
    numbers = {entry.number for entry in must}
    for entry in reversed(entries):
        if entry.number not in numbers:
            room -= entry.tokens
            if room < 0:
                break
            must.append(entry)
    shown = sorted(must, key=lambda entry: entry.number)
    # A result without the call it belongs to says nothing.
    return [
        one
        for place, one in enumerate(shown)
        if not one.result or one.number == last or (place and shown[place - 1].number == one.number - 1)
    ]
