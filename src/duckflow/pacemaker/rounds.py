"""Hears when code that is still being written goes round: the same few lines many times on end."""

import re

TIMES = 40
LONGEST = 6
"""Lines of the longest passage that is looked for."""
NUMBER = re.compile(r"\d+")


class Rounds:
    """`hear(piece)` for every piece of a text. Numbers make no difference: counting up is going round too."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""

    def hear(self, piece: str) -> bool:
        *whole, self._rest = (self._rest + piece).split("\n")
        for line in whole:
            if line.strip():
                self._lines.append(NUMBER.sub("0", line.strip()))
        del self._lines[: -TIMES * LONGEST]
        return bool(whole) and any(self._goes_round(length) for length in range(1, LONGEST + 1))

    def _goes_round(self, length: int) -> bool:
        last = self._lines[-length * TIMES :]
        return len(last) == length * TIMES and last == last[:length] * TIMES
