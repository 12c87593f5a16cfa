"""A file that is written whole or not at all: whoever reads it meanwhile sees the old one."""

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Put a new file that only the user can read in the place of whatever stands there, a link too."""
    import tempfile

    data = content.encode("utf-8") if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(draft).replace(path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise
