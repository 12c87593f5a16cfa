"""Edits as raw text."""

import time

import pytest

from duckflow.errors import ToolError
from duckflow.tools.files.change import put_back
from duckflow.tools.files.edit_file import FORM, parse_blocks


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (FORM, [("the exact current lines\n", "the new lines\n")]),
        ("<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE", [("", "new\n")]),
        ("<<<<<<< SEARCH\nold\n=======\n>>>>>>> REPLACE", [("old\n", "")]),
        ("```\n<<<<<<< SEARCH\r\nold\r\n=======\r\nnew\r\n>>>>>>> REPLACE\r\n```", [("old\n", "new\n")]),
        ("<<<<< SEARCH\nTitle\n=======\nx\n=====\nnew\n>>>>> REPLACE", [("Title\n=======\nx\n", "new\n")]),
        ("a.py\n<<<<<<< SEARCH a.py\n  old\n\n=======\n  new\n>>>>>>> REPLACE", [("  old\n\n", "  new\n")]),
    ],
)
def test_blocks_are_read_with_any_text_around_them(text: str, pairs: list[tuple[str, str]]) -> None:
    assert parse_blocks(text) == pairs
    assert parse_blocks(f"First:\n{text}\nThen:\n{text}\n") == pairs * 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1",
        "<<<<<<< SEARCH\nold\n=======\nnew",
        "<<<<<<< SEARCH\nold\n>>>>>>> REPLACE",
        "<<<<<<< SEARCH\nold\n=======\nnew\n=======\nnewer\n>>>>>>> REPLACE",
        "<<<<<<< SEARCH\nold\n=======\nnew\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE",
    ],
)
def test_incomplete_or_unclear_blocks_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ToolError) as refused:
        parse_blocks(text)
    assert FORM in refused.value.for_model


@pytest.mark.parametrize(
    ("edited", "shown_text", "raw", "after"),
    [
        ("a•••B", "a•••b", "asecretb", "asecretB"),
        ("key=•••\nnew\n", "key=•••\n", "key=s3cret\n", "key=s3cret\nnew\n"),
        ("•••", "•••", "all of it", "all of it"),
        ("x\nA=•••\nB=•••", "A=•••\nB=•••", "A=one\nB=two", "x\nA=one\nB=two"),
        ("plain ••• text", "old ••• text", "old ••• text", "plain ••• text"),
    ],
)
def test_secrets_are_put_back_in_their_places(edited: str, shown_text: str, raw: str, after: str) -> None:
    assert put_back(edited, shown_text, raw) == after


@pytest.mark.parametrize(
    ("edited", "shown_text", "raw"),
    [
        ("a•••B•••c", "a•••b•••c", "aXbYbZc"),
        ("a••••••B", "a••••••b", "aXYZb"),
        ("gone", "a•••b", "asecretb"),
        ("a•••b•••", "a•••b", "asecretb"),
        ("a•••B", "a•••b", "anotherfile"),
        ("a•••B", "a•••b", "ase•••cretb"),
    ],
)
def test_nothing_is_changed_where_a_place_is_not_certain(edited: str, shown_text: str, raw: str) -> None:
    with pytest.raises(ToolError):
        put_back(edited, shown_text, raw)


def test_many_lines_with_secrets_that_look_alike_take_no_time() -> None:
    raw = "".join(f'x="sk-{number:05}"\n' for number in range(5000))
    shown_text, began = 'x="•••"\n' * 5000, time.process_time()
    assert put_back(f"{shown_text}end", shown_text, raw) == f"{raw}end"
    with pytest.raises(ToolError):
        put_back(shown_text, shown_text, f"{raw}other")
    assert time.process_time() - began < 1
