"""Private files and folders, which only the user can read. A file is written whole or not at all: a reader sees either
the old file or the new one."""

import contextlib
import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Replaces the file or link at the path by a new file that only the user can read."""
    content_bytes = content.encode("utf-8") if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    file_descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file_descriptor, "wb") as file:
            file.write(content_bytes)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def private_folder(folder: Path) -> None:
    """Makes the folder and its missing parents. Only their owner can look into them."""
    missing_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing_folders):
        path.mkdir(mode=0o700, exist_ok=True)


def make_private(path: Path) -> None:
    """Makes the file if it is missing. From now on only its owner can read it."""
    file_descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(file_descriptor).st_mode & 0o077:
            # Some disks have no permissions.
            with contextlib.suppress(OSError):
                os.fchmod(file_descriptor, 0o600)
    finally:
        os.close(file_descriptor)
