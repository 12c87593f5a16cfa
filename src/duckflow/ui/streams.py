"""The two standard streams. A character that the terminal's encoding lacks is replaced, and raises no error."""

import contextlib
import sys
from io import TextIOWrapper


def never_fail() -> None:
    """Makes the streams print a question mark for a character that their encoding (such as CP932) lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def print_out(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def print_err(text: str) -> None:
    """Prints to stderr. An error of stderr itself is ignored, because nobody could see it."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
