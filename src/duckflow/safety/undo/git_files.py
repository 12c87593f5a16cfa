"""Names of git's own files that undo treats specially."""

import re

GIT = ".git"
FAN_OUT = re.compile(r"(?:^|/)objects/[0-9a-f]{2}$")
"""One of the 256 folders in which git keeps the objects that are not packed."""
OBJECT = re.compile(r"(?:^|/)objects/[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})$")
PACK = re.compile(r"(?:^|/)\.git/(?:.*/)?objects/pack/(?:pack-[0-9a-f]{40,64}\.|tmp_|\.tmp-)[^/]*$")
"""Git's packs. They may be huge and never change."""
APART = re.compile(r"(?:^|/)\.git/(?:lfs|annex)$")
"""Folders in which a program beside git keeps the contents of large files."""


def is_guarded_pack(path: str) -> bool:
    """Says whether this is a pack that the sandbox keeps commands from touching, so that undo need not copy it: one of
    a repository in the work folder or one level down."""
    return PACK.search(path) is not None and path.split("/").index(GIT) <= 1


def adds_only(path: str) -> bool:
    """Says whether a new file of this name takes nothing away. Later commits of the user may need it, so undo leaves
    it."""
    return OBJECT.search(path) is not None or FAN_OUT.search(path) is not None


def git_folder(path: str) -> str:
    """Returns the `.git` that a path lies in or is, or nothing."""
    names = path.split("/")
    return "/".join(names[: names.index(GIT) + 1]) if GIT in names else ""
