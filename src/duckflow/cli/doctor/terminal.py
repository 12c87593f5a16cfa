"""The terminal: what it can show."""

import os
import shutil
import sys
from collections.abc import Iterator

from duckflow.cli.doctor.finding import Finding, good, judged
from duckflow.state.phrase import Phrase, say

NARROW = 60


def terminal_checked() -> Iterator[Finding]:
    encoding = (sys.stdout.encoding or "?").lower()
    unicode = encoding.replace("-", "").startswith("utf")
    yield judged("terminal", unicode, say("doctor.encoding", encoding=encoding), say("fix.encoding"), "note")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield Finding("terminal", "note", say("doctor.no_terminal"), say("fix.terminal"))
        return
    columns, rows = shutil.get_terminal_size()
    term = os.environ.get("TERM", "")
    size = say("doctor.terminal", term=term or "?", columns=columns, rows=rows)
    if term in ("", "dumb"):
        yield Finding("terminal", "note", size, say("fix.dumb"))
    else:
        yield judged("terminal", columns >= NARROW, size, say("fix.narrow"), "note")
    yield good("terminal", _colours(term))


def _colours(term: str) -> Phrase:
    if os.environ.get("NO_COLOR"):
        return say("doctor.no_colours", why="NO_COLOR")
    if term in ("", "dumb"):
        return say("doctor.no_colours", why=f"TERM={term}")
    if os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        return say("doctor.colours", colours=16_777_216)
    return say("doctor.colours", colours=256 if "256" in term else 16)
