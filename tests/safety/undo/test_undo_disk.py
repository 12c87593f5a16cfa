"""Disks that are full, or not the same for the data and the work folder."""

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from playground import Playground

from duckflow.errors import DuckflowError, ToolError

MB = 1024 * 1024


@contextmanager
def full_disk(most: int) -> Generator[None]:
    """Lets no file grow beyond this size, as on a disk with little room left."""
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
    await ground.undo.restore()
    assert (ground.folder / "a.bin").read_bytes() == content


async def test_a_disk_that_fills_up_during_a_command_costs_no_old_content(ground: Playground) -> None:
    ground.put("a.txt", "as it was\n")
    before = ground.picture()
    ground.next_turn()
    window = ground.command()
    await window.__aenter__()
    ground.put("a.txt", "changed\n")
    ground.put("b.bin", os.urandom(MB))
    with full_disk(MB // 2):
        await window.__aexit__(None, None, None)
    preview = await ground.undo.preview()
    assert preview.maybe_yours
    await ground.undo.restore()
    assert ground.picture() == before


async def test_an_undo_on_a_full_disk_changes_nothing(ground: Playground) -> None:
    ground.fill({"a.txt": "as it was\n", "b.bin": os.urandom(MB), "c.txt": "as it was\n"})
    before = ground.picture()
    ground.next_turn()
    await ground.shell("echo x > a.txt; rm b.bin; rm c.txt; mkdir d")
    after = ground.picture()
    with full_disk(MB // 2), pytest.raises(DuckflowError) as failed:
        await ground.undo.restore()
    assert failed.value.key in ("undo.failed", "undo.unusable")
    assert ground.picture() == after
    await ground.undo.restore()
    assert ground.picture() == before
