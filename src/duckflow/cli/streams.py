"""Standard input, output and error: there from the start, whole at the end."""

import os
import sys

MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_streams() -> None:
    """What was closed leads nowhere from now on: else the next file to be opened would take its place."""
    for handle, (name, mode) in enumerate(MODES.items()):
        try:
            os.fstat(handle)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(handle, mode, encoding="utf-8", closefd=False))


def flushed() -> bool:
    """Whether the output has arrived; what cannot arrive any more is dropped without a complaint."""
    whole = True
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _drop(stream.fileno())
        except (OSError, ValueError):
            whole = stream is not sys.stdout
            _drop(stream.fileno())
    return whole


def _drop(handle: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handle)
    os.close(nowhere)
