"""Output on its way to the screen: at most a few pieces a second, however fast a command prints."""

import asyncio
from collections.abc import Callable

EVERY_SECONDS = 0.1
AT_ONCE = 4000

OnOutput = Callable[[str, int], None]
"""Takes a text, and how many lines before it were left out."""


class Live:
    """Hands text on at once when there is little of it; of a flood, the end of what came since the last time."""

    def __init__(self, on_output: OnOutput) -> None:
        self._on_output = on_output
        self._waiting = ""
        self._left_out = 0
        self._pause: asyncio.TimerHandle | None = None
        self._open = True

    def add(self, text: str) -> None:
        if self._open:
            self._waiting += text
            if len(self._waiting) > AT_ONCE:
                self._cut()
            if self._pause is None:
                self._hand_on()

    def close(self) -> None:
        """Hand on what is left, and nothing after that."""
        self._open = False
        if self._pause:
            self._pause.cancel()
        self._hand_on()

    def _hand_on(self) -> None:
        self._pause = None
        if not self._waiting:
            return
        if self._open:
            self._pause = asyncio.get_running_loop().call_later(EVERY_SECONDS, self._hand_on)
        text, left_out = self._waiting, self._left_out
        self._waiting, self._left_out = "", 0
        self._on_output(text, left_out)

    def _cut(self) -> None:
        """Keep the end, from the beginning of a line on where there is one."""
        cut = len(self._waiting) - AT_ONCE
        cut = self._waiting.find("\n", cut, -1) + 1 or cut
        self._left_out += self._waiting.count("\n", 0, cut)
        self._waiting = self._waiting[cut:]
