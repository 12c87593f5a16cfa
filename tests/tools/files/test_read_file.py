"""Reading files: whole, in parts, too long, too large, and files that are no text."""

from pathlib import Path

import pytest
from acting import Hands

from duckflow.tools.settings import FileSettings


async def test_a_file_comes_with_its_path_and_line_numbers_in_the_header(hands: Hands) -> None:
    hands.put("src/app.py", "one\ntwo\nthree\n")
    done = await hands.do("read_file", path="src/app.py")
    assert done.for_model == "src/app.py (lines 1-3 of 3)\none\ntwo\nthree"
    assert (done.for_user.key, done.for_user.values) == ("file.read", {"path": "src/app.py", "lines": 3})
    assert done.changed == ()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({"start_line": 2}, "a.txt (lines 2-3 of 3)\ntwo\nthree"),
        ({"start_line": 2, "end_line": 2}, "a.txt (lines 2-2 of 3)\ntwo"),
        ({"start_line": 2, "end_line": 99}, "a.txt (lines 2-3 of 3)\ntwo\nthree"),
        ({"start_line": -5, "end_line": 1}, "a.txt (lines 1-1 of 3)\none"),
        ({"start_line": None, "end_line": None}, "a.txt (lines 1-3 of 3)\none\ntwo\nthree"),
    ],
)
async def test_a_range_of_lines(hands: Hands, lines: dict[str, int], expected: str) -> None:
    hands.put("a.txt", "one\ntwo\nthree")
    assert await hands.told("read_file", path="a.txt", **lines) == expected


@pytest.mark.parametrize("lines", [{"start_line": 4}, {"start_line": 3, "end_line": 2}])
async def test_lines_that_are_not_there_are_an_error_that_says_how_many_there_are(
    hands: Hands, lines: dict[str, int]
) -> None:
    hands.put("a.txt", "one\ntwo\nthree\n")
    assert "a.txt has 3 lines" in (await hands.refused("read_file", path="a.txt", **lines)).for_model


async def test_an_empty_file(hands: Hands) -> None:
    hands.put("a.txt", "")
    assert await hands.told("read_file", path="a.txt") == "a.txt (empty file)"


async def test_a_long_file_is_cut_and_says_how_to_go_on(tmp_path: Path) -> None:
    hands = Hands(tmp_path, FileSettings(read_lines=10, read_bytes=60))
    hands.put("lines.txt", "".join(f"{number}\n" for number in range(1, 31)))
    told = await hands.told("read_file", path="lines.txt")
    assert told.startswith("lines.txt (lines 1-10 of 30)\n1\n")
    assert told.endswith("\n10\n[cut here: lines 11-30 are not shown; go on with start_line=11]")
    assert (await hands.told("read_file", path="lines.txt", start_line=21)).endswith("\n30")
    hands.put("bytes.txt", ("日本語" * 5 + "\n") * 3)
    assert "(lines 1-1 of 3)" in await hands.told("read_file", path="bytes.txt")
    hands.put("one-line.txt", "x" * 1000)
    assert "[line 1 is cut here" in await hands.told("read_file", path="one-line.txt")
    hands.put("one-line.txt", "x" * 10_000)
    await hands.do("read_file", path="one-line.txt")
    assert "only a part" in (await hands.refused("write_file", path="one-line.txt", content="x")).for_model


async def test_a_file_too_large_for_memory_is_read_in_parts(tmp_path: Path) -> None:
    hands = Hands(tmp_path, FileSettings(max_file_bytes=1000))
    hands.put("log.txt", "".join(f"line {number}\n" for number in range(1, 501)))
    told = await hands.told("read_file", path="log.txt", start_line=400, end_line=402)
    assert (
        told == "log.txt (lines 400-402 of a file of 4.3 KB; go on with start_line=403)\nline 400\nline 401\nline 402"
    )
    refusal = await hands.refused("write_file", path="log.txt", content="short")
    assert refusal.key == "file.too_large"


async def test_two_gigabytes_of_nothing_are_refused_at_once(hands: Hands) -> None:
    with (hands.folder / "huge.bin").open("wb") as file:
        file.truncate(2 * 1024**3)
    refusal = await hands.refused("read_file", path="huge.bin")
    assert "2.0 GB" in refusal.for_model
    assert (await hands.refused("edit_file", path="huge.bin", old="a", new="b")).key == "file.too_large"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "PNG image"),
        (b"PK\x03\x04\0\0", "ZIP archive"),
        (b"\0\1\2", "binary file"),
        (b"\xff\xfe\0\0a\0\0\0", "binary file"),
    ],
)
async def test_a_binary_file_is_named_and_not_shown(hands: Hands, data: bytes, kind: str) -> None:
    hands.put("thing", data)
    refusal = await hands.refused("read_file", path="thing")
    assert kind in refusal.for_model
    assert f"({len(data)} B)" in refusal.for_model


async def test_a_missing_file_is_reported_with_the_nearest_names(hands: Hands) -> None:
    hands.put("src/server/app.py", "x")
    hands.put("src/config.yaml", "x")
    for path, guess in (("app.py", "src/server/app.py"), ("src/confg.yaml", "src/config.yaml")):
        refusal = await hands.refused("read_file", path=path)
        assert f"{path} does not exist. Did you mean {guess}?" == refusal.for_model
        assert (refusal.key, refusal.values["path"]) == ("file.missing", path)
    assert "find files by name" in (await hands.refused("read_file", path="zzz")).for_model


async def test_a_folder_is_not_a_file(hands: Hands) -> None:
    hands.put("src/a.py", "x")
    assert "List it" in (await hands.refused("read_file", path="src")).for_model
    assert (await hands.refused("read_file", path="src/a.py/b")).key == "file.not_folder"


async def test_a_name_that_would_disturb_the_screen_is_shown_escaped(hands: Hands) -> None:
    name = "a\nb\u202egpj.txt"
    hands.put(name, "text\n")
    done = await hands.do("read_file", path=name)
    assert done.for_model.startswith("a\\nb\\u202egpj.txt (lines 1-1 of 1)\n")
    assert done.for_user.values["path"] == "a\\nb\\u202egpj.txt"


async def test_a_long_source_file_answers_with_its_outline(hands: Hands) -> None:
    filler = "".join(f"        x = {number}\n" for number in range(2900))
    text = f"import os\n\nclass Till:\n    def add(self, price):\n{filler}\ndef last(): ...\n"
    hands.put("till.py", text)
    told = await hands.told("read_file", path="till.py")
    assert told.startswith("till.py (lines 1-200 of 2906)\nimport os\n") and len(told) < 6000
    assert told.endswith("3-2904: class Till:\n4-2904:   def add(self, price):\n2906-2906: def last(): ...")
    assert "start_line and end_line" in told
    assert (await hands.told("read_file", path="till.py", start_line=2900)).endswith("\ndef last(): ...")
    hands.put("short.py", text[:20_000])
    assert "cut here" not in await hands.told("read_file", path="short.py")
    hands.put("till.ex", text)
    assert "lines 1-2000 of 2906" in await hands.told("read_file", path="till.ex")
