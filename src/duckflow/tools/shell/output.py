"""The output of a command: cleaned, shown live, and cut to its head, its tail and the lines that tell why it failed."""

import asyncio
import codecs
import re
from collections.abc import Callable

from duckflow.tools.shell.causes import Causes

STEERING = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links and other texts for the terminal
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
UNFINISHED = re.compile(r"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)|\x9b[0-?]*[ -/]*|\r)\Z")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
LONGEST_CODE = 4096


class Cleaner:
    """Removes control codes piece by piece; a character or a code may be split between two pieces. Bytes that are no
    UTF-8 become `�`."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._kept = ""

    def clean(self, data: bytes, last: bool = False) -> str:
        text = self._kept + self._decoder.decode(data, last)
        self._kept = ""
        if not last and (cut_match := UNFINISHED.search(text, max(0, len(text) - LONGEST_CODE))):
            text, self._kept = text[: cut_match.start()], text[cut_match.start() :]
        if "\x1b" in text or "\x9b" in text:
            text = STEERING.sub("", text)
        return CONTROL.sub("", text.replace("\r\n", "\n"))


PROGRESS = re.compile(r"(?:\S+\.py )?[.sxX]+(?:\s*\[ *\d+%\])?")
WARNINGS = re.compile(r"(?ms)^=+ warnings summary =+\n.*?^-- Docs: \S+\n")
WORTH_CUTTING = 600
"""The number of characters below which an output is shown whole."""


def without_progress(output: str) -> str:
    """Returns the output of tests that all passed, without the lines of dots and without warnings: its last line counts
    the tests. The names that `-v` lists stay, because a criterion may ask for them."""
    if len(output) < WORTH_CUTTING:
        return output
    lines = WARNINGS.sub("", output).split(NEWLINE)
    return NEWLINE.join(line for line in lines if not PROGRESS.fullmatch(line.rstrip()))


NEWLINE = "\n"
REDRAWN = re.compile(r"(?<![^\n\r])[^\n\r]*+\r")
"""A pattern for text that a progress bar printed over. It is looked for only at the beginning of a line, because a line
may be very long."""


class Excerpt:
    """Takes any amount of text and keeps its head, its tail, and from the middle the passages that tell of a
    failure."""

    def __init__(self, head: int, tail: int, causes: int = 0) -> None:
        self._head_size = head
        self._tail_size = tail
        self._room = causes
        self._head = ""
        self._tail = ""
        self._seen = 0
        self._lines = 0
        self._causes = Causes()

    def add(self, text: str) -> None:
        self._seen += len(text)
        self._lines += text.count("\n")
        if self._room:
            self._causes.add(text)
        head_room = self._head_size - len(self._head)
        if head_room > 0:
            self._head += text[:head_room]
            text = text[head_room:]
        self._tail += text
        # The tail may grow to twice its size before it is cut, so that cutting is rare.
        if len(self._tail) > 2 * self._tail_size:
            self._tail = self._tail[len(self._tail) - self._tail_size :]

    def text(self, failed: bool = False) -> str:
        """Returns the whole text; or its head and tail, and between them lines that say how much is missing."""
        if self._seen == len(self._head) + len(self._tail) and len(self._tail) <= self._tail_size:
            return REDRAWN.sub("", self._head + self._tail)
        head = self._head[: self._head.rfind("\n") + 1] or self._head + "\n"
        tail = self._tail[len(self._tail) - self._tail_size :]
        tail = tail[tail.find("\n") + 1 :] or tail
        offset, tail_offset, pieces = min(len(head), len(self._head)), self._seen - len(tail), [head]
        for passage in self._causes.passages(offset, tail_offset, self._room) if failed else ():
            pieces += [_left_out(passage.start - offset), *(f"{line}\n" for line in passage.lines)]
            offset = passage.end
        # If there is only one gap, its lines are named, so that the model can ask for them.
        lines = f", lines {head.count(NEWLINE) + 1} to {self._lines - tail.count(NEWLINE)}" if len(pieces) == 1 else ""
        return REDRAWN.sub("", "".join([*pieces, _left_out(tail_offset - offset, lines), tail]))


def _left_out(characters: int, lines: str = "") -> str:
    return f"[… {characters} characters left out{lines} …]\n" if characters > 0 else ""


EVERY_SECONDS = 0.1
AT_ONCE = 4000

OnOutput = Callable[[str, int], None]
"""A function that takes a text, and the number of lines before it that were left out."""


class Live:
    """Passes text on immediately when there is little of it. When much text comes, only its end is passed on, at
    intervals."""

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
        """Passes on the waiting text. Text that is added afterwards is dropped."""
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
        text, left_out_count = self._waiting, self._left_out
        self._waiting, self._left_out = "", 0
        self._on_output(text, left_out_count)

    def _cut(self) -> None:
        """Cuts the waiting text to its end, which begins with a whole line where possible."""
        cut_length = len(self._waiting) - AT_ONCE
        cut_length = self._waiting.find("\n", cut_length, -1) + 1 or cut_length
        self._left_out += self._waiting.count("\n", 0, cut_length)
        self._waiting = self._waiting[cut_length:]


class CommandOutput:
    """Takes the output as bytes as they come, in bounded memory."""

    def __init__(self, head: int, tail: int, causes: int, on_output: OnOutput) -> None:
        self._cleaner = Cleaner()
        self._excerpt = Excerpt(head, tail, causes)
        self._live = Live(on_output)

    def take(self, data: bytes, last: bool = False) -> None:
        text = self._cleaner.clean(data, last)
        self._excerpt.add(text)
        self._live.add(text)

    def text(self, failed: bool = False) -> str:
        return self._excerpt.text(failed).rstrip()

    def leave_screen(self) -> None:
        """Stops showing output on the screen."""
        self._live.close()
