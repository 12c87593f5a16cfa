"""Which input line fits the terminal."""

import os
from pathlib import Path

from duckflow.ui.console.listener import Line

DUMB = ("dumb", "unknown", "")


def open_line(history: Path | None) -> Line:
    """One that draws where the terminal can be drawn on, else one that only prints."""
    if os.name == "posix" and os.environ.get("TERM", "").lower() in DUMB:
        from duckflow.ui.console.plain_line import PlainLine

        return PlainLine()
    from duckflow.ui.console.input_line import InputLine

    return InputLine(history)
