"""A file that is written whole or not at all: a reader sees either the old one or the new one."""

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Replaces whatever stands at the path, even a link, by a new file that only the user can read."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
