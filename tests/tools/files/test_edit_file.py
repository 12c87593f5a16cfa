"""Editing parts of files, by old and new text or by SEARCH/REPLACE blocks."""

import pytest
from acting import Hands

from duckflow.errors import ToolError

BLOCKS = """Here is the change:
```python
<<<<<<< SEARCH
def one():
    return 1
=======
def one():
    return 11
>>>>>>> REPLACE
```
<<<<<<< SEARCH
two = 2
=======
two = 22
three = 3
>>>>>>> REPLACE
"""


async def test_an_exact_text_is_replaced_and_shown(hands: Hands) -> None:
    hands.put("a.py", "one = 1\ntwo = 2\n")
    args = {"path": "a.py", "old": "one = 1", "new": "one = 11"}
    preview = hands.preview("edit_file", **args)
    assert preview.diff.splitlines()[2:] == ["@@ -1,2 +1,2 @@", "-one = 1", "+one = 11", " two = 2"]
    assert [(impact.change, impact.added, impact.removed) for impact in preview.impacts] == [("edit", 1, 1)]
    done = await hands.do("edit_file", **args)
    assert hands.bytes_of("a.py") == b"one = 11\ntwo = 2\n"
    assert (done.for_user.key, done.changed) == ("file.written", ("a.py",))


async def test_all_blocks_of_a_call_are_applied(hands: Hands) -> None:
    hands.put("a.py", "def one():\n    return 1\n\ntwo = 2\n")
    await hands.do("edit_file", path="a.py", edits=BLOCKS)
    assert hands.bytes_of("a.py") == b"def one():\n    return 11\n\ntwo = 22\nthree = 3\n"


async def test_all_pairs_of_a_call_are_applied(hands: Hands) -> None:
    hands.put("a.py", "x = 1\ny = 2\nz = 3\n")
    edits = [{"old": "x = 1", "new": "x = 9"}, {"old": "w", "new": "v"}]
    refusal = await hands.refused("edit_file", path="a.py", edits=edits)
    assert "does not occur" in refusal.for_model
    assert hands.bytes_of("a.py") == b"x = 1\ny = 2\nz = 3\n"
    await hands.do("edit_file", path="a.py", edits=[{"old": "1", "new": "one"}, {"old": "z = 3\n", "new": ""}])
    assert hands.bytes_of("a.py") == b"x = one\ny = 2\n"


async def test_no_pair_is_applied_if_one_does_not_fit(hands: Hands) -> None:
    hands.put("a.py", "def one():\n    return 1\n")
    refusal = await hands.refused("edit_file", path="a.py", edits=BLOCKS)
    assert refusal.key == "edit.not_found"
    assert hands.bytes_of("a.py") == b"def one():\n    return 1\n"


async def test_a_block_starts_at_the_beginning_of_a_line(hands: Hands) -> None:
    hands.put("a.py", "max = 1\nif a:\n    x = 1\n")
    edits = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\ny = 3\n>>>>>>> REPLACE\n"
    await hands.do("edit_file", path="a.py", edits=edits)
    assert hands.bytes_of("a.py") == b"max = 1\nif a:\n    x = 2\n    y = 3\n"


async def test_encoding_and_line_ends_stay_after_an_edit(hands: Hands) -> None:
    hands.put("a.txt", "\ufeffいち\r\nに\nさん\r\n".encode("utf-16-le"))
    await hands.do("edit_file", path="a.txt", old="さん\n", new="し\nご\n")
    assert hands.bytes_of("a.txt") == "\ufeffいち\r\nに\nし\r\nご\r\n".encode("utf-16-le")


@pytest.mark.parametrize(
    ("args", "key"),
    [
        ({"old": "x = 1", "new": "x = 2"}, "edit.ambiguous"),
        ({"old": "nowhere", "new": "x"}, "edit.not_found"),
        ({"old": "", "new": "x"}, "edit.empty"),
        ({"old": "y", "new": "y"}, "edit.nothing"),
        ({"edits": "no blocks here"}, "edit.unreadable"),
        ({"edits": BLOCKS, "old": "x", "new": "y"}, "edit.both"),
    ],
)
async def test_an_edit_that_cannot_be_made_is_explained_and_changes_nothing(
    hands: Hands, args: dict[str, str], key: str
) -> None:
    hands.put("a.py", "x = 1\ny = 2\nx = 1\n")
    refusal = await hands.refused("edit_file", path="a.py", **args)
    assert refusal.key == key
    assert refusal.for_model
    assert hands.bytes_of("a.py") == b"x = 1\ny = 2\nx = 1\n"


async def test_all_places_on_request(hands: Hands) -> None:
    hands.put("a.py", "x = 1\ny = 2\nx = 1\n")
    await hands.do("edit_file", path="a.py", old="x = 1", new="x = 3", all=True)
    assert hands.bytes_of("a.py") == b"x = 3\ny = 2\nx = 3\n"


