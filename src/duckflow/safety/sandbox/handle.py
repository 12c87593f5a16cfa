"""A hold on a file or folder that stays the same one, whatever is put in its place meanwhile."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

HOLD: int = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC


def hold(top: Path, path: Path) -> int:
    """Opens what is beneath `top` without going through any link; a link on the way is an OSError."""
    folder = os.open(top, HOLD | os.O_DIRECTORY)
    *parents, last = path.relative_to(top).parts
    for name in parents:
        try:
            below = os.open(name, HOLD | os.O_DIRECTORY, dir_fd=folder)
        finally:
            os.close(folder)
        folder = below
    try:
        return os.open(last, HOLD, dir_fd=folder)
    finally:
        os.close(folder)


@contextmanager
def held(top: Path, path: Path) -> Generator[int]:
    handle = hold(top, path)
    try:
        yield handle
    finally:
        os.close(handle)
