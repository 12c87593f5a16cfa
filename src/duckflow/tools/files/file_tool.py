"""What all file tools share: paths, kinds, documents, and what is told when that fails."""

import errno
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import islice

from duckflow.errors import ToolError
from duckflow.safety.entry import Kind
from duckflow.safety.risk import Deed
from duckflow.safety.shown import shown
from duckflow.safety.workspace import Workspace
from duckflow.state.question import Preview
from duckflow.tools.files.document import Document, load
from duckflow.tools.files.ignored import ALWAYS_IGNORED
from duckflow.tools.files.seen import SeenFiles
from duckflow.tools.files.settings import FileSettings
from duckflow.tools.tool import A, Tool

LOOKED_AT = 5000
SUGGESTIONS = 3

REASONS: dict[int, tuple[str, str]] = {
    errno.ENOTDIR: ("file.not_folder", "a part of the path before the last is a file, not a folder. Use another path."),
    errno.EISDIR: ("file.is_folder", "it is a folder, not a file. Use list_files to see what is in it."),
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
def told(workspace: Workspace, path: str) -> Generator[None]:
    """An OSError inside becomes a ToolError about this path."""
    try:
        yield
    except OSError as problem:
        raise _explained(problem, workspace, path) from problem


def _explained(problem: OSError, workspace: Workspace, path: str) -> ToolError:
    name = shown(path)
    if isinstance(problem, FileNotFoundError) and not isinstance(problem, IsADirectoryError):
        return ToolError(f"{name} does not exist. {_suggestion(workspace, path)}", "file.missing", path=name)
    reason = problem.strerror or str(problem)
    key, text = REASONS.get(problem.errno or 0, ("file.failed", f"{reason}. Nothing was changed."))
    return ToolError(f"{name}: {text}", key, path=name, reason=reason)


def _suggestion(workspace: Workspace, path: str) -> str:
    """Files of the same or nearly the same name."""
    import difflib

    try:
        entries = islice(workspace.walk(enter=lambda folder: folder.name not in ALWAYS_IGNORED), LOOKED_AT)
        names = [found.path for found in entries if found.kind == "file"]
    except OSError:
        names = []
    last = path.rstrip("/").rpartition("/")[2].lower()
    same = [name for name in names if name.rpartition("/")[2].lower() == last]
    near = same or difflib.get_close_matches(path, names, SUGGESTIONS, 0.7)
    if near:
        return "Did you mean " + " or ".join(map(shown, near[:SUGGESTIONS])) + "?"
    return "Use list_files or find_files to see what there is."


class FileTool(Tool[A]):
    """A tool that works on files of the work folder."""

    def __init__(self, workspace: Workspace, seen: SeenFiles, settings: FileSettings) -> None:
        self.workspace = workspace
        self.seen = seen
        self.settings = settings

    def deed(self, args: A, preview: Preview) -> Deed:
        """What is read is named by where it really lies: a link may have a harmless name."""
        deed = super().deed(args, preview)
        if deed.reads:
            with suppress(ToolError):
                return deed._replace(reads=self.real_path(deed.reads))
        return deed

    def real_path(self, path: str, follow: bool = True) -> str:
        """The one spelling of a path; a ToolError when it cannot be used."""
        with told(self.workspace, path):
            return self.workspace.relative(path, follow)

    def kind(self, path: str, follow: bool = True) -> Kind | None:
        """What is there; nothing when there is nothing."""
        with told(self.workspace, path):
            try:
                return self.workspace.stat(path, follow).kind
            except FileNotFoundError:
                return None

    def document(self, path: str) -> Document:
        """The text file at a path."""
        with told(self.workspace, path):
            return load(self.workspace, self.workspace.relative(path), self.settings.max_file_bytes)
