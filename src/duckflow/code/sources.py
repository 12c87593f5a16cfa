"""The source files of a work folder: how many there are, where they are, and their texts."""

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from duckflow.code.syntax import LARGEST, language_of
from duckflow.errors import ToolError
from duckflow.safety.files import FolderEntry
from duckflow.safety.ignore_rules import RULES_FILE
from duckflow.safety.ignored import ALWAYS_IGNORED, ignored_in
from duckflow.safety.secrets import secret_name
from duckflow.safety.workspace import HERE, Workspace

MOST_ENTRIES = 20_000
"""So many entries are looked at to find out whether a folder is large."""


class Walked(NamedTuple):
    """The source files of a folder, and the folders and ignore files whose change makes it necessary to look again."""

    files: dict[str, FolderEntry]
    folders: dict[str, float]


def is_large(folder: Path, files: int) -> bool:
    """Says whether there are about so many source files. It stands before the first request, so it asks no ignore
    rules, and looks no further than it must."""
    waiting, seen, sources = [str(folder)], 0, 0
    while waiting and seen < MOST_ENTRIES:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                seen += 1
                if entry.name.startswith(".") or entry.name in ALWAYS_IGNORED:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif language_of(entry.name):
                    sources += 1
                    if sources >= files:
                        return True
    return False


def walk(workspace: Workspace, top: str = HERE) -> Walked:
    ignored = ignored_in(workspace)
    walked = Walked({}, {top: workspace.stat(top).modified})
    for entry in workspace.walk(top, lambda entry: not ignored(entry)):
        if (entry.kind == "file" and entry.name == RULES_FILE) or (entry.kind == "folder" and not ignored(entry)):
            walked.folders[entry.path] = entry.modified
        elif entry.kind == "file" and is_source(entry) and not ignored(entry):
            walked.files[entry.path] = entry
    return walked


def is_source(entry: FolderEntry) -> bool:
    """Minified code is nobody's to read, and takes the parser long."""
    if language_of(entry.path) is None or entry.size > LARGEST or ".min." in entry.name:
        return False
    return not secret_name(entry.path)


def source_text(workspace: Workspace, path: str) -> str:
    """Nothing for a file that is gone, too large, or not ours to read."""
    try:
        return workspace.read_bytes(f"./{path}", LARGEST).decode("utf-8", "replace")
    except (OSError, ToolError):
        return ""
