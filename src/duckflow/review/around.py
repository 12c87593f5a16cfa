"""What stands around a change: the definitions that it touches, and where they are used."""

import re
import time
from collections.abc import Callable

from duckflow.code.background import MappedFolder
from duckflow.code.sources import source_text
from duckflow.code.syntax import Symbol, available, language_of, symbols_in
from duckflow.safety.workspace import Workspace

SECONDS = 15.0
MOST_DEFINITIONS = 30
MOST_USES = 12
HUNK = re.compile(r"@@ -\S+ \+(\d+)")


async def around(diff: str, workspace: Workspace, mapped: Callable[[], MappedFolder]) -> str:
    """A line for each definition: its place, and the places that use it, as far as the map can tell in time."""
    if not available():
        return ""
    touched = [
        symbol
        for path, lines in changed_lines(diff).items()
        if language_of(path)
        for symbol in _innermost(symbols_in(source_text(workspace, path), path), lines)
    ][:MOST_DEFINITIONS]
    if not touched or await mapped().fresh(SECONDS) is None:
        return "\n".join(_place(symbol) for symbol in touched)
    told, deadline = list[str](), time.monotonic() + SECONDS
    for symbol in touched:
        left = deadline - time.monotonic()
        uses = (await mapped().uses(symbol, left)).meaning("it") if left > 0 else []
        places = [f"{use.path}:{use.line}" for use in uses if use.role != "import"]
        more = f", … ({len(places)})" if len(places) > MOST_USES else ""
        told.append(f"{_place(symbol)}{' <- ' if places else ''}{', '.join(places[:MOST_USES])}{more}")
    return "\n".join(told)


def _place(symbol: Symbol) -> str:
    return f"{symbol.path}:{symbol.start}-{symbol.end} {symbol.what} {symbol.qualified}"


def _innermost(symbols: list[Symbol], lines: set[int]) -> list[Symbol]:
    """The smallest definition around each changed line."""
    found = dict[Symbol, None]()
    for line in sorted(lines):
        holding = [symbol for symbol in symbols if symbol.start <= line <= symbol.end]
        if holding:
            found[min(holding, key=lambda symbol: symbol.end - symbol.start)] = None
    return list(found)


def changed_lines(diff: str) -> dict[str, set[int]]:
    """The new lines of each file of a diff, and where lines were taken out the line that follows."""
    found, path, number = dict[str, set[int]](), "", 0
    for line in diff.split("\n"):
        if line.startswith("+++ "):
            path = line[4:].split("\t")[0].removeprefix("b/")
        elif hunk := HUNK.match(line):
            number = int(hunk[1])
        elif line.startswith(("+", "-")) and not line.startswith("---") and path != "/dev/null":
            found.setdefault(path, set()).add(number)
            number += line.startswith("+")
        elif line.startswith(" "):
            number += 1
    return found
