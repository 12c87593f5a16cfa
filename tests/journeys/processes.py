"""Processes on this machine, in whatever sandbox they are."""

import contextlib
import time
from pathlib import Path


def processes(words: str) -> dict[int, str]:
    """Those with these words in their command line, and how each is: `R`, `S`, `T` for stopped, as in /proc."""
    found: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if words in entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"):
                state = entry.with_name("stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    found[int(entry.parent.name)] = state
    return found


def wait_until_running(words: str) -> None:
    for _ in range(500):
        if processes(words):
            return
        time.sleep(0.02)
    raise AssertionError("the command never started")
