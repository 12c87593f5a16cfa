"""Diffs of changes, for a person's eyes."""

import difflib
import subprocess
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duckflow.tools.files.change import diff


def test_the_end_of_a_file_without_a_newline_is_marked() -> None:
    changed = diff("one\ntwo", "one\ntwo\n", "a.txt", 100)
    assert changed.text.splitlines()[2:] == [
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "\\ No newline at end of file",
        "+two",
    ]
    assert (changed.added, changed.removed) == (1, 1)


def test_equal_texts_have_an_empty_diff() -> None:
    assert diff("one\n", "one\n", "a.txt", 100).text == ""


def test_a_long_diff_is_cut_but_counted() -> None:
    changed = diff("", "".join(f"{number}\n" for number in range(1000)), "a.txt", 10)
    assert changed.added == 1000
    assert changed.text.splitlines()[-1] == "… +991"
    assert len(changed.text.splitlines()) == 13


def test_a_giant_change_is_counted_without_being_compared() -> None:
    changed = diff("same\n" * 30_000, "other\n" * 20_000, "a.txt", 10)
    assert (changed.added, changed.removed) == (20_000, 30_000)


def test_many_equal_lines_are_compared_in_time() -> None:
    before = "".join(f"{number % 3}\n" for number in range(6000))
    after = "x\n" + before.replace("1\n", "2\n") + "y\n"
    assert diff(before, after, "a.txt", 10).added > 0


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "@@", "-x", "+y"]), max_size=30).map("\n".join)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=LINES, after=LINES)
def test_patch_can_apply_the_diff(tmp_path: Path, before: str, after: str) -> None:
    changed = diff(before, after, "a.txt", 1000)
    (tmp_path / "a.txt").write_text(before)
    if changed.text:
        command = ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", "-"]
        subprocess.run(command, cwd=tmp_path, input=changed.text + "\n", text=True, check=True)
        assert (tmp_path / "a.txt").read_text() == after
    else:
        assert before == after
    counted = [line[:1] for line in list(difflib.unified_diff(split(before), split(after), n=0))[2:]]
    assert (changed.added - changed.removed) == counted.count("+") - counted.count("-")


def split(text: str) -> list[str]:
    return text.splitlines(keepends=True)
