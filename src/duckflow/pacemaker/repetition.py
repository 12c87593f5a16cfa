"""Repetition in a text while it streams in: the same passage or the same lines again and again."""

import re

from duckflow.pacemaker.settings import DetectorSettings

FENCE = "```"
LETTER = r"\w"
PROBE = 20
LEAST = 200
"""Shorter runs of repetition are left alone: a refrain, `ha ha ha`."""


class RepeatedText:
    """`hear(piece)` for every piece of a reply; true when the end of the text is one passage many times on end.

    Code between fences is left alone, since code repeats itself lawfully. One watch per reply.
    """

    def __init__(self, settings: DetectorSettings) -> None:
        self._repeats = settings.stream_repeats
        self._longest = settings.stream_longest
        self._keep = max(settings.stream_longest * settings.stream_repeats, LEAST + settings.stream_longest)
        self._text = ""
        self._in_code = False
        self._tail = ""

    def hear(self, piece: str) -> bool:
        pieces = (self._tail + piece).split(FENCE)
        # A fence may be cut in two by the stream: its first backticks wait for the next piece.
        kept = pieces[-1].rstrip("`")
        self._tail = pieces[-1][len(kept) :]
        pieces[-1] = kept
        for number, part in enumerate(pieces):
            if number:
                self._in_code, self._text = not self._in_code, ""
            if not self._in_code:
                self._text = (self._text + part)[-self._keep :]
        return not self._in_code and self._is_round()

    def _is_round(self) -> bool:
        """Whether the text ends in `repeats` copies of the same passage. A line of dashes is no passage."""
        text, probe = self._text, self._text[-PROBE:]
        if not re.search(LETTER, probe):
            return False
        before = text.rfind(probe, 0, len(text) - 1)
        while before >= 0:
            length = len(text) - PROBE - before
            if length > self._longest:
                return False
            if text.endswith(text[-length:] * max(self._repeats, -(-LEAST // length))):
                return True
            before = text.rfind(probe, 0, before + PROBE - 1)
        return False


TIMES = 40
LONGEST = 6
"""Lines of the longest passage that is looked for."""
NUMBER = r"\d+"


class RepeatedLines:
    """`hear(piece)` for every piece of a text. Numbers make no difference: counting up is going round too."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""

    def hear(self, piece: str) -> bool:
        *whole, self._rest = (self._rest + piece).split("\n")
        for line in whole:
            if line.strip():
                self._lines.append(re.sub(NUMBER, "0", line.strip()))
        del self._lines[: -TIMES * LONGEST]
        return bool(whole) and any(self._goes_round(length) for length in range(1, LONGEST + 1))

    def _goes_round(self, length: int) -> bool:
        last = self._lines[-length * TIMES :]
        return len(last) == length * TIMES and last == last[:length] * TIMES
