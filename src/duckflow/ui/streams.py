"""The two standard streams: a character that the terminal's encoding lacks is replaced, never a crash."""

import contextlib
import sys
from io import TextIOWrapper


def never_fail() -> None:
    """A file name in a foreign script, a sign that CP932 lacks: better a question mark than an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def print_out(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def print_err(text: str) -> None:
    """Progress that nobody can see is no reason to stop."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
