"""Failures of the operating system reach the model as a sentence, never as a traceback."""

import os
import resource
from pathlib import Path

import pytest
from acting import Hands

from duckflow.tools.settings import FileSettings


async def test_a_full_disk(hands: Hands) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        refusal = await hands.refused("write_file", path="a.txt", content="x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert refusal.key == "file.disk_full"
    assert "Nothing was changed" in refusal.for_model
    assert list(hands.folder.iterdir()) == []


async def test_no_permission(hands: Hands) -> None:
    hands.put("locked/a.txt", "x")
    (hands.folder / "locked").chmod(0o500)
    was = os.geteuid()
    if was == 0:
        (hands.folder / "locked").chmod(0)
        os.seteuid(65534)
    try:
        refusal = await hands.refused("write_file", path="locked/b.txt", content="x")
        delete = await hands.refused("delete_file", path="locked/a.txt")
    finally:
        os.seteuid(was)
        (hands.folder / "locked").chmod(0o700)
    assert (refusal.key, delete.key) == ("file.denied", "file.denied")


async def test_links_in_a_circle(hands: Hands) -> None:
    (hands.folder / "a").symlink_to("a")
    for name, args in (("read_file", {}), ("list_files", {}), ("write_file", {"content": "x"})):
        assert (await hands.refused(name, path="a", **args)).key == "file.loop"


@pytest.mark.parametrize("path", ["", "a\0b", "../../etc/passwd", "/etc/passwd", "a" * 300, "~/x", "a/" * 600 + "b"])
async def test_unusable_paths_in_every_tool(hands: Hands, path: str) -> None:
    for name, args in (
        ("read_file", {"path": path}),
        ("list_files", {"path": path}),
        ("find_files", {"pattern": "*", "path": path}),
        ("grep", {"pattern": "x", "path": path}),
        ("write_file", {"path": path, "content": "x"}),
        ("edit_file", {"path": path, "old": "a", "new": "b"}),
        ("delete_file", {"path": path}),
        ("make_folder", {"path": path}),
        ("move_file", {"source": path, "target": "b"}),
    ):
        refusal = await hands.refused(name, **args)
        assert refusal.key.startswith("path."), name


async def test_pipes_and_devices_are_refused_without_waiting(hands: Hands) -> None:
    os.mkfifo(hands.folder / "pipe")
    for name, args in (("read_file", {}), ("write_file", {"content": "x"}), ("edit_file", {"old": "a", "new": "b"})):
        assert (await hands.refused(name, path="pipe", **args)).key == "path.not_file"


async def test_a_work_folder_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    hands = Hands(tmp_path / "gone", FileSettings())
    (tmp_path / "gone").rmdir()
    assert (await hands.refused("list_files")).key == "path.no_folder"