async def test_a_file_changed_after_the_preview_is_refused_once(hands: Hands) -> None:
    hands.put("a.py", "one\n")
    args = {"path": "a.py", "old": "one", "new": "two"}
    hands.preview("edit_file", **args)
    hands.put("a.py", "one\nand more\n")
    with pytest.raises(ToolError, match=r"file\.changed"):
        await hands.run_only("edit_file", **args)
    assert hands.bytes_of("a.py") == b"one\nand more\n"
    await hands.do("edit_file", **args)
    assert hands.bytes_of("a.py") == b"two\nand more\n"


async def test_two_changes_of_one_file_can_be_previewed_together_and_then_run(hands: Hands) -> None:
    hands.put("a.py", "one\ntwo\n")
    first, second = {"old": "one", "new": "1"}, {"old": "two", "new": "2"}
    hands.preview("edit_file", path="a.py", **first)
    hands.preview("edit_file", path="a.py", **second)
    await hands.run_only("edit_file", path="a.py", **first)
    await hands.run_only("edit_file", path="a.py", **second)
    assert hands.bytes_of("a.py") == b"1\n2\n"


async def test_an_edit_keeps_a_known_file_known_and_an_unknown_one_unknown(hands: Hands) -> None:
    hands.put("a.py", "one\n" + "filler\n" * 1000)
    await hands.do("edit_file", path="a.py", old="one", new="two")
    assert (await hands.refused("write_file", path="a.py", content="x")).key == "file.read_first"
    await hands.do("read_file", path="a.py")
    await hands.do("edit_file", path="a.py", old="two", new="three")
    await hands.do("write_file", path="a.py", content="x\n")
    assert hands.bytes_of("a.py") == b"x\n"


async def test_a_missing_file_cannot_be_edited(hands: Hands) -> None:
    assert (await hands.refused("edit_file", path="a.py", old="a", new="b")).key == "file.missing"


async def test_marks_that_reverse_the_direction_of_text_are_visible_in_the_diff(hands: Hands) -> None:
    hands.put("a.py", "ok\n")
    preview = hands.preview("edit_file", path="a.py", old="ok", new="ok \u202e# hidden")
    assert "+ok \\u202e# hidden" in preview.diff


async def test_the_result_shows_how_the_places_read_now_with_line_numbers(hands: Hands) -> None:
    hands.put("a.py", "".join(f"line{number} = {number}\n" for number in range(1, 101)))
    edits = [{"old": "line50 = 50\n", "new": "fifty = 50\nmore = 51\n"}, {"old": "line90 = 90\n", "new": ""}]
    told = (await hands.told("edit_file", path="a.py", edits=edits)).splitlines()
    assert told[0] == "Changed a.py (+2 -2 lines). Now:"
    assert told[1:9] == [
        "47: line47 = 47", "48: line48 = 48", "49: line49 = 49", "50+ fifty = 50", "51+ more = 51",
        "52: line51 = 51", "53: line52 = 52", "54: line53 = 53",
    ]  # fmt: skip
    assert told[9:] == ["…", *(f"{number}: line{number - 1} = {number - 1}" for number in (88, 89, 90))] + [
        f"{number}: line{number} = {number}" for number in (91, 92, 93)
    ]


async def test_the_quotation_of_a_large_change_is_limited(hands: Hands) -> None:
    hands.put("a.py", "x = 1\n")
    new = "".join(f"y{number} = {number}\n" for number in range(500))
    told = (await hands.told("edit_file", path="a.py", edits=[{"old": "x = 1\n", "new": new}])).splitlines()
    assert told[1:] == ["1+ y0 = 0", "2+ y1 = 1", "…", *told[-2:]]
    hands.put("b.py", "".join(f"a{number} = 1\nb{number} = 2\nc = 3\n" for number in range(60)))
    edits = [{"old": f"a{number} = 1\n", "new": f"a{number} = 9\n"} for number in range(60)]
    assert len((await hands.told("edit_file", path="b.py", edits=edits)).splitlines()) < 50


async def test_lines_of_a_secret_file_are_not_shown(hands: Hands) -> None:
    hands.put(".env", "NAME=duck\nPASSWORD=hunter2hunter2\n")
    assert (await hands.told("edit_file", path=".env", old="NAME=duck", new="NAME=drake")).endswith("lines).")


async def test_all_problems_of_a_list_of_edits_are_reported_at_once(hands: Hands) -> None:
    hands.put("a.py", "one = 1\ntwo = 2\nthree = 3\n")
    edits = [
        {"old": "one = 1", "new": "one = 11"},
        {"old": "nowhere at all", "new": "x"},
        {"old": "t", "new": "T"},
        {"old": "three = 3", "new": "three = 33"},
    ]
    refused = await hands.refused("edit_file", path="a.py", edits=edits)
    assert "Edit 2 of 4: `old` does not occur" in refused.for_model and "Edit 3 of 4: `old` fits" in refused.for_model
    assert "The others (1, 4) fit" in refused.for_model and hands.bytes_of("a.py") == b"one = 1\ntwo = 2\nthree = 3\n"
