"""Names of git's own files that undo treats in a way of their own."""

import re

GIT = ".git"
FAN_OUT = re.compile(r"(?:^|/)objects/[0-9a-f]{2}$")
"""Git keeps each object that is not packed in one of 256 such folders."""
OBJECT = re.compile(r"(?:^|/)objects/[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})$")
PACK = re.compile(r"(?:^|/)\.git/(?:.*/)?objects/pack/(?:pack-[0-9a-f]{40,64}\.|tmp_|\.tmp-)[^/]*$")
"""Packs may be huge and never change. The sandbox keeps commands from touching them, so undo does not copy them."""
APART = re.compile(r"(?:^|/)\.git/(?:lfs|annex)$")
"""Contents of large files that a program beside git keeps there."""


def adds_only(path: str) -> bool:
    """A new file of this name takes nothing away, and later commits of the user may need it, so undo leaves it."""
    return OBJECT.search(path) is not None or FAN_OUT.search(path) is not None


def git_folder(path: str) -> str:
    """The `.git` that a path lies in or is, or nothing."""
    names = path.split("/")
    return "/".join(names[: names.index(GIT) + 1]) if GIT in names else ""
