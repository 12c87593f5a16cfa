"""The work folder keeps everything beneath it, in both ways of opening: by the kernel, and name by name."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duckflow.errors import PathRefused, ToolError
from duckflow.safety.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "secret.txt").write_text("outside")
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src/app.py").write_text("inside")
    return Workspace(folder)


def text(workspace: Workspace, path: str) -> str:
    return workspace.read_bytes(path, 1000).decode()


@pytest.mark.parametrize(
    "path",
    ["src/app.py", "./src//app.py", "src/../src/app.py", "src/./app.py", "src/app.py/", "src/nothing/../app.py"],
)
def test_many_spellings_mean_the_same_file(workspace: Workspace, path: str) -> None:
    (workspace.root / "src/nothing").mkdir()
    assert text(workspace, path) == "inside"
    assert workspace.relative(path) == "src/app.py"


def test_an_absolute_path_into_the_folder_is_fine_however_it_is_reached(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "door").symlink_to(workspace.root)
    for folder in (workspace.root, tmp_path / "door", tmp_path / "work/../work"):
        assert text(workspace, f"{folder}/src/app.py") == "inside"
        assert workspace.relative(f"{folder}/src/app.py") == "src/app.py"
    through_a_link = Workspace(tmp_path / "door")
    assert text(through_a_link, f"{tmp_path}/door/src/app.py") == "inside"


def test_a_folder_whose_name_only_begins_like_the_work_folder_is_outside(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "work-too").mkdir()
    (tmp_path / "work-too/a.txt").write_text("outside")
    with pytest.raises(PathRefused):
        workspace.open(f"{tmp_path}/work-too/a.txt")


@pytest.mark.parametrize(
    "path",
    ["../secret.txt", "src/../../secret.txt", "..", "/etc/passwd", "~", "~/.profile", "src/../../work/src/app.py", "/"],
)
def test_a_path_that_leads_out_is_refused_and_named(workspace: Workspace, path: str) -> None:
    for use in (workspace.open, workspace.relative, workspace.make_folder, workspace.listdir, workspace.delete):
        with pytest.raises(PathRefused) as refused:
            use(path)
        assert refused.value.for_model.startswith(f"{path} is outside")


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "a" * 5000, "a" * 256, "/".join("a" * 300), "a\ud800b"])
def test_an_unusable_path_is_refused_in_plain_words(workspace: Workspace, path: str) -> None:
    with pytest.raises(PathRefused) as refused:
        workspace.open(path)
    assert refused.value.key in ("path.empty", "path.unusable")


@pytest.mark.parametrize(
    "name",
    [
        *("..\u2215secret.txt", "\uff0e\uff0e\uff0fsecret.txt", "\u2024\u2024", "..\\secret.txt", "C:\\x", "%2e%2e%2f"),
        *("...", "~user", "日本語.txt", "a\nb"),
    ],
)
def test_look_alikes_are_plain_characters_of_a_name(workspace: Workspace, name: str) -> None:
    workspace.write_atomic(name, b"mine")
    assert (workspace.root / name).read_bytes() == b"mine"
    assert text(workspace, name) == "mine"


def test_a_folder_called_tilde_is_not_the_home_folder(workspace: Workspace) -> None:
    workspace.write_atomic("./~/notes.txt", b"mine")
    spelled = workspace.relative("./~/notes.txt")
    assert text(workspace, spelled) == "mine"
    assert "~/notes.txt" in [entry.path.removeprefix("./") for entry in workspace.walk()]


def test_links_that_stay_inside_are_followed(workspace: Workspace) -> None:
    root = workspace.root
    (root / "a/b").mkdir(parents=True)
    (root / "a/b/up").symlink_to("../../src")
    (root / "entry").symlink_to("a/b/up/app.py")
    (root / "absolute").symlink_to(root / "src")
    (root / "chain").symlink_to("absolute/../entry")
    for path in ("a/b/up/app.py", "entry", "absolute/app.py", "chain", "a/b/up/../src/app.py"):
        assert text(workspace, path) == "inside", path
        assert workspace.relative(path) == "src/app.py", path


@pytest.mark.parametrize(
    "target", ["../secret.txt", "{top}/secret.txt", "..", "/", "src/../../secret.txt", "/proc/self/root"]
)
def test_links_that_lead_out_are_refused_for_every_use(workspace: Workspace, tmp_path: Path, target: str) -> None:
    (workspace.root / "out").symlink_to(target.format(top=tmp_path))
    with pytest.raises(PathRefused):
        workspace.open("out")
    with pytest.raises(PathRefused):
        workspace.write_atomic("out", b"changed")
    with pytest.raises(PathRefused):
        workspace.write_atomic("out/new.txt", b"changed")
    with pytest.raises(PathRefused):
        workspace.make_folder("out/new")
    with pytest.raises(PathRefused):
        workspace.relative("out")
    assert (tmp_path / "secret.txt").read_text() == "outside"
    assert not (tmp_path / "new.txt").exists()


def test_links_in_a_circle_end(workspace: Workspace) -> None:
    (workspace.root / "a").symlink_to("b")
    (workspace.root / "b").symlink_to("a")
    for path in ("a", "a/x"):
        with pytest.raises(OSError, match="symbolic links"):
            workspace.open(path)


def test_only_plain_files_are_opened(workspace: Workspace) -> None:
    os.mkfifo(workspace.root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(workspace.root)
        try:
            listening.bind("socket")
        finally:
            os.chdir(here)
    for name in ("pipe", "socket"):
        with pytest.raises(PathRefused, match="not_file"):
            workspace.open(name)
        with pytest.raises(PathRefused, match="not_file"):
            workspace.write_atomic(name, b"x")
    with pytest.raises(IsADirectoryError):
        workspace.open("src")
    with pytest.raises(FileNotFoundError):
        workspace.open("missing")


def test_a_file_larger_than_the_limit_is_refused_unread(workspace: Workspace) -> None:
    with (workspace.root / "huge").open("wb") as file:
        file.truncate(2 * 1024**3)
    with pytest.raises(ToolError, match=r"2\.0 GB"):
        workspace.read_bytes("huge", 1000)


def test_open_for_writing_makes_the_file_but_never_outside(workspace: Workspace, tmp_path: Path) -> None:
    with workspace.open("src/new.txt", write=True) as file:
        file.write(b"new")
    assert text(workspace, "src/new.txt") == "new"
    (workspace.root / "dangling").symlink_to(tmp_path / "not-there.txt")
    with pytest.raises(PathRefused):
        workspace.open("dangling", write=True)
    assert not (tmp_path / "not-there.txt").exists()


def test_the_listing_is_sorted_and_names_links_without_following_them(workspace: Workspace, tmp_path: Path) -> None:
    (workspace.root / "out").symlink_to(tmp_path)
    (workspace.root / "b.txt").write_text("12345")
    listed = [(entry.path, entry.kind, entry.size) for entry in workspace.listdir() if entry.kind != "folder"]
    assert [entry[:2] for entry in listed] == [("b.txt", "file"), ("out", "link")]
    assert listed[0][2] == 5
    assert [entry.path for entry in workspace.walk()] == ["b.txt", "out", "src", "src/app.py"]
    assert [entry.path for entry in workspace.walk("src")] == ["src/app.py"]
    assert [entry.path for entry in workspace.walk(enter=lambda folder: False)] == ["b.txt", "out", "src"]


def test_people_are_told_that_the_work_folder_was_removed(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    workspace = Workspace(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(PathRefused, match="no_folder"):
        workspace.open("a.txt")


NAMES = st.sampled_from(["..", ".", "a", "b", "in", "out", "up", "file", "", "deep"])


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(NAMES, max_size=8), absolute=st.booleans())
def test_both_ways_of_opening_agree_on_every_path_and_stay_inside(
    tmp_path: Path, names: list[str], absolute: bool
) -> None:
    folder = tmp_path / "work"
    if not folder.exists():
        (folder / "a/b/deep").mkdir(parents=True)
        (tmp_path / "file").write_text("outside")
        for place in (folder, folder / "a", folder / "a/b"):
            (place / "file").write_text("inside")
            (place / "out").symlink_to(tmp_path)
            (place / "up").symlink_to("..")
            (place / "in").symlink_to(folder / "a")
    path = (f"{folder}/" if absolute else "") + "/".join(names)
    assert outcome(Workspace(folder), path) != "outside"


def outcome(workspace: Workspace, path: str) -> str:
    try:
        return text(workspace, path)
    except PathRefused as refused:
        return refused.key
    except OSError as problem:
        return type(problem).__name__
