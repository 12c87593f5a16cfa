"""Where the bytes of a model come from: one protocol for every source, and how progress is told."""

import time
from collections.abc import Callable
from typing import Literal, Protocol

from duckflow.llm.local.incoming import Incoming

Stage = Literal["hub", "packages", "other_pull", "check"]
Progress = Callable[[int, int, Stage], None]
"""Called with bytes done, bytes in all, and what is going on. It may raise: the pull stops and can be resumed."""

REPORT_SECONDS = 0.2


class SourceUnavailable(Exception):
    """A source cannot deliver; the message says why, and the next source is tried."""


class Source(Protocol):
    """Something that can complete a file from wherever it broke off."""

    @property
    def stage(self) -> Stage: ...

    def fill(self, incoming: Incoming, meter: "Meter") -> None:
        """Append what is missing, or raise SourceUnavailable; what arrived stays."""
        ...


class Meter:
    """Passes progress on, a few times a second at most."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total = total
        self._progress = progress
        self._last: tuple[float, Stage] | None = None

    def show(self, done: int, stage: Stage) -> None:
        if self._progress is None:
            return
        now = time.monotonic()
        if self._last is not None and done < self._total:
            when, what = self._last
            if what == stage and now - when < REPORT_SECONDS:
                return
        self._last = (now, stage)
        self._progress(min(done, self._total), self._total, stage)
