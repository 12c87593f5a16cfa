"""What a command prints, as far as a person wants to see it."""

from collections import deque

LONGEST_LINE = 400


class OutputLines:
    """The first lines as they come, the last ones at the end, and how many lie between them."""

    def __init__(self, first: int, last: int) -> None:
        self._first = first
        self._last: deque[str] = deque(maxlen=last)
        self._left_out = 0
        self._begun = ""
        self.latest = ""

    def add(self, text: str, left_out: int = 0) -> list[str]:
        """The lines to show now. `left_out`: lines before the text that were not handed on."""
        if left_out:
            # What was begun cannot be told from what is missing.
            self._begun = ""
            self._first = 0
            self._left_out += left_out
        *lines, rest = (self._begun + text).split("\n")
        self._begun = rest if len(rest) <= LONGEST_LINE else _seen(rest)
        whole = [_seen(line) for line in lines]
        self.latest = next((line for line in (_seen(rest), *reversed(whole)) if line.strip()), self.latest)
        shown, kept = whole[: self._first], whole[self._first :]
        self._first -= len(shown)
        for line in kept:
            self._keep(line)
        return shown

    def end(self) -> tuple[int, list[str]]:
        """How many lines were left out, and those that came after them."""
        if self._begun:
            self._keep(_seen(self._begun))
            self._begun = ""
        return self._left_out, list(self._last)

    def _keep(self, line: str) -> None:
        self._left_out += len(self._last) == self._last.maxlen
        self._last.append(line)


def _seen(line: str) -> str:
    """What would stand in a terminal: what a progress bar printed last, and not more than a person reads."""
    line = line.rstrip("\r").rpartition("\r")[2]
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
