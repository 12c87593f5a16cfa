"""The keyboard lent to others: an editor of the user's choice."""

import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from prompt_toolkit.input import Input, create_input

from duckflow.programs.find import find_program


def keyboard() -> Input:
    """What the input line reads from."""
    if os.name != "posix" or not sys.stdin.isatty():
        return create_input()
    from prompt_toolkit.input.vt100 import Vt100Input, raw_mode

    class Unchanged(raw_mode):
        """On leaving, the terminal is as it was on entering; in between nothing is touched."""

        def __enter__(self) -> None:
            return

    class Keyboard(Vt100Input):
        """Printing would put the terminal into its cooked mode for a moment, in which it echoes what is typed, makes
        Enter a line feed and Ctrl+C a signal. Printing needs none of that."""

        def cooked_mode(self) -> AbstractContextManager[None]:
            return Unchanged(self.fileno())

    return Keyboard(sys.stdin)


def cooked() -> AbstractContextManager[None]:
    """For another program that shall use the terminal."""
    if os.name != "posix" or not sys.stdin.isatty():
        return nullcontext()
    from prompt_toolkit.input.vt100 import cooked_mode

    return cooked_mode(sys.stdin.fileno())


def edit_text(text: str) -> str:
    """What the text is after the user has edited it; the same text when there is no editor that works."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proposed.txt"
        file.write_text(text, encoding="utf-8")
        try:
            with cooked():
                subprocess.run([*_editor(), str(file)], check=True)
        except (OSError, ValueError, subprocess.CalledProcessError):
            return text
        return file.read_text(encoding="utf-8", errors="replace")


def _editor() -> list[str]:
    """The user's, from outside of the work folder; a FileNotFoundError when there is none."""
    name, *options = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    program = find_program(name)
    if program is None:
        raise FileNotFoundError(name)
    return [program, *options]
