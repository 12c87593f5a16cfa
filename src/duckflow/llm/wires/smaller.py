"""What is left out of a request after a refusal: first what the refusal names, the least useful part before others."""

import re
from typing import NamedTuple

from duckflow.llm.abilities import (
    FORMAT_NAMED,
    LIMIT_NAMED,
    REQUEST_REFUSED,
    SCHEMA_NAMED,
    TOOLS_NAMED,
    Abilities,
)
from duckflow.llm.settings import EFFORTS
from duckflow.llm.wires.wire import Wire, WireRequest

VALUES_LISTED = 2
"""A refusal that names so many other efforts tells which there are."""


class Refusal(NamedTuple):
    """What an endpoint answered, in small letters; `unclear` where nothing that is known was meant by it."""

    status: int
    answer: str
    unclear: bool


def smaller(wire: Wire, asked: WireRequest, refusal: Refusal) -> Abilities | None:
    """What to try next; None when no smaller request would help. Tools go last of all."""
    if refusal.status not in REQUEST_REFUSED:
        return None
    abilities, answer = asked.abilities, refusal.answer
    if other := wire.elsewhere(refusal.status, answer):
        return abilities._replace(wire=other)
    for part, pattern in wire.parts.items():
        if re.search(pattern, answer) and (lower := _without(part, wire, asked, answer)):
            return lower
    if asked.limit and re.search(LIMIT_NAMED, answer):
        return abilities.with_other_limit(answer, wire.limits)
    simpler = abilities.with_simpler_format(wire.formats) if asked.request.schema is not None else None
    if simpler and (re.search(FORMAT_NAMED, answer) or (refusal.status != 500 and re.search(SCHEMA_NAMED, answer))):
        return simpler
    if asked.request.tools and re.search(TOOLS_NAMED, answer):
        return abilities._replace(tools="json")
    if not refusal.unclear:
        return None
    if sent := [part for part in wire.parts if _changes(abilities.without(part), wire, asked)]:
        return abilities.without(*sent)
    return simpler or (abilities._replace(tools="json") if asked.request.tools and not abilities.tools else None)


def _without(part: str, wire: Wire, asked: WireRequest, answer: str) -> Abilities | None:
    effort = asked.effort if part == "effort" else ""
    listed = [name for name in EFFORTS if name != effort and re.search(rf"\b{name}\b", answer)]
    lower = asked.abilities.without(f"effort {effort}" if effort and len(listed) >= VALUES_LISTED else part)
    return lower if _changes(lower, wire, asked) else None


def _changes(lower: Abilities, wire: Wire, asked: WireRequest) -> bool:
    """Whether the request would be another one at all."""
    return wire.body(asked._replace(abilities=lower)) != wire.body(asked)
