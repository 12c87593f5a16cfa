"""Edits as raw text."""

import pytest

from duckflow.errors import ToolError
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
