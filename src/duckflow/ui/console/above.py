"""Printing above the input line while it is live."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO, cast

from prompt_toolkit.patch_stdout import StdoutProxy

BUNDLE_SECONDS = 0.02
"""How long prints are gathered before the input line is drawn anew; the library's own 0.2 s can be felt."""


@contextmanager
def above_prompt() -> Generator[None]:
    """As the library's `patch_stdout(raw=True)`, which cannot be told to wait less."""
    before = sys.stdout, sys.stderr
    with StdoutProxy(sleep_between_writes=BUNDLE_SECONDS, raw=True) as proxy:
        sys.stdout = sys.stderr = cast("TextIO", proxy)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
