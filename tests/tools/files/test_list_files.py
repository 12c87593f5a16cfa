"""Listing folders."""

from pathlib import Path

import pytest
from acting import Hands

from duckflow.tools.settings import FileSettings


async def test_names_are_sorted_folders_marked_sizes_given(hands: Hands) -> None:
    hands.put("b.txt", "x" * 2000)
    hands.put("a/inner.txt", "x")
    (hands.folder / "link").symlink_to("b.txt")
    done = await hands.do("list_files")
    assert done.for_model == "./\na/\nb.txt (2.0 KB)\nlink (link)"
    assert done.for_user.values == {"path": ".", "entries": 3}
    assert await hands.told("list_files", path="a") == "a/\na/inner.txt (1 B)"


async def test_deeper_on_request(hands: Hands) -> None:
    hands.put("a/b/c/d.txt", "x")
    assert (await hands.told("list_files", depth=2)).splitlines() == ["./", "a/", "a/b/"]
    assert (await hands.told("list_files", path="a", depth=2)).splitlines() == ["a/", "a/b/", "a/b/c/"]
    assert "a/b/c/d.txt (1 B)" in await hands.told("list_files", depth=9)
    assert (await hands.told("list_files", depth=0)).splitlines() == ["./", "a/"]


async def test_ignored_files_are_left_out(hands: Hands) -> None:
    hands.put(".gitignore", "*.log\n")
    hands.put("a.log", "x")
    hands.put("node_modules/x.js", "x")
    assert (await hands.told("list_files", depth=3)).splitlines() == ["./", ".gitignore (6 B)"]


async def test_too_many_entries_are_cut_with_a_note(tmp_path: Path) -> None:
    hands = Hands(tmp_path, FileSettings(list_entries=3))
    for number in range(5):
        hands.put(f"{number}.txt", "")
    told = (await hands.told("list_files")).splitlines()
    assert told[1:4] == ["0.txt (0 B)", "1.txt (0 B)", "2.txt (0 B)"]
    assert "first 3" in told[4]


async def test_an_empty_folder_a_file_a_missing_one_one_outside(hands: Hands) -> None:
    assert "empty" in await hands.told("list_files")
    hands.put("a.txt", "x")
    assert (await hands.refused("list_files", path="a.txt")).key == "file.not_folder"
    assert (await hands.refused("list_files", path="b")).key == "file.missing"
    assert (await hands.refused("list_files", path="..")).key == "path.outside"


async def test_odd_names_are_escaped_and_broken_ones_listed(hands: Hands) -> None:
    hands.put("line\nbreak", "x")
    (hands.folder / "caf\udce9").write_text("x")
    told = await hands.told("list_files")
    assert "line\\nbreak (1 B)" in told
    assert "caf\\udce9 (1 B)" in told
    told.encode()


@pytest.mark.slow
async def test_ten_thousand_files(hands: Hands) -> None:
    for folder in range(100):
        (hands.folder / f"d{folder}").mkdir()
        for number in range(100):
            (hands.folder / f"d{folder}/{number}.txt").touch()
    assert "[only the first 400" in await hands.told("list_files", depth=5)
    assert "[the newest 200 of 10000;" in await hands.told("find_files", pattern="*.txt")
    assert "d0/ (100, 0 B)" in hands.preview("delete_file", path="d0", recursive=True).diff
