"""Disks that are full, or not the same for the data and the work folder."""

import os
import resource
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playground import Playground

from duckflow.errors import DuckflowError, ToolError

MB = 1024 * 1024


@contextmanager
def full_disk(most: int) -> Generator[None]:
    """No file can grow beyond this, as on a disk with little room left."""
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)


async def test_on_a_full_disk_a_change_is_refused_before_anything_is_lost(ground: Playground) -> None:
    content = os.urandom(MB)
    ground.put("a.bin", content)
    ground.next_turn()
    await ground.do("write_file", path="b.txt", content="so that the data are there\n")
    with full_disk(MB // 2):
        with pytest.raises(ToolError) as refused:
            await ground.do("delete_file", path="a.bin")
        with pytest.raises(ToolError):
            await ground.shell("rm a.bin")
    assert refused.value.key == "undo.unavailable"
    assert (ground.folder / "a.bin").read_bytes() == content
    await ground.do("delete_file", path="a.bin")
    await ground.undo.undo()
    assert (ground.folder / "a.bin").read_bytes() == content


async def test_a_disk_that_fills_up_during_a_command_costs_no_old_content(ground: Playground) -> None:
    ground.put("a.txt", "as it was\n")
    before = ground.picture()
    ground.next_turn()
    window = ground.undo.command()
    await window.__aenter__()
    ground.put("a.txt", "changed\n")
    ground.put("b.bin", os.urandom(MB))
    with full_disk(MB // 2):
        await window.__aexit__(None, None, None)
    preview = await ground.undo.preview_undo()
    assert [one.key for one in preview.not_covered] == ["undo.interrupted"]
    assert (await ground.undo.undo(on_conflict="overwrite")).done
    assert ground.picture() == before


async def test_an_undo_on_a_full_disk_changes_nothing(ground: Playground) -> None:
    ground.fill({"a.txt": "as it was\n", "b.bin": os.urandom(MB), "c.txt": "as it was\n"})
    before = ground.picture()
    ground.next_turn()
    await ground.shell("echo x > a.txt; rm b.bin; rm c.txt; mkdir d")
    after = ground.picture()
    with full_disk(MB // 2), pytest.raises(DuckflowError) as failed:
        await ground.undo.undo()
    assert failed.value.key in ("undo.failed", "undo.unusable")
    assert ground.picture() == after
    assert (await ground.undo.undo()).done
    assert ground.picture() == before


@pytest.fixture
def other_disk() -> Generator[Path]:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("no second file system at hand")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


async def test_data_on_another_disk_outlive_the_repository_too(ground: Playground, other_disk: Path) -> None:
    ground.data = other_disk / "data"
    ground.restart()
    ground.fill({f"{number}.txt": f"{number}\n" for number in range(20)})
    ground.commit_all()
    before = ground.picture()
    ground.next_turn()
    await ground.shell("find . -mindepth 1 -delete")
    assert (await ground.undo.undo()).done
    assert ground.picture() == before


async def test_more_than_may_be_copied_is_taken_from_the_repository(tmp_path: Path, other_disk: Path) -> None:
    ground = Playground(tmp_path, copied_mb=0)
    ground.data = other_disk / "data"
    ground.restart()
    ground.put("a.bin", os.urandom(100_000))
    ground.commit_all()
    ground.put("b.bin", os.urandom(100_000))
    before = ground.picture()
    ground.next_turn()
    await ground.shell("rm a.bin b.bin")
    assert await ground.not_covered() == {"undo.unkept"}
    assert (await ground.undo.undo()).changed == ("a.bin",)
    assert ground.picture()["a.bin"] == before["a.bin"]
