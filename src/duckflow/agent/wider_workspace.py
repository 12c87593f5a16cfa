"""A workspace of several folders. Files in an added folder are named by their whole path, and no file can be moved from
one folder to another."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from duckflow.errors import PathRefused
from duckflow.safety.files import FolderEntry
from duckflow.safety.workspace import HERE, Workspace


class WiderWorkspace(Workspace):
    """The work folder, and the folders that the user has added to it."""

    def __init__(self, folder: Path, private: Sequence[Path], added: Sequence[Path], kept: Sequence[Path]) -> None:
        super().__init__(folder, private, kept)
        self._more = tuple(Workspace(path, private, kept) for path in added)
        self.added = tuple(workspace.root for workspace in self._more)

    def close(self) -> None:
        for workspace in self._more:
            workspace.close()
        super().close()

    def root_of(self, path: str) -> Path:
        added_folder = self._added(path)
        return added_folder.root if added_folder else self.root

    def relative(self, path: str, follow: bool = True) -> str:
        if added_folder := self._added(path):
            inner_path = added_folder.relative(_inside(added_folder, path), follow)
            return _whole(added_folder, inner_path)
        return super().relative(path, follow)

    def open(self, path: str, write: bool = False) -> BinaryIO:
        if added_folder := self._added(path):
            return added_folder.open(_inside(added_folder, path), write)
        return super().open(path, write)

    def write_atomic(self, path: str, data: bytes, expect: str | None = None) -> str:
        if added_folder := self._added(path):
            return added_folder.write_atomic(_inside(added_folder, path), data, expect)
        return super().write_atomic(path, data, expect)

    def delete(self, path: str, recursive: bool = False) -> None:
        if added_folder := self._added(path):
            return added_folder.delete(_inside(added_folder, path), recursive)
        return super().delete(path, recursive)

    def move(self, source: str, target: str) -> None:
        source_folder, target_folder = self._added(source), self._added(target)
        if source_folder is not target_folder:
            raise PathRefused("Moving between folders: write the new file, then delete the old one.", "path.between")
        if source_folder:
            return source_folder.move(_inside(source_folder, source), _inside(source_folder, target))
        return super().move(source, target)

    def make_folder(self, path: str) -> None:
        if added_folder := self._added(path):
            return added_folder.make_folder(_inside(added_folder, path))
        return super().make_folder(path)

    def stat(self, path: str, follow: bool = True) -> FolderEntry:
        if added_folder := self._added(path):
            return _named(added_folder, added_folder.stat(_inside(added_folder, path), follow))
        return super().stat(path, follow)

    def listdir(self, path: str = HERE) -> list[FolderEntry]:
        if added := self._added(path.removeprefix("./")):
            return [_named(added, entry) for entry in added.listdir(_inside(added, path.removeprefix("./")))]
        return super().listdir(path)

    def _added(self, path: str) -> Workspace | None:
        absolute_path = Path(path).expanduser() if path.startswith(("/", "~")) else None
        if absolute_path and absolute_path.is_relative_to(self.root):
            return None
        return next(
            (workspace for workspace in self._more if absolute_path and absolute_path.is_relative_to(workspace.root)),
            None,
        )


def _inside(folder: Workspace, path: str) -> str:
    return str(Path(path).expanduser().relative_to(folder.root))


def _named(folder: Workspace, entry: FolderEntry) -> FolderEntry:
    return entry._replace(path=_whole(folder, entry.path))


def _whole(folder: Workspace, inner: str) -> str:
    return str(folder.root if inner == HERE else folder.root / inner.removeprefix("./"))
