"""Writing, moving and deleting happen whole or not at all, never over something unseen, never outside."""

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from duckflow.errors import PathRefused, ToolError
from duckflow.safety.files import ABSENT, digest
from duckflow.safety.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work").mkdir(mode=0o755)
    return Workspace(tmp_path / "work")


@contextmanager
def ordinary_user() -> Generator[None]:
    """Root may do everything, so the tests about permissions run as somebody else."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(was)


def names(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in workspace.root.iterdir())


def test_a_new_file_gets_its_folders_and_the_usual_mode(workspace: Workspace) -> None:
    was = os.umask(0o027)
    try:
        written = workspace.write_atomic("a/b/new.txt", b"text", ABSENT)
    finally:
        os.umask(was)
    assert written == digest(b"text")
    assert (workspace.root / "a/b/new.txt").read_bytes() == b"text"
    assert (workspace.root / "a/b/new.txt").stat().st_mode & 0o777 == 0o640


def test_mode_and_owner_of_an_old_file_stay(workspace: Workspace) -> None:
    path = workspace.root / "run.sh"
    path.write_text("old")
    path.chmod(0o751)
    if os.geteuid() == 0:
        os.chown(path, 12, 34)
    before = path.stat()
    workspace.write_atomic("run.sh", b"new", digest(b"old"))
    after = path.stat()
    assert path.read_text() == "new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_a_file_that_changed_or_appeared_is_not_overwritten(workspace: Workspace) -> None:
    (workspace.root / "a.txt").write_text("someone else's")
    for expect in (digest(b"what I read"), ABSENT):
        with pytest.raises(ToolError, match=r"file\.changed"):
            workspace.write_atomic("a.txt", b"mine", expect)
    with pytest.raises(ToolError, match=r"file\.changed"):
        workspace.write_atomic("gone.txt", b"mine", digest(b"what I read"))
    assert (workspace.root / "a.txt").read_text() == "someone else's"
    assert names(workspace) == ["a.txt"]


def test_writing_through_a_link_inside_changes_its_target(workspace: Workspace) -> None:
    (workspace.root / "real.txt").write_text("old")
    (workspace.root / "link.txt").symlink_to("real.txt")
    (workspace.root / "new-link.txt").symlink_to("made/later.txt")
    workspace.write_atomic("link.txt", b"new", digest(b"old"))
    workspace.write_atomic("new-link.txt", b"made", ABSENT)
    assert (workspace.root / "link.txt").is_symlink()
    assert (workspace.root / "real.txt").read_text() == "new"
    assert (workspace.root / "made/later.txt").read_text() == "made"


def test_a_hard_link_to_the_outside_is_cut_off_not_written_through(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("outside")
    (workspace.root / "inside.txt").hardlink_to(tmp_path / "outside.txt")
    workspace.write_atomic("inside.txt", b"changed")
    assert (tmp_path / "outside.txt").read_text() == "outside"


def test_a_full_disk_leaves_the_old_file_and_no_leftovers(workspace: Workspace) -> None:
    (workspace.root / "a.txt").write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        for name in ("a.txt", "new.txt"):
            with pytest.raises(OSError, match="too large"):
                workspace.write_atomic(name, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (workspace.root / "a.txt").read_text() == "old"
    assert names(workspace) == ["a.txt"]


def test_a_folder_or_file_that_is_read_only_stays_as_it_is(workspace: Workspace) -> None:
    (workspace.root / "locked").mkdir()
    (workspace.root / "locked/a.txt").write_text("old")
    (workspace.root / "locked").chmod(0o555)
    (workspace.root / "kept.txt").write_text("old")
    (workspace.root / "kept.txt").chmod(0o444)
    with ordinary_user():
        for name in ("locked/a.txt", "locked/new.txt", "kept.txt"):
            with pytest.raises(PermissionError):
                workspace.write_atomic(name, b"new")
        with pytest.raises(PermissionError):
            workspace.delete("locked/a.txt")
    assert (workspace.root / "locked/a.txt").read_text() == "old"
    assert (workspace.root / "kept.txt").read_text() == "old"


def test_deleting_removes_the_link_and_not_its_target(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.txt").write_text("outside")
    (workspace.root / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(PathRefused):
        workspace.delete("link/a.txt")
    (workspace.root / "folder").mkdir()
    (workspace.root / "folder/inner").symlink_to(tmp_path / "outside")
    workspace.delete("folder", recursive=True)
    workspace.delete("link")
    assert names(workspace) == []
    assert (tmp_path / "outside/a.txt").read_text() == "outside"


def test_a_folder_is_deleted_when_empty_or_on_request(workspace: Workspace) -> None:
    workspace.write_atomic("a/b.txt", b"")
    with pytest.raises(OSError, match="not empty"):
        workspace.delete("a")
    workspace.delete("a", recursive=True)
    workspace.make_folder("empty")
    workspace.delete("empty")
    assert names(workspace) == []


@pytest.mark.parametrize("path", [".", "a/..", "./"])
def test_the_work_folder_itself_is_neither_deleted_nor_moved(workspace: Workspace, path: str) -> None:
    workspace.write_atomic("a/b.txt", b"")
    with pytest.raises(PathRefused):
        workspace.delete(path, recursive=True)
    with pytest.raises(PathRefused):
        workspace.move(path, "elsewhere")
    assert names(workspace) == ["a"]


def test_moving_makes_folders_and_never_overwrites(workspace: Workspace, tmp_path: Path) -> None:
    workspace.write_atomic("a.txt", b"a")
    workspace.write_atomic("b.txt", b"b")
    with pytest.raises(FileExistsError):
        workspace.move("a.txt", "b.txt")
    workspace.move("a.txt", "new/place/c.txt")
    assert (workspace.root / "new/place/c.txt").read_text() == "a"
    with pytest.raises(PathRefused):
        workspace.move("b.txt", "../b.txt")
    with pytest.raises(FileNotFoundError):
        workspace.move("missing.txt", "d.txt")
    assert (workspace.root / "b.txt").read_text() == "b"
    assert not (tmp_path / "b.txt").exists()
