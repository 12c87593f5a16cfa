"""Finds files of the work folder by any part of their names, fast enough for every keystroke."""

import re
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

FRESH_SECONDS = 10.0
MOST_FILES = 200_000


class Lines:
    """Many short texts joined into one long text, so that a single search covers all of them."""

    def __init__(self, texts: list[str]) -> None:
        self._whole = "".join(f"\n{text}" for text in texts) + "\n"
        self._starts = list(accumulate((len(text) + 1 for text in texts), initial=0))

    def containing(self, wanted: str) -> Iterator[int]:
        """Yields the numbers of the texts that contain `wanted`. If `wanted` begins with a newline, these are the texts
        that begin with the rest of it."""
        offset = self._whole.find(wanted)
        while offset >= 0:
            number = bisect_right(self._starts, offset) - 1
            yield number
            offset = self._whole.find(wanted, self._starts[number + 1])

    def scattered(self, wanted: str) -> Iterator[int]:
        """Yields the numbers of the texts that contain these letters in this order. The pattern never backtracks, so no
        text can make it slow."""
        letters = "".join(f"[^\n{re.escape(letter)}]*+{re.escape(letter)}" for letter in wanted)
        for match in re.finditer(rf"\n{letters}", self._whole):
            yield bisect_right(self._starts, match.start()) - 1


class Listing(NamedTuple):
    """All paths, shortest first. Their names, and the whole paths in lower case, are in the same order."""

    paths: list[str]
    names: Lines
    whole: Lines

    def fitting(self, wanted: str) -> Iterator[int]:
        """Yields the numbers of the paths that contain `wanted`, the best first."""
        yield from self.names.containing(f"\n{wanted}")
        yield from self.names.containing(wanted)
        yield from self.whole.containing(wanted)


class FileIndex:
    """Finds files. The list is made at the first search, and anew in the background when it is old. Files that git
    ignores are not in it."""

    def __init__(self, folder: Path, symbols: Callable[[str, int], list[str]] = lambda wanted, most: []) -> None:
        """`symbols` returns `file:Class.method` for the beginning of a name."""
        self._folder = folder
        self._symbols = symbols
        self._listing: Listing | None = None
        self._made_at = 0.0
        self._making = threading.Lock()

    def find(self, wanted: str, most: int) -> list[str]:
        """Returns at most `most` places. First come files whose names begin with `wanted`, then files whose paths
        contain it. Next come definitions whose names begin with `wanted`, and last files that have its letters in
        order."""
        listing = self._current()
        lowered_query = wanted.casefold().replace("\n", "")
        if not lowered_query:
            return listing.paths[:most]
        files = _first(listing, listing.fitting(lowered_query), most)
        symbols = self._symbols(wanted, most)
        best_hits = [*files[: max(most - len(symbols), most // 2)], *symbols][:most]
        scattered_hits = _first(listing, listing.whole.scattered(lowered_query), most) if len(best_hits) < most else []
        return list(dict.fromkeys([*best_hits, *scattered_hits]))[:most]

    def _current(self) -> Listing:
        if self._listing is None:
            with self._making:
                if self._listing is None:
                    self._make()
        elif time.monotonic() - self._made_at > FRESH_SECONDS and self._making.acquire(blocking=False):
            threading.Thread(target=self._make_anew, daemon=True).start()
        assert self._listing
        return self._listing

    def _make_anew(self) -> None:
        try:
            self._make()
        finally:
            self._making.release()

    def _make(self) -> None:
        paths = sorted(_files(self._folder), key=lambda path: (path.count("/"), len(path), path))
        lowered_paths = [path.casefold() for path in paths]
        self._listing = Listing(paths, Lines([path.rpartition("/")[2] for path in lowered_paths]), Lines(lowered_paths))
        self._made_at = time.monotonic()


def _first(listing: Listing, numbers: Iterator[int], most: int) -> list[str]:
    distinct_paths = dict.fromkeys(listing.paths[number] for number in islice(numbers, 3 * most))
    return list(distinct_paths)[:most]


def _files(folder: Path) -> Iterator[str]:
    from duckflow.errors import ToolError
    from duckflow.safety.ignore_rules import ignored_in
    from duckflow.safety.workspace import Workspace

    try:
        workspace = Workspace(folder)
        is_ignored = ignored_in(workspace)
        entries = workspace.walk(".", lambda entry: not is_ignored(entry))
        files = (entry.path for entry in entries if entry.kind != "folder" and not is_ignored(entry))
        yield from islice(files, MOST_FILES)
    except (OSError, ToolError):
        return
