"""Digests: how a file is recognised as unchanged."""

import hashlib
import os

from duckflow.safety.regular import open_regular

ABSENT = "absent"
"""Stands in place of a digest where there is no file."""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_at(folder: int, name: str) -> str:
    """Of a file as it lies there now, read piece by piece; `absent` when there is none."""
    try:
        handle = open_regular(folder, name)
    except FileNotFoundError as problem:
        if isinstance(problem, IsADirectoryError):
            raise
        return ABSENT
    with os.fdopen(handle, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
