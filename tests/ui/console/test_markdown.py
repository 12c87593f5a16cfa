"""Replies in Markdown, as they are printed."""

import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from duckflow.i18n.width import cells
from duckflow.ui.console.markdown import Markdown
from duckflow.ui.console.printer import Printer


def printed(text: str, columns: int = 40, pieces: int = 1000, no_color: bool = False) -> list[str]:
    """Returns the lines on the screen without their styles; the text comes in pieces."""
    file = io.StringIO()
    console = Console(
        file=file, width=columns, highlight=False, force_terminal=True, color_system=None, no_color=no_color
    )
    markdown = Markdown(Printer(console))
    for start in range(0, len(text), pieces):
        markdown.add(text[start : start + pieces])
    markdown.end()
    return file.getvalue().split("\n")[:-1]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("# Title ##\nwords", ["Title", "words"]),
        ("**bold** *soft* ~~gone~~ `code`", ["bold soft gone code"]),
        ("これは**「重要」**です", ["これは「重要」です"]),
        ("snake_case_name and 2 * 3 * 4 and a_b_", ["snake_case_name and 2 * 3 * 4 and a_b_"]),
        ("__init__.py (__main__ too) in __two words__", ["__init__.py (__main__ too) in two words"]),
        ("_cache_ is gone, not _x_; _two words_", ["_cache_ is gone, not _x_; two words"]),
        ("natsort/*.py and tests/*.py, src/**/*.py", ["natsort/*.py and tests/*.py, src/**/*.py"]),
        ("*.py or *.md, (*.a|*.b), 2*3*4", ["*.py or *.md, (*.a|*.b), 2*3*4"]),
        ("test_*.py, *_test.py, x/* (y/*)", ["test_*.py, *_test.py, x/* (y/*)"]),
        ("*all of a/*.py* and **b/*.py**.", ["all of a/*.py and b/*.py."]),
        ("これは*重要*です。**1**.**次**", ["これは重要です。1.次"]),
        ("`a` ``b`c`` `open", ["a b`c `open"]),
        ("[bold]x[/bold] [x] \\*y\\*", ["[bold]x[/bold] [x] *y*"]),
        ("[here](https://a.b/c_(d)) <https://e.f>", ["here (https://a.b/c_(d)) https://e.f"]),
        ("- one\n  * two\n3. three", ["• one", "  • two", "3. three"]),
        ("> quoted\n>> twice", ["│ quoted", "│ │ twice"]),
        ("a\n\n\n\nb\n---", ["a", "", "b", "─" * 40]),
        ("```py\nx = '**no**'\n# no heading\n```\nafter", ["```py", "x = '**no**'", "# no heading", "```", "after"]),
        ("```\nnever closed", ["```", "never closed"]),
        ("\x1b[31mred\x07 \u202eevil", ["\\x1b[31mred\\x07 \\x202eevil"]),
    ],
)
def test_each_kind_of_line(text: str, lines: list[str]) -> None:
    assert printed(text) == lines
    assert printed(text, pieces=1) == lines


def test_columns_of_a_table_are_aligned_whatever_their_script() -> None:
    table = "| 名前 | n |\n|:--|--:|\n| 太郎 | 1 |\n| Ann \\| b | 22 |\nafter"
    assert printed(table) == ["名前    │  n", "────────┼───", "太郎    │  1", "Ann | b │ 22", "after"]


def test_a_wide_table_is_wrapped_in_its_cells_and_a_hopeless_one_becomes_a_list() -> None:
    wide = "| a | b |\n|---|---|\n| x | 長い説明がここに入ります |\n"
    lines = printed(wide, columns=20)
    assert lines[2:] == ["x │ 長い説明がここに", "  │ 入ります"]
    many = "|" + "name|" * 9 + "\n|" + "-|" * 9 + "\n|" + "some value|" * 9
    assert printed(many, columns=40)[0] == "name: some value"


def test_items_and_quotes_hang_when_they_are_wrapped() -> None:
    assert printed("1. one two three four", columns=20) == ["1. one two three", "   four"]
    assert printed("> one two three fours", columns=20) == ["│ one two three", "│ fours"]


def test_without_colour_code_keeps_its_ticks() -> None:
    assert printed("`code`", no_color=True) == ["`code`"]


@given(st.text(alphabet="ab*_`~[]()|#->\n 日本\\!"), st.integers(1, 9))
def test_how_the_text_is_cut_into_pieces_makes_no_difference(text: str, pieces: int) -> None:
    assert printed(text, pieces=pieces) == printed(text)


def test_the_unfinished_end_of_a_reply_is_known() -> None:
    markdown = Markdown(Printer(Console(file=io.StringIO(), width=40)))
    markdown.add("whole\npart")
    assert markdown.unfinished == "part"
    markdown.add(" of it\n| a |\n|---|\n")
    assert markdown.unfinished == "| a |\n|---|"
    assert cells(markdown.unfinished.split("\n")[0]) == 5


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "text",
    [
        *("*a ", "**a ", "_a ", "~~a ", "[a](", "![", "<http://", "`a ", "\\", "*a _b **c ~~d ", "***", "*`[("),
        *("> ", "  ", "|", "| |", "#", "~", "- ", "a?", "\t", "a\u0301", "語", '[a](b "', "[a]((b)"),
        "".join("`" * number + " " for number in range(190)),
    ],
)
@pytest.mark.parametrize("ending", [pytest.param("", marks=pytest.mark.slow), "`", "x"])
def test_a_reply_full_of_any_sign_is_printed_in_a_moment(text: str, ending: str) -> None:
    line = text * (20_000 // len(text)) + ending
    for shape in (line, f"# {line}", f"```{line}", f"|{line}|\n|-|-|\n|{line}|"):
        begin = time.process_time()
        printed(shape, columns=80, pieces=len(shape))
        assert time.process_time() - begin < 2


@pytest.mark.one_in(2)
@pytest.mark.parametrize("text", ["*a ", "a", "日本語", "| a | b |\n"])
def test_a_long_reply_in_small_pieces_costs_time_in_proportion(text: str) -> None:
    markdown = Markdown(Printer(Console(file=io.StringIO(), width=80, force_terminal=True)))
    spent: list[float] = []
    for _ in range(4):
        begin = time.process_time()
        for _ in range(1000):
            markdown.add((text * 40)[:40])
            assert len(markdown.unfinished) < 20_000
        spent.append(time.process_time() - begin)
    assert spent[-1] < 4 * spent[0] + 0.5
