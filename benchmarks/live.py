"""Is the chat live while a job works? Usage: python -m benchmarks.live [SECONDS [PROCESSES]]

A real chat in a pseudo terminal; its job runs a command that keeps PROCESSES cores busy for SECONDS and prints 10 MB.
Meanwhile keys are typed, and the time is taken from the write to the terminal until the key's echo comes back; then
/tasks, from Enter until its answer. The same follows in the same chat when the job is over: what the machine itself
costs at this time of day.
"""

import os
import re
import select
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.journeys.story import act, decide
from tests.ui.console.terminal import Terminal

KEYS = 250
TASKS = 25
LINE = 20
BETWEEN_SECONDS = 0.02
PATIENCE_SECONDS = 30.0
BOTTOM = b"\x1b[38;1R"
CLEAR = "\x15"
FIRST_KEY = 0x4E00
"""Every key typed is another character, so that its echo cannot be taken for anything else."""
ANSWER = re.compile(rb"job_[0-9a-f]{8}")
WORK = """\
import hashlib, multiprocessing, time
SECONDS, PROCESSES, SIZE = {seconds}, {processes}, {size}
def spin(end):
    data = b""
    while time.monotonic() < end:
        data = hashlib.sha256(data * 64).digest()
start = time.monotonic()
others = [multiprocessing.Process(target=spin, args=(start + SECONDS,)) for _ in range(PROCESSES - 1)]
for other in others:
    other.start()
line, printed, data = "x" * 79, 0, b""
while printed < SIZE:
    data = hashlib.sha256(data * 64).digest()
    while printed < SIZE * (time.monotonic() - start) / SECONDS:
        print(line)
        printed += 80
for other in others:
    other.join()
"""
SIZE = 10_000_000
PLAN: dict[str, Any] = {
    "name": "Figures",
    "steps": [{"name": "Count", "description": "", "success": "", "depends_on": []}],
    "risks": [],
}
SCRIPT: list[Any] = [
    {"json": decide(act("plan_tool.propose", goal="figures"), step="PLANNING", next_step="pending_user")},
    {"json": PLAN},
    {"json": decide(act("task_tool.generate_list"), act("task_loop.run", step_id="1"), next_step="defer")},
    {"json": {"tasks": [act("shell.run", command="python3 work.py")]}},
]


class RawTerminal:
    """The terminal's end of the line, read without drawing it: drawing would take time that is not the chat's."""

    def __init__(self, terminal: Terminal) -> None:
        self._file: int = terminal.process.child_fd
        self.received = 0

    def send(self, text: str) -> None:
        os.write(self._file, text.encode())

    def drain(self, seconds: float) -> bytes:
        """Returns the output that comes in that time."""
        end, data = time.perf_counter() + seconds, b""
        while (left := end - time.perf_counter()) > 0:
            data += self._read(left)
        return data

    def until(self, wanted: re.Pattern[bytes]) -> float:
        """Returns the milliseconds until the text comes."""
        start, data = time.perf_counter(), b""
        while (passed := time.perf_counter() - start) < PATIENCE_SECONDS:
            data += self._read(0.5)
            if wanted.search(data):
                return (time.perf_counter() - start) * 1000
        raise TimeoutError(f"nothing after {passed:.0f} s: {data[-2000:]!r}")

    def _read(self, seconds: float) -> bytes:
        if not select.select([self._file], [], [], seconds)[0]:
            return b""
        data = os.read(self._file, 1 << 16)
        self.received += len(data)
        for _ in range(data.count(b"\x1b[6n")):
            os.write(self._file, BOTTOM)
        return data


class Typist:
    """Types, and takes the time."""

    def __init__(self, raw: RawTerminal) -> None:
        self._terminal = raw
        self._next = FIRST_KEY

    def keys(self, count: int) -> list[float]:
        times: list[float] = []
        for number in range(count):
            if number % LINE == 0:
                self._clear()
            key, self._next = chr(self._next), self._next + 1
            self._terminal.send(key)
            times.append(self._terminal.until(re.compile(re.escape(key.encode()))))
            self._terminal.drain(BETWEEN_SECONDS)
        self._clear()
        return times

    def tasks(self, count: int) -> list[float]:
        times: list[float] = []
        for _ in range(count):
            self._terminal.send("/tasks")
            self._terminal.drain(0.2)
            self._terminal.send("\r")
            times.append(self._terminal.until(ANSWER))
            self._terminal.drain(0.1)
        return times

    def _clear(self) -> None:
        self._terminal.send(CLEAR)
        self._terminal.drain(0.1)


def told(name: str, times: list[float]) -> None:
    ordered = sorted(times)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    print(
        f"{name:<28} n={len(times):<4} p50 {statistics.median(ordered):6.1f} ms   p99 {p99:6.1f} ms"
        f"   max {ordered[-1]:6.1f} ms"
    )


def main(seconds: float, processes: int) -> None:
    with TemporaryDirectory() as top:
        terminal = Terminal(Path(top), SCRIPT, "--mode", "full-auto")
        (terminal.work / "work.py").write_text(WORK.format(seconds=seconds, processes=processes, size=SIZE))
        try:
            measure(terminal, seconds)
        finally:
            terminal.process.close(force=True)


def measure(terminal: Terminal, seconds: float) -> None:
    terminal.wait_for("Say what you would like")
    terminal.enter("count")
    terminal.wait_for("Should I carry out this plan?")
    terminal.enter("yes")
    terminal.wait_for("⚙ Count 0/1")
    raw, start = RawTerminal(terminal), time.monotonic()
    typist = Typist(raw)
    raw.drain(1.0)
    told("keys while the job works", typist.keys(KEYS))
    told("/tasks while the job works", typist.tasks(TASKS))
    passed = time.monotonic() - start
    if passed > seconds:
        print(f"  the job was over too early: {seconds:g} s of work, {passed:.1f} s of typing")
    raw.drain(max(0.0, seconds + 3 - passed))
    print(f"{'sent to the terminal':<28} {raw.received / 1000:.0f} kB of the 10 000 kB printed")
    told("keys, idle", typist.keys(KEYS))
    told("/tasks, idle", typist.tasks(TASKS))


if __name__ == "__main__":
    given = sys.argv[1:3]
    main(float(given[0]) if given else 40.0, int(given[1]) if len(given) > 1 else 1)
