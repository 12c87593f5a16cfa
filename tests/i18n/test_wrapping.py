"""Lines end where they read well."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.i18n.width import NOT_FIRST, cells, fitted, line_ends


def wrapped(text: str, columns: int) -> list[str]:
    ends = [0, *line_ends(text, columns), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        ("a few short words", 10, ["a few ", "short ", "words"]),
        ("日本語の文章です。", 8, ["日本語の", "文章で", "す。"]),
        ("mixed日本語text", 9, ["mixed日本", "語text"]),
        ("「括弧」の前で（切らない）", 8, ["「括弧」", "の前で", "（切らな", "い）"]),
        ("averyveryverylongword", 8, ["averyver", "yverylon", "gword"]),
        ("e\u0301e\u0301e\u0301", 2, ["e\u0301e\u0301", "e\u0301"]),
    ],
)
def test_lines_end_at_spaces_and_between_japanese_characters(text: str, columns: int, lines: list[str]) -> None:
    assert wrapped(text, columns) == lines


@given(st.text(alphabet="ab 日本、。（）🦆e\u0301"), st.integers(4, 20))
def test_nothing_is_lost_and_every_line_fits(text: str, columns: int) -> None:
    lines = wrapped(text, columns)
    assert "".join(lines) == text
    assert all(sum(cells(character) for character in line.rstrip()) <= columns for line in lines)


@given(st.text(alphabet="ab日本語。🦆", max_size=40), st.integers(1, 30))
def test_a_cut_text_fits(text: str, columns: int) -> None:
    assert cells(fitted(text, columns)) <= columns


def test_a_closing_mark_never_begins_a_line() -> None:
    assert not any(line[0] in NOT_FIRST for line in wrapped("これは、とても。長い」文です。" * 5, 11))
