"""The keyboard of the input line: no key is lost or changed while something is printed above the line."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext

from prompt_toolkit.input import Input, create_input


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
