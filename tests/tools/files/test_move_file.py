"""Moving files and folders."""

import pytest
from acting import Hands

from duckflow.errors import ToolError


async def test_a_file_gets_a_new_name_and_stays_known(hands: Hands) -> None:
    hands.put("old.txt", "text\n")
    await hands.do("read_file", path="old.txt")
    preview = hands.preview("move_file", source="old.txt", target="new/name.txt")
    assert preview.diff == "rename from old.txt\nrename to new/name.txt"
    assert [(impact.path, impact.change) for impact in preview.impacts] == [
        ("old.txt", "move"),
        ("new/name.txt", "create"),
    ]
    done = await hands.do("move_file", source="old.txt", target="new/name.txt")
    assert done.changed == ("old.txt", "new/name.txt")
    assert not (hands.folder / "old.txt").exists()
    await hands.do("write_file", path="new/name.txt", content="other\n")
    assert hands.bytes_of("new/name.txt") == b"other\n"


async def test_a_folder_as_target_means_into_it(hands: Hands) -> None:
    hands.put("a.txt", "a")
    hands.put("docs/b.txt", "b")
    await hands.do("move_file", source="a.txt", target="docs/")
    await hands.do("move_file", source="docs", target="archive")
    assert hands.bytes_of("archive/a.txt") == b"a"
    await hands.do("move_file", source="archive/b.txt", target=".")
    assert hands.bytes_of("b.txt") == b"b"


@pytest.mark.parametrize(
    ("source", "target", "key"),
    [
        ("a.txt", "b.txt", "file.exists"),
        ("a.txt", "link", "file.exists"),
        ("a.txt", "folder", "file.exists"),
        ("a.txt", "a.txt", "file.into_itself"),
        ("folder", "folder/inner", "file.into_itself"),
        ("missing.txt", "c.txt", "file.missing"),
        ("a.txt", "../c.txt", "path.outside"),
        ("../c.txt", "d.txt", "path.outside"),
        ("a.txt", "b.txt/c.txt", "file.not_folder"),
    ],
)
async def test_nothing_is_overwritten_and_nothing_leaves(hands: Hands, source: str, target: str, key: str) -> None:
    hands.put("a.txt", "a")
    hands.put("b.txt", "b")
    hands.put("folder/a.txt", "other")
    (hands.folder / "link").symlink_to("nowhere")
    assert (await hands.refused("move_file", source=source, target=target)).key == key
    assert hands.bytes_of("a.txt") == b"a"
    assert hands.bytes_of("b.txt") == b"b"
    assert hands.bytes_of("folder/a.txt") == b"other"


async def test_a_source_replaced_after_the_preview_is_refused(hands: Hands) -> None:
    hands.put("a.txt", "a")
    hands.preview("move_file", source="a.txt", target="b.txt")
    hands.put("a.txt", "quite another text")
    with pytest.raises(ToolError, match=r"file\.changed"):
        await hands.run_only("move_file", source="a.txt", target="b.txt")
    assert hands.bytes_of("a.txt") == b"quite another text"
