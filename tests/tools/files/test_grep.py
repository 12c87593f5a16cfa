"""Searching the text of files, with ripgrep where it is installed and with Python."""

import asyncio
import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from acting import Hands

from duckflow.tools.settings import FileSettings


@pytest.fixture(params=["ripgrep", "python"], autouse=True)
def searcher(request: pytest.FixtureRequest) -> Generator[None]:
    """Python searches where no `rg` is on the path."""
    if request.param == "ripgrep" and not shutil.which("rg"):
        pytest.skip("ripgrep is not installed")
    path = os.environ["PATH"]
    while request.param == "python" and (ripgrep := shutil.which("rg")):
        folders = os.environ["PATH"].split(os.pathsep)
        os.environ["PATH"] = os.pathsep.join(folder for folder in folders if folder != str(Path(ripgrep).parent))
    yield
    os.environ["PATH"] = path


async def test_lines_that_fit_come_below_the_name_of_their_file_with_their_numbers(hands: Hands) -> None:
    hands.put("src/app.py", "import os\n\ndef main():\n    pass\n")
    hands.put("b.txt", "def other\n")
    done = await hands.do("grep", pattern=r"def \w+")
    assert done.for_model.splitlines() == ["b.txt", "1:def other", "", "src/app.py", "3:def main():"]
    assert done.for_user.values == {"pattern": r"def \w+", "matches": 2}
    assert await hands.told("grep", pattern="def", path="src") == "src/app.py\n3:def main():"
    assert await hands.told("grep", pattern="def", path="src/app.py") == "src/app.py\n3:def main():"
    assert await hands.told("grep", pattern="def", glob="*.txt") == "b.txt\n1:def other"
    assert await hands.told("grep", pattern="DEF OTHER", ignore_case=True) == "b.txt\n1:def other"
    assert await hands.told("grep", pattern="-def|--other|def o") == "b.txt\n1:def other"


async def test_no_match_is_a_result_and_what_is_ignored_is_not_searched(hands: Hands) -> None:
    hands.put(".gitignore", "*.log\n")
    hands.put("a.log", "needle\n")
    hands.put(".git/config", "needle\n")
    hands.put("node_modules/a.js", "needle\n")
    done = await hands.do("grep", pattern="needle")
    assert done.ok
    assert done.for_model.startswith("No line fits needle in .")
    hands.put(".github/ci.yml", "needle\n")
    assert await hands.told("grep", pattern="needle") == ".github/ci.yml\n1:needle"


async def test_rules_that_stand_outside_the_folder_count_from_any_place_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    rules = {
        "repo/.git/HEAD": "ref: refs/heads/main\n",
        "repo/.git/info/exclude": "*.excluded\n/packages/one/src/one.txt\n/src/kept.txt\n",
        "repo/.gitignore": "/packages/*/src/two.txt\npackages/other/src/kept.txt\n*.log\n!packages/one/src/kept.log\n",
        ".config/git/ignore": "*.users\n",
    }
    names = ("a.excluded", "one.txt", "two.txt", "a.log", "kept.log", "kept.txt", "a.users")
    for path, text in {**rules, **{f"repo/packages/one/src/{name}": "needle\n" for name in names}}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "repo/.git/objects").mkdir()
    (tmp_path / "repo/.git/refs").mkdir()
    hands = Hands(tmp_path / "repo/packages/one", FileSettings())
    for path in (".", "src"):
        found = (await hands.told("grep", pattern="needle", path=path)).splitlines()
        assert [line for line in found if line.startswith("src")] == ["src/kept.log", "src/kept.txt"]


async def test_japanese_is_found_in_every_encoding(hands: Hands) -> None:
    text = "これは\n検索する行です\n"
    for encoding in ("utf-8", "cp932", "euc_jp"):
        hands.put(f"{encoding}.txt", text.encode(encoding))
    hands.put("utf-16.txt", f"\ufeff{text}".encode("utf-16-le"))
    told = await hands.told("grep", pattern="検索.*行")
    assert told == "\n\n".join(f"{name}.txt\n2:検索する行です" for name in ("cp932", "euc_jp", "utf-16", "utf-8"))


