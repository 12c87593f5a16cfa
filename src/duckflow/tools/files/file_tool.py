"""The common part of all file tools: paths, documents, the lines that the model has seen, and errors of the file
system."""

import errno
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from duckflow.errors import PathRefused, ToolError
from duckflow.safety.files import Kind
from duckflow.safety.ignore_rules import ALWAYS_IGNORED
from duckflow.safety.path_names import shown
from duckflow.safety.risk import Deed
from duckflow.safety.workspace import Workspace
from duckflow.state.data import shorten
from duckflow.state.question import Preview
from duckflow.tools.files.document import Document, load
from duckflow.tools.settings import FileSettings
from duckflow.tools.tool import A, Tool

HOOK_PATH = "file_path"
"""The name that hooks use for the argument with a file's path."""


@dataclass(slots=True)
class SeenFile:
    """A file as the model knows it."""

    digest: str
    total: int = 0
    """The number of lines that must have been shown before the file counts as seen; 0 if the model wrote the text
    itself."""
    lines: set[int] = field(default_factory=set[int])

    @property
    def whole(self) -> bool:
        return len(self.lines) >= self.total


class SeenFiles:
    """The files that the model has seen, shared by all file tools. Paths are in the spelling that Workspace.relative
    returns."""

    def __init__(self) -> None:
        self._seen: dict[str, SeenFile] = {}
        self._previewed: dict[str, str] = {}

    def saw(self, path: str, digest: str, lines: range, total: int) -> None:
        """Notes that the model saw these lines (counted from 1) of a file that has `total` lines."""
        seen_file = self._seen.get(path)
        if seen_file is None or seen_file.digest != digest:
            seen_file = self._seen[path] = SeenFile(digest, total)
        seen_file.lines.update(lines)
        # The model has looked again, so the earlier preview no longer counts.
        self._previewed.pop(path, None)

    def of(self, path: str) -> SeenFile | None:
        return self._seen.get(path)

    def wrote(self, path: str, digest: str) -> None:
        """Notes that the model wrote this text itself, so it knows all of it."""
        self._seen[path] = SeenFile(digest)
        self._previewed.pop(path, None)

    def edited(self, path: str, before: str, digest: str) -> None:
        """Notes that the model changed a part of a file. If the model knew the whole file before, it still does."""
        seen_file = self._seen.pop(path, None)
        if seen_file and seen_file.whole and seen_file.digest == before:
            self.wrote(path, digest)
        self._previewed.pop(path, None)

    def forget(self, path: str) -> None:
        """Forgets a file that is gone, or a folder that is gone with everything in it."""
        for seen_path in self._beneath(path):
            del self._seen[seen_path]
        self._previewed.pop(path, None)

    def moved(self, source: str, target: str) -> None:
        """Moves the model's knowledge of a file to the file's new name."""
        for seen_path in self._beneath(source):
            self._seen[target + seen_path[len(source) :]] = self._seen.pop(seen_path)
        self._previewed.pop(source, None)

    def _beneath(self, path: str) -> list[str]:
        return [seen_path for seen_path in self._seen if seen_path == path or seen_path.startswith(path + "/")]

    def previewed(self, path: str, fingerprint: str) -> None:
        self._previewed[path] = fingerprint

    def take_preview(self, path: str) -> str | None:
        """Returns the fingerprint of the file that the last preview of this path was made from, and forgets it."""
        return self._previewed.pop(path, None)


LOOKED_AT = 5000
SUGGESTIONS = 3

LONGEST_PATH = 1000
SHOWN_OF_PATH = 80
REASONS: dict[int, tuple[str, str]] = {
    errno.ENOTDIR: ("file.not_folder", "a part of the path before the last is a file, not a folder. Use another path."),
    errno.EISDIR: ("file.is_folder", "it is a folder, not a file. List it to see what is in it."),
    errno.EACCES: ("file.denied", "permission denied. Nothing was changed; tell the user."),
    errno.EPERM: ("file.denied", "permission denied. Nothing was changed; tell the user."),
    errno.ENOSPC: ("file.disk_full", "the disk is full. Nothing was changed; tell the user."),
    errno.EDQUOT: ("file.disk_full", "the disk quota is used up. Nothing was changed; tell the user."),
    errno.EFBIG: ("file.disk_full", "the file would be larger than allowed. Nothing was changed; tell the user."),
    errno.EROFS: ("file.read_only", "the folder is on a read-only disk. Nothing was changed; tell the user."),
    errno.ELOOP: ("file.loop", "the links in this path lead in a circle or were changed meanwhile. Use another path."),
    errno.ENOTEMPTY: ("file.not_empty", "the folder is not empty. Set recursive to delete all that is in it."),
    errno.EEXIST: ("file.exists", "something of that name exists already. Choose another name."),
}


