"""What the secret files of the work folder hold, so that it is not passed on by another way than reading them."""

import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from duckflow.safety.secrets import secret_name

SKIPPED = frozenset((".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", "site-packages"))
ENTRIES = 10_000
FILES = 50
FILE_BYTES = 64 * 1024
SHORTEST_LINE = 6
SETTING = re.compile(r"""["']?([\w.-]+)["']?\s*[=:]\s*["']?([^\s"',;]+)""")
TELLING = re.compile(r"(?i)key|token|secret|pass|pwd|credential|auth")
SHORTEST_VALUE, SHORTEST_RANDOM = 8, 16


class KnownSecrets(NamedTuple):
    """Whole lines, and the values in them that can only be secrets."""

    lines: frozenset[str] = frozenset()
    values: tuple[str, ...] = ()
    """The longest first: one may be a part of another."""

    def joined(self, other: "KnownSecrets") -> "KnownSecrets":
        values = sorted({*self.values, *other.values}, key=len, reverse=True)
        return KnownSecrets(self.lines | other.lines, tuple(values))


def known_secrets(folder: Path) -> KnownSecrets:
    """Of a large folder only the upper part is looked at, and of a large file its beginning."""
    lines: set[str] = set()
    values: set[str] = set()
    for path in secret_files(folder):
        for line in _lines(folder / path):
            lines.add(line)
            if (found := SETTING.match(line.removeprefix("export "))) and _secret_value(found[1], found[2]):
                values.add(found[2])
    return KnownSecrets(frozenset(lines), tuple(sorted(values, key=len, reverse=True)))


def _secret_value(name: str, value: str) -> bool:
    if "://" in value:
        return False
    if TELLING.search(name):
        return len(value) >= SHORTEST_VALUE
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return mixed and len(value) >= SHORTEST_RANDOM


def secret_files(folder: Path) -> Iterator[str]:
    """Their paths beneath the folder, breadth first; links are not followed."""
    waiting = deque([""])
    looked_at = found = 0
    while waiting:
        inner = waiting.popleft()
        try:
            entries = os.scandir(folder / inner)
        except OSError:
            continue
        with entries:
            for entry in entries:
                looked_at += 1
                if looked_at > ENTRIES or found >= FILES:
                    return
                path = f"{inner}/{entry.name}" if inner else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in SKIPPED:
                        waiting.append(path)
                elif secret_name(path) and entry.is_file(follow_symlinks=False):
                    found += 1
                    yield path


def _lines(path: Path) -> Iterator[str]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            text = file.read(FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    for line in map(str.strip, text.splitlines()):
        if len(line) >= SHORTEST_LINE and not line.startswith("#"):
            yield line
