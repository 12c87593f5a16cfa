"""What a typed path means: the names to follow, one after the other, beneath the work folder."""

import os
from pathlib import Path

from duckflow.errors import PathRefused
from duckflow.safety.shown import shown

MAX_PATH = 4096
MAX_NAME = 255
MAX_DEPTH = 200
SHOWN_LENGTH = 120


def names_of(path: str, root: os.stat_result) -> list[str]:
    """The names of a path given by someone; `..` stays, it is resolved on the way down. Only `/` separates. Look-alikes
    of it, backslashes and drive letters are ordinary characters of a name."""
    _check(path)
    if path == "~" or path.startswith("~/"):
        path = _home() + path[1:]
    names = beneath(path, root) if path.startswith("/") else split(path)
    if len(names) > MAX_DEPTH or any(len(os.fsencode(name)) > MAX_NAME for name in names):
        raise _unusable(path, "has a name longer than 255 bytes or too many folders")
    return names


def split(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def beneath(path: str, root: os.stat_result) -> list[str]:
    """The rest of an absolute path after the work folder. The folder is recognised by what it is (device and inode),
    not by how it is spelled, so it may be reached through links. Nothing is opened by the part before it: the rest is
    followed from the work folder's own handle."""
    names = split(path)
    rest: list[str] | None = None
    here = Path("/")
    for count in range(len(names) + 1):
        if count:
            here = here / names[count - 1]
        try:
            is_root = os.path.samestat(here.stat(), root)
        except OSError:
            break
        if is_root:
            rest = names[count:]
    if rest is None:
        raise outside(path)
    return rest


def outside(path: str) -> PathRefused:
    name = _short(path)
    return PathRefused(
        f"{name} is outside the work folder. Use a path inside it, relative to the folder.", "path.outside", path=name
    )


def _check(path: str) -> None:
    if not path.strip():
        raise PathRefused("The path is empty. Give a path relative to the work folder, or `.`.", "path.empty")
    if "\0" in path:
        raise _unusable(path, "contains a NUL character")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise _unusable(path, "contains characters that are no valid text") from None
    if size >= MAX_PATH:
        raise _unusable(path, f"is longer than {MAX_PATH} bytes")


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:
        raise _unusable("~", "needs a home folder, and there is none") from None


def _unusable(path: str, why: str) -> PathRefused:
    name = _short(path)
    return PathRefused(f"The path {name} {why}. Use another one.", "path.unusable", path=name)


def _short(path: str) -> str:
    return shown(path if len(path) <= SHOWN_LENGTH else path[:SHOWN_LENGTH] + "…")