async def test_too_many_matches_are_cut_with_a_note(tmp_path: Path) -> None:
    hands = Hands(tmp_path, FileSettings(grep_matches=5, grep_line=40))
    hands.put("a.txt", "needle\n" * 100)
    told = (await hands.told("grep", pattern="needle")).splitlines()
    assert told[:-1] == ["a.txt", *(f"{number}:needle" for number in range(1, 6))]
    assert told[-1] == "[stopped after 5 matches; narrow the pattern, path or glob]"
    hands.put("long.txt", "needle" + "x" * 10_000 + "\n")
    assert len(await hands.told("grep", pattern="needle", glob="long.txt")) < 150


@pytest.mark.parametrize("pattern", ["(unclosed", "*", "[z-a]", "(?P<x>a)(?P<x>b)", ""])
async def test_an_invalid_pattern_is_reported(hands: Hands, pattern: str) -> None:
    hands.put("a.txt", "x\n")
    refusal = await hands.refused("grep", pattern=pattern)
    assert refusal.key == "grep.bad_pattern"


async def test_expressions_only_python_knows_work_too(hands: Hands) -> None:
    hands.put("a.txt", "foo bar\nfoo baz\n")
    assert await hands.told("grep", pattern="foo (?!bar)") == "a.txt\n2:foo baz"


@pytest.mark.one_in(2)
async def test_an_expression_that_takes_forever_is_ended(tmp_path: Path) -> None:
    hands = Hands(tmp_path, FileSettings(grep_seconds=1.0))
    hands.put("a.txt", "a" * 40 + "b\n")
    told = await hands.told("grep", pattern=r"(?=(a|aa)+$)x", path="a.txt")
    assert "stopped after 1 s" in told


async def test_a_search_can_be_interrupted(tmp_path: Path) -> None:
    hands = Hands(tmp_path, FileSettings(grep_seconds=60.0))
    hands.put("a.txt", "a" * 40 + "b\n")
    search = asyncio.create_task(hands.do("grep", pattern=r"(?=(a|aa)+$)x", path="a.txt"))
    await asyncio.sleep(0.2)
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search


async def test_links_are_not_followed_and_nothing_outside_is_searched(hands: Hands, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("needle outside\n")
    (hands.folder / "out").symlink_to(tmp_path)
    hands.put("in.txt", "needle\n")
    assert await hands.told("grep", pattern="needle") == "in.txt\n1:needle"
    for path in ("out", "..", str(tmp_path), "out/outside.txt"):
        assert (await hands.refused("grep", pattern="needle", path=path)).key == "path.outside"
    assert (await hands.refused("grep", pattern="needle", path="missing")).key == "file.missing"


async def test_odd_names_binary_files_and_large_files_are_searched(tmp_path: Path) -> None:
    hands = Hands(tmp_path, FileSettings(max_file_bytes=1000))
    hands.put("line\nbreak.txt", "needle\n")
    hands.put("data.bin", b"needle\0\n")
    hands.put("large.txt", "filler\n" * 1000 + "needle\n")
    told = await hands.told("grep", pattern="^needle$")
    assert told.splitlines() == ["large.txt", "1001:needle", "", "line\\nbreak.txt", "1:needle"]


async def test_a_module_in_the_folder_is_not_imported_by_the_search(hands: Hands) -> None:
    hands.put("json.py", "raise SystemExit(3)  # needle\n")
    hands.put("re.py", "raise SystemExit(3)\n")
    assert await hands.told("grep", pattern="needle") == "json.py\n1:raise SystemExit(3)  # needle"


async def test_lines_around_a_match_come_with_it(hands: Hands) -> None:
    hands.put("a.py", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
    told = await hands.told("grep", pattern="two|seven", context=1)
    assert told.splitlines() == ["a.py", "1-one", "2:two", "3-three", "--", "6-six", "7:seven"]


@pytest.mark.parametrize("context", [0, 1])
async def test_a_line_can_be_copied_as_it_stands_in_the_file(hands: Hands, context: int) -> None:
    lines = ["\tdef needle():", "    needle = 1  ", " needle", "needle", "\t  \tneedle", "　needle"]
    hands.put("a.py", "".join(f"{line}\n" for line in lines))
    told = (await hands.told("grep", pattern="needle", context=context)).split("\n")
    assert told == ["a.py", *(f"{number}:{line}" for number, line in enumerate(lines, 1))]
