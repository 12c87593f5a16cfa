"""Time to a usable prompt: from the start of the process until the first key typed is echoed by the program.

usage: python -m benchmarks.first_key [RUNS] [-- COMMAND …]      (default 10 runs; COMMAND is measured beside duckflow)

The key is typed before the program starts, and the terminal's own echo is off: what comes back is the program's doing.
The two take turns, so that whatever else the machine does hits both. The first run of each only warms the disk cache.
"""

import json
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from fcntl import ioctl
from pathlib import Path

KEY = "§".encode()
LONGEST_SECONDS = 30.0
# What a terminal answers when it is asked where the cursor is, what it is, and which key protocol it speaks.
ANSWERS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62;c", b"\x1b[?u": b"\x1b[?0u"}


def terminal() -> tuple[int, int]:
    """The two ends of a terminal of 90 columns without echo."""
    ours, theirs = pty.openpty()
    ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 90, 0, 0))
    attributes = termios.tcgetattr(theirs)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    return ours, theirs


def first_key(command: list[str], work: Path) -> float:
    """Returns the seconds until the first key is echoed."""
    ours, theirs = terminal()
    os.write(ours, KEY)
    home = {"HOME": str(work.parent), "DUCKFLOW_HOME": str(work.parent / "home"), "TERM": "xterm-256color"}
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=work,
        env={**os.environ, **home, "LC_ALL": "C.UTF-8"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        return until_echoed(ours) - start
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(ours)


def until_echoed(ours: int, key: bytes = KEY) -> float:
    seen = b""
    end = time.perf_counter() + LONGEST_SECONDS
    while time.perf_counter() < end:
        if not select.select([ours], [], [], 0.05)[0]:
            continue
        piece = os.read(ours, 65536)
        seen += piece
        if key in seen:
            return time.perf_counter()
        for question, answer in ANSWERS.items():
            if question in piece:
                os.write(ours, answer)
    raise TimeoutError(f"never echoed; it showed {seen[-500:]!r}")


def main(arguments: list[str]) -> None:
    mine, _, other = " ".join(arguments).partition("--")
    runs = int(mine) if mine.strip() else 10
    with tempfile.TemporaryDirectory() as top:
        work, script = Path(top) / "work", Path(top) / "script.jsonl"
        work.mkdir()
        script.touch()
        commands = {"duckflow": [sys.executable, "-m", "duckflow", "-m", f"scripted:{script}"]}
        if other.strip():
            commands["other"] = other.split()
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(runs + 1):
            for name, command in commands.items():
                seconds[name].append(first_key(command, work))
    medians = {name: statistics.median(taken[1:]) for name, taken in seconds.items()}
    report: dict[str, float] = {f"{name}_ms": round(value * 1e3) for name, value in medians.items()}
    if other.strip():
        report["ratio"] = round(medians["duckflow"] / medians["other"], 3)
    print(json.dumps(report | {"runs": runs}))


if __name__ == "__main__":
    main(sys.argv[1:])
