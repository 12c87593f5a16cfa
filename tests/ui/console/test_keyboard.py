"""Keys while something is printed above the input line."""

import sys
from typing import Any

import pexpect

LOOK = """
import termios
from duckflow.ui.console.keys import cooked, keyboard

def told(where):
    flags = termios.tcgetattr(0)
    print(where, bool(flags[0] & termios.ICRNL), bool(flags[3] & (termios.ECHO | termios.ISIG)), flush=True)

keys = keyboard()
with keys.raw_mode():
    with keys.cooked_mode():
        told("printing")
    with cooked():
        told("editor")
    told("typing")
"""


class Looked:
    """Records the flags of a terminal in each mode."""

    def __init__(self) -> None:
        self.process: Any = pexpect.spawn(sys.executable, ["-c", LOOK], encoding="utf-8", timeout=60, use_poll=True)
        self.lines = str(self.process.read()).split("\r\n")


def test_printing_does_not_change_what_enter_and_ctrl_c_are() -> None:
    assert Looked().lines[:3] == ["printing False False", "editor True True", "typing False False"]
