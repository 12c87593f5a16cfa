"""Replacing text that occurs exactly once, or once except for blanks; everything else is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.errors import ToolError
from duckflow.tools.files.edit_file import replace


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param("a b c", "b", "x", "a x c", id="a part of a line"),
        pytest.param("a\nb\n", "a\nb\n", "", "", id="all of it"),
        pytest.param("", "", "text", "text", id="an empty file is filled"),
        pytest.param("cost: 5", "5", r"$1 \1 \g<0>", r"cost: $1 \1 \g<0>", id="nothing in it is a pattern"),
        pytest.param("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n", id="line ends of the file"),
        pytest.param("a\nb\n", "a\r\nb\r\n", "x\r\n", "x\n", id="line ends of the model"),
        pytest.param("a\r\nb\nc\r\n", "b\nc", "x\ny", "a\r\nx\r\ny\r\n", id="mixed line ends"),
        pytest.param("a  \nb\t\nc\n", "a\nb", "x\ny", "x\ny\nc\n", id="trailing blanks in the file"),
        pytest.param("a\nb\nc\n", "a \nb ", "x\ny", "x\ny\nc\n", id="trailing blanks in old"),
        pytest.param("x\n\na\n", "\na\n\n", "\nb\n\n", "x\n\nb\n", id="blank lines around old"),
        pytest.param("last", "last\n", "new\n", "new", id="no newline at the end"),
        pytest.param("a\r\nlast", "last\n", "", "a\r\n", id="the last line deleted"),
    ],
)
def test_text_that_occurs_once_is_replaced(before: str, old: str, new: str, after: str) -> None:
    assert replace(before, old, new) == after


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        pytest.param(
            "class A:\n    def f(self):\n        return 1\n",
            "def f(self):\n    return 1",
            "def f(self):\n    if x:\n        return 2\n\n    return 3",
            "class A:\n    def f(self):\n        if x:\n            return 2\n\n        return 3\n",
            id="the file is indented further",
        ),
        pytest.param(
            "if a:\n    b()\n",
            "        if a:\n            b()",
            "        if a:\n            c()\n        d()",
            "if a:\n    c()\nd()\n",
            id="the file is indented less",
        ),
        pytest.param(
            "\tif a:\n\t\tb()\n",
            "    if a:\n        b()",
            "    if a:\n        b()\n        if c:\n            d()",
            "\tif a:\n\t\tb()\n\t\tif c:\n\t\t\td()\n",
            id="tabs in the file, spaces in old",
        ),
        pytest.param(
            "    if a:\n        b()\n",
            "if a:\n  b()",
            "if a:\n  c()\n  if d:\n    e()",
            "    if a:\n        c()\n        if d:\n            e()\n",
            id="four spaces in the file, two in old",
        ),
        pytest.param(
            "  if a:\n    b()\n",
            "\tif a:\n\t\tb()",
            "\tif a:\n\t\tc()",
            "  if a:\n    c()\n",
            id="spaces in the file, tabs in old",
        ),
        pytest.param("x  =   1\n", "x = 1", "x = 2", "x = 2\n", id="blanks inside the line"),
        pytest.param("  f( a,  b )\r\n", "f( a, b )", "g( a )", "  g( a )\r\n", id="blanks inside and outside"),
    ],
)
def test_indentation_is_carried_over_to_the_new_text(before: str, old: str, new: str, after: str) -> None:
    assert replace(before, old, new) == after


@pytest.mark.parametrize(
    ("before", "old", "new", "key"),
    [
        pytest.param("a\na\n", "a", "b", "edit.ambiguous", id="twice"),
        pytest.param("aaa", "aa", "b", "edit.ambiguous", id="twice, one over the other"),
        pytest.param("  a \n b\n  a \n b\n", "a\nb", "c", "edit.not_found", id="once in no way"),
        pytest.param(" a  \n  b\n a\t\n  b\n", " a\n  b", "c", "edit.ambiguous", id="twice but for blanks"),
        pytest.param("abc", "x", "y", "edit.not_found", id="not at all"),
        pytest.param("f(a)\n", "f(b)", "f(c)", "edit.not_found", id="similar is not the same"),
        pytest.param("a\n", "\n\n\n", "b", "edit.not_found", id="only blank lines"),
        pytest.param("a", "", "b", "edit.empty", id="nothing to look for"),
        pytest.param("a", "a", "a", "edit.nothing", id="nothing to change"),
        pytest.param(
            "  if a:\n    b()\n", "if a:\nb()", "if a:\nc()", "edit.not_found", id="all indentation lost: a guess"
        ),
        pytest.param(
            "if a:\n  b()\n", "    if a:\n      b()", "c()", "edit.not_found", id="no room to move the new text left"
        ),
    ],
)
def test_an_ambiguous_or_missing_text_is_refused(before: str, old: str, new: str, key: str) -> None:
    with pytest.raises(ToolError) as refused:
        replace(before, old, new)
    assert refused.value.key == key


def test_all_places_on_request_exactly_or_but_for_blanks() -> None:
    assert replace("a b a", "a", "x", all=True) == "x b x"
    assert replace("aaa", "aa", "b", all=True) == "ba"
    assert replace("  a  \nb\n\ta \n", "a\n", "x\n", all=True) == "  x\nb\n\tx\n"


def test_whole_lines_begin_where_a_line_begins() -> None:
    assert replace("max = 1\nx = 1\n", "x = 1\n", "x = 2\n", whole_lines=True) == "max = 1\nx = 2\n"
    with pytest.raises(ToolError):
        replace("max = 1\n", "x = 1\n", "x = 2\n", whole_lines=True)


def test_an_ambiguous_edit_names_the_lines_and_the_way_out() -> None:
    with pytest.raises(ToolError) as refused:
        replace("x\n" * 20, "x", "y")
    assert "20 places (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)" in refused.value.for_model
    assert "all=true" in refused.value.for_model


def test_a_missing_text_is_reported_with_the_nearest_one() -> None:
    lines = [f"value_{number} = compute({number})" for number in range(200)]
    with pytest.raises(ToolError) as refused:
        replace("\n".join(lines), "value_150 = calculate(150)\nvalue_151 = 0", "x")
    assert "lines 148-155" in refused.value.for_model
    assert "value_150 = compute(150)" in refused.value.for_model
    assert "value_10 " not in refused.value.for_model


def test_an_edit_made_before_is_recognised() -> None:
    with pytest.raises(ToolError, match="already there"):
        replace("result = compute(2)\n", "result = compute(1)", "result = compute(2)")


LINES = st.lists(st.sampled_from(["a", "  b", "\tc", "", "d  e", "  a", "b "]), max_size=8).map("\n".join)


@given(before=LINES, old=LINES, new=LINES, all_places=st.booleans())
def test_any_edit_leaves_the_lines_around_it(before: str, old: str, new: str, all_places: bool) -> None:
    try:
        after = replace(before, old, new, all_places)
    except ToolError as refused:
        assert refused.for_model
        return
    assert after != before
    if before.count(old) == 1 and old:
        assert after == before.replace(old, new)


@given(before=st.text(max_size=60), start=st.integers(0, 60), length=st.integers(1, 20), new=st.text(max_size=20))
def test_an_exact_unique_text_is_replaced_to_the_letter(before: str, start: int, length: int, new: str) -> None:
    before, new = before.replace("\r", ""), new.replace("\r", "")
    old = before[start : start + length]
    places = [at for at in range(len(before)) if old and before.startswith(old, at)]
    if len(places) != 1 or old == new:
        return
    assert replace(before, old, new) == before[: places[0]] + new + before[places[0] + len(old) :]
