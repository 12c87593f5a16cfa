"""Searching texts line by line, in bounded time."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from duckflow.errors import ToolError
from duckflow.programs.find import environment_outside
from duckflow.programs.launch import Launch, Limits
from duckflow.programs.run import OverrunError, ignore, run
from duckflow.safety.files import FolderEntry
from duckflow.safety.ignore_rules import glob_matcher, ignored_in
from duckflow.safety.workspace import Workspace
from duckflow.tools.files.document import large_lines, line_text, load

LONGEST = 1024 * 1024
BROKE_OFF = 2
LIMITS = Limits(processes=1000, memory_mib=1024, file_mib=1, free_mib=0, temporary_mib=0)
"""A search program keeps whole lines in memory, and whole files of rules on what to ignore, however long they are."""
OUTPUT_LINE = re.compile(rb"([^\0]*)\0([^\n]*\n)")


@dataclass(frozen=True, slots=True)
class Match:
    path: str
    line: int
    text: str


@dataclass(slots=True)
class TextMatch:
    """The result of a search, and how it ended."""

    matches: list[Match] = field(default_factory=list[Match])
    more: bool = False
    timed_out: bool = False
    exit_code: int = 0


def search_launch(command: Sequence[str], folder: Path) -> Launch:
    return Launch(command, folder, environment_outside(folder), LIMITS)


Shows = Callable[[str], str | None]
"""A function that returns what is shown of a line that was found; None if the line does not count as a match."""
LONGEST_LINE = 20_000
"""The most characters of a line that a search gives back. What is shown of it is cut later, when secrets are hidden."""


async def find_matches(launch: Launch, request: bytes, limit: int, seconds: float, shows: Shows = str) -> TextMatch:
    """Runs a search that prints `path NUL line : text`. It takes at most `limit` matches that count, then ends the
    search."""
    text_match, enough, buffer = TextMatch(), asyncio.Event(), bytearray()

    def take(piece: bytes) -> None:
        buffer.extend(piece)
        while len(text_match.matches) <= limit and (line := OUTPUT_LINE.match(buffer)):
            path, (number, _, text) = line[1].decode("utf-8", "surrogateescape"), line[2].partition(b":")
            if number.isdigit() and (shown_text := shows(line_text(text))) is not None:
                text_match.matches.append(Match(path.removeprefix("./"), int(number), shown_text))
            del buffer[: line.end()]
        text_match.more = len(text_match.matches) > limit
        if text_match.more or len(buffer) > LONGEST:
            enough.set()

    try:
        text_match.exit_code = await run(launch, take, ignore, request, seconds, enough)
    except OverrunError:
        text_match.exit_code = BROKE_OFF
    except TimeoutError:
        text_match.timed_out = True
    del text_match.matches[limit:]
    return text_match


@dataclass(frozen=True, slots=True)
class Search:
    """A search: what to look for, and where. `path` is in the spelling that Workspace.relative returns."""

    folder: str
    path: str
    pattern: str
    glob: str
    ignore_case: bool
    file_bytes: int
    private: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    def regex(self) -> "re.Pattern[str]":
        return re.compile(self.pattern, re.IGNORECASE if self.ignore_case else 0)


def search(request: Search, out: BinaryIO) -> None:
    """Prints `path NUL line : text` for every line that matches."""
    workspace = Workspace(Path(request.folder), private=tuple(map(Path, request.private)))
    regex = request.regex()
    for path in _files(workspace, request):
        for number, line in _lines(workspace, path, request.file_bytes):
            if regex.search(line):
                out.write(f"{path}\0{number}:{line[:LONGEST_LINE]}\n".encode("utf-8", "surrogateescape"))
        out.flush()


def _lines(workspace: Workspace, path: str, limit: int) -> Iterator[tuple[int, str]]:
    """Yields the lines of a file with their numbers. A file that is no text, or has been deleted meanwhile, has no
    lines."""
    try:
        if workspace.stat(f"./{path}").size > limit:
            with workspace.open(f"./{path}") as file:
                yield from large_lines(file)
        else:
            yield from enumerate(load(workspace, f"./{path}", limit).lines, 1)
    except (OSError, ToolError):
        return


def _files(workspace: Workspace, request: Search) -> Iterator[str]:
    if workspace.stat(request.path).kind != "folder":
        yield request.path
        return
    is_ignored = ignored_in(workspace)
    matches_glob = glob_matcher(request.glob) if request.glob else None
    prefix_length = 0 if request.path == "." else len(request.path) + 1

    def enter(folder: FolderEntry) -> bool:
        return not is_ignored(folder)

    for entry in workspace.walk(request.path, enter):
        if (
            entry.kind == "file"
            and not is_ignored(entry)
            and (matches_glob is None or matches_glob(entry.path[prefix_length:]))
        ):
            yield entry.path


def around(line: str, at: int, length: int) -> str:
    """Cuts a long line so that the match stays in it."""
    if len(line) <= length:
        return line
    start = max(0, min(at - length // 3, len(line) - length))
    return ("…" if start else "") + line[start : start + length] + ("…" if start + length < len(line) else "")


def main() -> None:
    request: dict[str, Any] = json.load(sys.stdin)
    search(Search(**request), sys.stdout.buffer)


if __name__ == "__main__":
    main()
