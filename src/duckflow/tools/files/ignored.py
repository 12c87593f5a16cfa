"""What listings and searches leave out: what git ignores."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from duckflow.safety.entry import FolderEntry
from duckflow.safety.workspace import Workspace
from duckflow.tools.files.gitignore import IgnoreRules

GIT_SECONDS = 5
ASK_GIT = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
# A repository's own settings must not make git start a program.
HARMLESS = ("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false")

Ignored = Callable[[FolderEntry], bool]


def ignored_in(workspace: Workspace) -> Ignored:
    """Git's own answer where there is a repository and git; else the rules of the .gitignore files."""
    listed = _ask_git(workspace.root)
    if listed is None:
        return IgnoreRules(workspace).ignores
    return lambda found: found.path in listed or (found.kind == "folder" and found.name == ".git")


def _ask_git(folder: Path) -> frozenset[str] | None:
    git = program("git")
    if git is None or not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return None
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        answer = subprocess.run(
            [git, *HARMLESS, *ASK_GIT],
            cwd=folder,
            env={**outside, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    paths = {os.fsdecode(path).rstrip("/") for path in answer.stdout.split(b"\0") if path}
    if "." in paths:
        # A repository around that ignores the work folder as a whole says nothing about what is in it.
        return None
    # Git also names a folder in which everything is ignored; the folder itself is not.
    return frozenset(paths - {path.rpartition("/")[0] for path in paths})


def program(name: str) -> str | None:
    """A program of the system; never one that happens to lie in the current folder."""
    import shutil

    found = shutil.which(name)
    return found if found and Path(found).is_absolute() else None
