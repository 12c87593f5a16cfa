"""Finds out whether a text in a request stands between marks that are still open."""

import re

OPENED = re.compile(r"^\[.*: (?:quoted|引用) ([0-9a-f]{8})[,、].*\]$")
CLOSED = re.compile(r"^\[(?:end of ([0-9a-f]{8})|([0-9a-f]{8}) の終わり)\]$")


def outside_marks(request: str) -> str:
    """What is left of a request when all that is quoted is taken out. Inside, only the right mark ends it."""
    mark, kept = "", list[str]()
    for line in request.split("\n"):
        if mark:
            closed = CLOSED.match(line)
            mark = "" if closed and mark in closed.groups() else mark
        elif opened := OPENED.match(line):
            mark = opened[1]
        else:
            kept.append(line)
    assert not mark, "a quotation is never closed"
    return "\n".join(kept)
