"""A config file, read and written whole."""

import os
import tempfile
from pathlib import Path

from duckflow.config.load import read
from duckflow.errors import UsageError

PRIVATE = 0o600


def read_text(path: Path) -> str:
    """Its text, which is known to be TOML; empty when there is none."""
    read(path)
    if not path.exists():
        return ""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return file.read()


def write_text(path: Path, text: str) -> None:
    """All of it or nothing; a link stays a link, and the file keeps its mode."""
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else PRIVATE
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            Path(name).chmod(mode)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise UsageError("config.unwritable", path=str(path), reason=problem.strerror or str(problem)) from None
