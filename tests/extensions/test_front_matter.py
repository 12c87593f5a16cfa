"""Heads of Markdown files as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duckflow.extensions.front_matter import split_front_matter


@pytest.mark.parametrize(
    ("head", "value"),
    [
        ("description: plain", "plain"),
        ("Description : spaced", "spaced"),
        ('description: "quoted: \\"so\\""', 'quoted: "so"'),
        ("description: 'it''s'", "it's"),
        ("description: Use when: asked (e.g. now)", "Use when: asked (e.g. now)"),
        ("description: >\n  two\n  lines\n\n  more", "two lines\nmore"),
        ("description: >-\n  folded", "folded"),
        ("description: |\n  kept\n    as it is", "kept\n  as it is"),
        ("description: goes on\n  in the next line", "goes on in the next line"),
        ("description:\n  below", "below"),
        ("description: [a, 'b']", "a, b"),
        ("description:\n  - a\n  - b", "a, b"),
        ("description:\n- a\n- b", "a, b"),
        ("description: cheap # as a remark", "cheap"),
        ("description: issue #12", "issue #12"),
        ('description: "never closed', "never closed"),
        ("metadata:\n  author: me\ndescription: after a table", "after a table"),
        ("# a remark\n\ndescription: after a remark", "after a remark"),
        ("description:", ""),
        ("description: 説明: 日本語", "説明: 日本語"),
    ],
)
def test_a_description_is_read_as_it_was_meant(head: str, value: str) -> None:
    for newline in ("\n", "\r\n"):
        text = f"---\nname: x\n{head}\n---\n\nbody\n".replace("\n", newline)
        read = split_front_matter(text)
        assert (read.values["name"], read.values["description"], read.body) == ("x", value, "body")


def test_text_without_a_head_is_body_and_strange_lines_are_named() -> None:
    assert split_front_matter("just text").body == "just text"
    assert split_front_matter("---\nname: x\nno end").strange == ("---",)
    read = split_front_matter("---\nname: x\n!! what\n---\nbody")
    assert read.strange == ("!! what",) and read.values == {"name": "x"} and read.body == "body"


@given(st.text(alphabet="-:>|\"'[]#ab \n\t{}!&*", max_size=60))
def test_no_text_breaks_the_reading(text: str) -> None:
    read = split_front_matter(f"---\n{text}\n---\nbody")
    assert all(isinstance(value, str) for value in read.values.values())
