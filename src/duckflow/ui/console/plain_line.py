"""A plain input line for terminals that cannot be drawn on, and the choice between the plain line and the drawn one."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from duckflow.i18n.words import Words
from duckflow.ui.console.line import Line, LineHandler

READ_AT_ONCE = 65536
PROMPT = "> "
SETTLED_SECONDS = 0.05
LOCAL_FLAGS = 3
"""The place in a terminal's settings that says whether it echoes."""


class PlainLine:
    """An input line that leaves echo and editing to the terminal, and never draws over anything."""

    def __init__(self) -> None:
        self._handler: LineHandler | None = None
        self._early: list[tuple[str, float]] = []
        self._typed = b""
        self._prompted = False
        self._left = asyncio.Event()
        self._hidden = False

    @contextmanager
    def printing(self) -> Generator[None]:
        yield

    async def run(self) -> None:
        """Reads lines until the user leaves or the input ends."""
        loop = asyncio.get_running_loop()
        keyboard = sys.stdin.fileno()
        loop.add_reader(keyboard, self._read, keyboard)
        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, self._on_ctrl_c)
        try:
            await self._left.wait()
        finally:
            loop.remove_reader(keyboard)
            self._hide(False)

    async def lend_terminal(self, work: Callable[[], str]) -> str:
        return await asyncio.to_thread(work)

    async def shown(self) -> None:
        return

    def hand_to(self, handler: LineHandler | None) -> None:
        self._handler = handler
        while self._handler and self._early:
            self._handler.take(*self._early.pop(0))
        self.redraw()

    def redraw(self) -> None:
        """Prints a prompt once when it is the user's turn. A secret is typed without echo."""
        self._hide(self._handler is not None and self._handler.hides())
        if self._handler and self._handler.ready() and not self._prompted:
            self._prompted = True
            sys.stdout.write(PROMPT)
            sys.stdout.flush()

    def _hide(self, hidden: bool) -> None:
        if hidden == self._hidden or not sys.stdin.isatty():
            return
        import termios

        self._hidden = hidden
        settings = termios.tcgetattr(sys.stdin)
        settings[LOCAL_FLAGS] &= ~termios.ECHO
        settings[LOCAL_FLAGS] |= 0 if hidden else termios.ECHO
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)

    def signal(self, sequence: str) -> None:
        sys.stdout.write(sequence)
        sys.stdout.flush()

    def put_back(self, text: str) -> bool:
        """Returns False: a line that the terminal has taken over cannot be edited any more."""
        return False

    def leave(self) -> None:
        self._left.set()

    def _on_ctrl_c(self) -> None:
        if self._handler and self._handler.busy():
            self._handler.interrupt()
        else:
            self.leave()

    def _read(self, keyboard: int) -> None:
        typed_bytes = os.read(keyboard, READ_AT_ONCE)
        if not typed_bytes:
            self.leave()
        *lines, self._typed = (self._typed + typed_bytes).split(b"\n")
        for line in lines:
            self._prompted = False
            if self._hidden:
                # The terminal has not echoed the end of the line either.
                sys.stdout.write("\n")
            text = line.decode(sys.stdin.encoding or "utf-8", "replace").strip()
            if self._handler:
                self._handler.take(text, time.monotonic())
            else:
                self._early.append((text, time.monotonic()))
        # Only a moment later is it known whether it is the user's turn again.
        asyncio.get_running_loop().call_later(SETTLED_SECONDS, self.redraw)


DUMB = ("dumb", "unknown", "")


def open_line(history: Path | None, words: Words) -> Line:
    """Returns an input line that draws if the terminal can be drawn on, else one that only prints."""
    if os.name == "posix" and os.environ.get("TERM", "").lower() in DUMB:
        return PlainLine()
    from duckflow.ui.console.input_line import InputLine

    return InputLine(history, words)
