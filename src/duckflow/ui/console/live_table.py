"""Lines that are redrawn in place, and a key that interrupts them."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Sequence

from duckflow.i18n.plain import plain
from duckflow.i18n.width import fitted

UP, CLEAR, HIDE, SHOW = "\x1b[{}A", "\x1b[J", "\x1b[?25l", "\x1b[?25h"
READ = 1024


class LiveLines:
    """Lines at the bottom of a terminal. If the output is no terminal, only lines that have changed are printed."""

    def __init__(self) -> None:
        self.styled = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn: list[str] = []

    @property
    def columns(self) -> int:
        return shutil.get_terminal_size().columns - 1

    @property
    def rows(self) -> int:
        return shutil.get_terminal_size().lines - 2

    def draw(self, lines: Sequence[str]) -> None:
        shown_lines = (
            [fitted(plain(line), self.columns) for line in lines] if self.styled else [plain(line) for line in lines]
        )
        if shown_lines == self._drawn:
            return
        if self.styled:
            move_up = UP.format(len(self._drawn)) if self._drawn else ""
            sys.stdout.write(f"{HIDE}{move_up}\r{CLEAR}" + "".join(f"{line}\n" for line in shown_lines) + SHOW)
        else:
            sys.stdout.write("".join(f"{line}\n" for line in shown_lines if line not in self._drawn))
        sys.stdout.flush()
        self._drawn = shown_lines

    def leave(self) -> None:
        """Leaves the drawn lines on the screen. The next lines are drawn below them."""
        self._drawn = []


class EnterKey:
    """Reports when Enter is pressed, while nothing else reads the keyboard."""

    def __init__(self, pressed: Callable[[], None]) -> None:
        self._pressed = pressed
        self._watching = False

    def watch(self) -> None:
        if sys.stdin.isatty() and not self._watching:
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._read)
            self._watching = True

    def rest(self) -> None:
        if self._watching:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._watching = False

    def _read(self) -> None:
        if os.read(sys.stdin.fileno(), READ):
            self._pressed()
        else:
            self.rest()
