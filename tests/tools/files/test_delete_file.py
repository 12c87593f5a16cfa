"""Deleting files and folders."""

import pytest
from acting import Hands

from duckflow.errors import ToolError


async def test_a_file_is_shown_before_it_goes(hands: Hands) -> None:
    hands.put("a.txt", "one\ntwo\n")
    preview = hands.preview("delete_file", path="a.txt")
    assert preview.diff.splitlines()[2:] == ["@@ -1,2 +0,0 @@", "-one", "-two"]
    assert [(impact.path, impact.change, impact.removed) for impact in preview.impacts] == [("a.txt", "delete", 2)]
    done = await hands.do("delete_file", path="a.txt")
    assert (done.changed, done.for_user.key) == (("a.txt",), "file.deleted")
    assert not (hands.folder / "a.txt").exists()


async def test_a_folder_that_is_not_empty_needs_recursive_and_its_files_are_counted(hands: Hands) -> None:
    for number in range(60):
        hands.put(f"old/{number:02}.txt", "x" * 100)
    hands.put("old/deep/er.txt", "x")
    refusal = await hands.refused("delete_file", path="old")
    assert "61 files" in refusal.for_model
    assert "recursive" in refusal.for_model
    preview = hands.preview("delete_file", path="old", recursive=True)
    assert preview.impacts[0].path == "old/ (61)"
    assert all(impact.change == "delete" for impact in preview.impacts)
    assert preview.diff.splitlines()[0] == "--- a/old/ (61, 5.9 KB)"
    assert preview.diff.splitlines()[-1] == "… +11"
    done = await hands.do("delete_file", path="old", recursive=True)
    assert done.for_user.values == {"path": "old", "files": 61}
    assert list(hands.folder.iterdir()) == []


async def test_an_empty_folder_and_a_link_are_deleted_without_recursive(hands: Hands) -> None:
    hands.put("kept.txt", "kept")
    (hands.folder / "empty").mkdir()
    (hands.folder / "link").symlink_to("kept.txt")
    await hands.do("delete_file", path="empty")
    await hands.do("delete_file", path="link")
    assert [path.name for path in hands.folder.iterdir()] == ["kept.txt"]


@pytest.mark.parametrize(
    ("path", "key"),
    [(".", "path.whole_folder"), ("..", "path.outside"), ("missing", "file.missing"), ("", "path.empty")],
)
async def test_some_things_cannot_be_deleted(hands: Hands, path: str, key: str) -> None:
    assert (await hands.refused("delete_file", path=path, recursive=True)).key == key


async def test_a_folder_that_changed_after_the_preview_is_not_deleted(hands: Hands) -> None:
    hands.put("old/a.txt", "a")
    hands.preview("delete_file", path="old", recursive=True)
    hands.put("old/new.txt", "just made")
    with pytest.raises(ToolError, match=r"file\.changed"):
        await hands.run_only("delete_file", path="old", recursive=True)
    assert hands.bytes_of("old/new.txt") == b"just made"


async def test_names_of_broken_bytes_do_not_reach_the_record(hands: Hands) -> None:
    hands.put("old/a.txt", "a")
    (hands.folder / "old/caf\udce9").write_text("x")
    done = await hands.do("delete_file", path="old", recursive=True)
    assert done.changed == ("old", "old/a.txt")
    assert done.for_user.values["files"] == 2


async def test_a_deleted_file_no_longer_counts_as_seen(hands: Hands) -> None:
    await hands.do("write_file", path="a.txt", content="one\n")
    await hands.do("delete_file", path="a.txt")
    hands.put("a.txt", "someone's\n")
    assert (await hands.refused("write_file", path="a.txt", content="two\n")).key == "file.read_first"
