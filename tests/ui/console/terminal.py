"""A real terminal for the tests: a pseudo-terminal whose screen is rendered."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pexpect
import pyte
from pexpect.fdpexpect import fdspawn
from rich.style import Style
from rich.text import Text

from tests.forked_program import ForkedProgram, can_fork
from tests.journeys.story import decide, respond

READING_SECONDS, FINGER_SECONDS = 0.35, 0.05
GOING_SECONDS = 1.0
PATIENCE = 60.0
"""Seconds for what must come: a busy machine may take long, and when all is well nobody waits for it."""


class _AnsweringScreen(pyte.HistoryScreen):
    """Tells where the cursor is when it is asked, as terminals do."""

    answer: Callable[[str], Any]

    def write_process_input(self, data: str) -> None:
        self.answer(data)


def _style(cell: Any) -> Style:
    colors = {"brown": "yellow", "default": "default"}
    foreground: str = colors.get(cell.fg, str(cell.fg))
    known = foreground if foreground.isalpha() else f"#{foreground}"
    return Style(color=known, bold=cell.bold, italic=cell.italics, underline=cell.underscore, reverse=cell.reverse)


class _ForkedInTerminal:
    """A forked program, with what a Terminal asks of `pexpect.spawn`."""

    def __init__(self, arguments: list[str], folder: Path, environment: dict[str, str], columns: int) -> None:
        self.child_fd, inside = os.openpty()
        self.setwinsize(40, columns)
        self._program = ForkedProgram(arguments, folder, environment, (inside, inside, inside), terminal=True)
        os.close(inside)
        self._stream: Any = fdspawn(self.child_fd, timeout=PATIENCE, use_poll=True)
        self.send, self.read_nonblocking = self._stream.send, self._stream.read_nonblocking
        self.pid, self.kill = self._program.pid, self._program.send_signal

    @property
    def before(self) -> bytes:
        return self._stream.before

    @property
    def exitstatus(self) -> int | None:
        code = self._program.poll()
        return None if code is None or code < 0 else code

    @property
    def signalstatus(self) -> int | None:
        code = self._program.poll()
        return None if code is None or code >= 0 else -code

    def expect(self, pattern: Any, timeout: float = -1) -> None:
        self._stream.expect(pattern, timeout=timeout)

    def isalive(self) -> bool:
        return self._program.poll() is None

    def setwinsize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.child_fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self, force: bool = True) -> None:
        """The program hears that its terminal has gone, and has a moment to end by itself."""
        if self._stream.closed:
            return
        self._stream.close()
        try:
            self._program.wait(GOING_SECONDS)
        except subprocess.TimeoutExpired:
            self._program.kill()
            self._program.wait()


class Terminal:
    """`duckflow` in a terminal of its own, with a scripted model (or another one, when there are no replies)."""

    def __init__(
        self,
        top: Path,
        replies: list[Any] | None,
        *arguments: str,
        columns: int = 90,
        folder: str = "work",
        command: tuple[str, ...] = (),
        **environment: str,
    ) -> None:
        self.work = top / folder
        self.work.mkdir(exist_ok=True)
        script = top / "script.jsonl"
        if replies is not None:
            script.write_text("\n".join(json.dumps(line) for line in replies))
        model = [] if replies is None else ["-m", f"scripted:{script}"]
        self._screen = _AnsweringScreen(columns, 40, history=1000)
        self._stream = pyte.ByteStream(self._screen)
        settings = {"DUCKFLOW_HOME": str(top / "home"), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        settings["PYTHONFAULTHANDLER"] = "1"
        same = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        variables = same | {"HOME": str(top)} | settings | environment
        line = [*model, *arguments]
        if not command and can_fork(variables):
            self.process: Any = _ForkedInTerminal(line, self.work, variables, columns)
        else:
            program, *rest = command or (sys.executable, "-m", "duckflow", *line)
            self.process = pexpect.spawn(
                program,
                rest,
                cwd=str(self.work),
                env=variables,
                dimensions=(40, columns),
                timeout=PATIENCE,
                use_poll=True,
            )
        self.process.delaybeforesend = None
        self._screen.answer = lambda data: os.write(self.process.child_fd, data.encode())
        self.raw = b""
        self._shown = ""
        """Made anew when something was written."""

    def type(self, text: str) -> None:
        # Fingers wait a moment before they type; a terminal answers at once.
        time.sleep(FINGER_SECONDS)
        self.process.send(text)

    def paste(self, text: str) -> None:
        """Pastes text marked as a paste, as terminals do."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, columns: int) -> None:
        self._shown = ""
        self._screen.resize(40, columns)
        self.process.setwinsize(40, columns)

    def columns_of(self, sign: str) -> list[set[int]]:
        """Returns for every line of the screen the columns in which the sign stands."""
        rows = [self._screen.buffer[row] for row in range(self._screen.lines)]
        return [{column for column in range(self._screen.columns) if row[column].data == sign} for row in rows]

    def enter(self, text: str) -> None:
        self.type(text + "\r")

    def answer(self, text: str) -> None:
        """Enters a line after the moment that a question takes to be read."""
        time.sleep(READING_SECONDS)
        self.enter(text)

    def shown(self) -> str:
        """Returns the text on the screen, with the part that has scrolled off."""
        self.read(0.05)
        if not self._shown:
            gone = [
                "".join(line[column].data for column in range(self._screen.columns))
                for line in self._screen.history.top
            ]
            self._shown = "\n".join(line.rstrip() for line in [*gone, *self._screen.display])
        return self._shown

    def wait_for(self, text: str, seconds: float = PATIENCE) -> str:
        return self.wait_until(lambda screen: text in screen, seconds, repr(text))

    def wait_until(self, seen: Callable[[str], bool], seconds: float = PATIENCE, what: str = "it") -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if seen(screen := self.shown()):
                return screen
        screen = self.shown()
        raise AssertionError(f"{what} never came; the screen shows:\n{screen}\nThe program:\n{self._stacks()}")

    def styled(self) -> list[Text]:
        """Returns the lines of the screen in their colours."""
        lines: list[Text] = []
        for row in range(self._screen.lines):
            cells = [self._screen.buffer[row][column] for column in range(self._screen.columns)]
            lines.append(Text.assemble(*((cell.data, _style(cell)) for cell in cells if cell.data)))
        return lines

    def close(self) -> None:
        """Ends the program, whatever it is doing; on a busy machine that may take longer than the wait."""
        with suppress(pexpect.ExceptionPexpect):
            self.process.close(force=True)

    def wait_for_end(self) -> int:
        self.read(0.2)
        self.process.expect(pexpect.EOF)
        self._take(self.process.before or b"")
        self.process.close()
        return int(self.process.exitstatus)

    def read(self, seconds: float) -> None:
        try:
            self._take(self.process.read_nonblocking(65536, seconds))
        except (pexpect.TIMEOUT, pexpect.EOF, ValueError):
            # Nothing new, or the program has ended: what was shown still stands.
            return

    def _stacks(self) -> str:
        """Returns the stacks of the program, which Python prints last."""
        if not self.process.isalive():
            return f"has ended: {self.process.exitstatus or self.process.signalstatus}"
        said = len(self.raw)
        self.process.kill(signal.SIGABRT)
        with suppress(pexpect.ExceptionPexpect):
            self.process.expect(pexpect.EOF, timeout=5)
        return (self.raw[said:] + (self.process.before or b"")).decode("utf-8", "replace")

    def _take(self, data: bytes) -> None:
        self.raw += data
        self._shown = ""
        self._stream.feed(data)


def open_terminal(
    opened: list[Terminal], top: Path, replies: list[Any] | None, *arguments: str, **settings: Any
) -> Terminal:
    """Opens a terminal that the fixture `opened` closes."""
    opened.append(terminal := Terminal(top, replies, *arguments, **settings))
    return terminal


def start(opened: list[Terminal], top: Path, replies: list[Any], *arguments: str, **settings: Any) -> Terminal:
    """Starts a chat and waits for its greeting."""
    terminal = open_terminal(opened, top, replies, *arguments, **settings)
    terminal.wait_for("/help")
    return terminal


def said(text: str, **how: Any) -> dict[str, Any]:
    return {"json": decide(respond(text), step="PLANNING"), **how}