@contextmanager
def explained_errors(workspace: Workspace, path: str) -> Generator[None]:
    """Turns an OSError that is raised inside the context into a ToolError about this path. A path of many lines is
    refused, since the user who is asked about it might not see its end."""
    if len(path) > LONGEST_PATH:
        name = shorten(path, SHOWN_OF_PATH)
        raise PathRefused(f"The path {name} is too long. Use a shorter one.", "path.unusable", path=name)
    try:
        yield
    except OSError as problem:
        raise _explained(problem, workspace, path) from problem


def _explained(problem: OSError, workspace: Workspace, path: str) -> ToolError:
    name = shown(path)
    if isinstance(problem, FileNotFoundError) and not isinstance(problem, IsADirectoryError):
        return ToolError(f"{name} does not exist. {_suggestion(workspace, path)}", "file.missing", path=name)
    reason = problem.strerror or str(problem)
    phrase_key, text = REASONS.get(problem.errno or 0, ("file.failed", f"{reason}. Nothing was changed."))
    return ToolError(f"{name}: {text}", phrase_key, path=name, reason=reason)


def _suggestion(workspace: Workspace, path: str) -> str:
    """Suggests files whose name is the same or nearly the same."""
    import difflib

    try:
        entries = islice(workspace.walk(enter=lambda folder: folder.name not in ALWAYS_IGNORED), LOOKED_AT)
        names = [entry.path for entry in entries if entry.kind == "file"]
    except OSError:
        names = []
    file_name = path.rstrip("/").rpartition("/")[2].lower()
    same_named = [name for name in names if name.rpartition("/")[2].lower() == file_name]
    similar_names = same_named or difflib.get_close_matches(path, names, SUGGESTIONS, 0.7)
    if similar_names:
        return "Did you mean " + " or ".join(map(shown, similar_names[:SUGGESTIONS])) + "?"
    return "List the folder, or find files by name, to see what there is."


class FileTool(Tool[A]):
    """A tool that works on files of the work folder."""

    def __init__(self, workspace: Workspace, seen: SeenFiles, settings: FileSettings) -> None:
        self.workspace = workspace
        self.seen = seen
        self.settings = settings

    def deed(self, args: A, preview: Preview) -> Deed:
        """Returns the effects of the call. For a read they name the place that the path really leads to, because a link
        to a secret file may have a harmless name."""
        deed = super().deed(args, preview)
        if deed.reads:
            with suppress(ToolError):
                return deed._replace(reads=self.real_path(deed.reads))
        return deed

    def for_hooks(self, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Returns the arguments for hooks, with absolute paths."""
        hook_args = super().for_hooks(args, folder)
        if isinstance(path := hook_args.get(HOOK_PATH), str):
            hook_args[HOOK_PATH] = str(folder / path)
        return hook_args

    def from_hooks(self, args: Mapping[str, Any], updated: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        path = updated.get(HOOK_PATH)
        if isinstance(path, str) and Path(path).is_relative_to(folder):
            updated = {**updated, HOOK_PATH: str(Path(path).relative_to(folder))}
        return super().from_hooks(args, updated, folder)

    def result_for_hooks(self, text: str, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        path_field = {"filePath": str(folder / str(args["path"]))} if HOOK_PATH in self.hook_args.values() else {}
        return {**path_field, **super().result_for_hooks(text, args, folder)}

    def real_path(self, path: str, follow: bool = True) -> str:
        """Returns the one spelling of a path that the workspace uses. Raises a ToolError when the path cannot be
        used."""
        with explained_errors(self.workspace, path):
            return self.workspace.relative(path, follow)

    def places(self, args: A) -> tuple[str, ...]:
        """Returns where the paths that the call changes lead, or the path that it reads."""
        return tuple(map(self._place, self.touches(args) or (str(getattr(args, "path", ".")),)))

    def _place(self, path: str) -> str:
        """Returns the real path, or the path as it is where it cannot be used."""
        with suppress(ToolError):
            return self.real_path(path)
        return path

    def kind(self, path: str, follow: bool = True) -> Kind | None:
        """Returns the kind of file at a path; None if there is nothing."""
        with explained_errors(self.workspace, path):
            try:
                return self.workspace.stat(path, follow).kind
            except FileNotFoundError:
                return None

    def document(self, path: str) -> Document:
        """Returns the text file at a path."""
        with explained_errors(self.workspace, path):
            return load(self.workspace, self.workspace.relative(path), self.settings.max_file_bytes)
