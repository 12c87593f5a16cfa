"""Whether a repository brings settings that make git run programs even while it only looks."""

import os
import re
import subprocess
from pathlib import Path

# Of the keys a repository's own configuration may set, those that name a program, or another file with settings.
RUNS_PROGRAMS = re.compile(
    r"core\.(?:fsmonitor|hookspath|pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand|attributesfile)"
    r"|pager\..*|alias\..*|filter\..*|diff\.external|diff\..*\.(?:textconv|command)|merge\..*\.driver"
    r"|gpg\..*|credential\..*|include\..*|includeif\..*|interactive\.difffilter|uploadpack\..*|sequence\.editor"
    r"|browser\..*|man\..*|difftool\..*|mergetool\..*|remote\..*\.(?:uploadpack|receivepack|vcs)|protocol\..*"
)
HARMLESS_VALUES = frozenset(("true", "false", "yes", "no", "on", "off", "1", "0", ""))
HOOKS_OF_LOOKING = ("post-index-change", "reference-transaction")
SECONDS = 2.0


def git_runs_programs(folder: Path) -> bool:
    """Read from the repository's own files; a repository that cannot be read is taken to run programs."""
    top = _git_folder(folder)
    if top is None:
        return False
    try:
        if any(os.access(top / "hooks" / hook, os.X_OK) for hook in HOOKS_OF_LOOKING):
            return True
        return any(_names_program(file) for file in (top / "config", top / "config.worktree") if file.exists())
    except (OSError, subprocess.SubprocessError):
        return True


def _names_program(file: Path) -> bool:
    listed = subprocess.run(
        ["git", "config", "--file", str(file), "--no-includes", "--null", "--list"],
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
    for entry in listed.stdout.decode("utf-8", "replace").split("\0"):
        key, _, value = entry.partition("\n")
        if RUNS_PROGRAMS.fullmatch(key.lower()) and not (
            key.lower() == "core.fsmonitor" and value.lower() in HARMLESS_VALUES
        ):
            return True
    return False


def _git_folder(folder: Path) -> Path | None:
    """The `.git` that git would use from here; a file points to where it really lies."""
    for place in (folder, *folder.parents):
        here = place / ".git"
        if here.is_dir():
            return here
        if here.is_file():
            pointed = here.read_text(encoding="utf-8", errors="replace").partition("gitdir:")[2].strip()
            return (place / pointed).resolve()
    return None
