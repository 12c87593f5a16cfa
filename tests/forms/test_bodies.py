"""Raw text outside the JSON: the file's content is told apart from its wrapping."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from duckflow.forms.bodies import Body, clean_body, take_blocks, without_thoughts

CODE = 'def greet():\n    print("hello")\n'
EDIT = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"
README = "# Title\n\nRun it:\n\n```sh\nmake run\n```\n\nThat is all.\n"


@pytest.mark.parametrize(
    "reply",
    [
        CODE,
        CODE.rstrip("\n"),
        f"\n\n{CODE}\n\n\n",
        f"```python\n{CODE}```",
        f"```\n{CODE}\n\n```\n",
        f"~~~py\n{CODE}~~~",
        f"````python\n{CODE}````",
        f"Here is the file:\n\n```python\n{CODE}```\n\nIt greets.",
        f"### greet.py\n```python\n{CODE}```",
        f"Install it with\n```sh\nmake\n```\nand this is the file:\n```python\n{CODE}```",
        f"<think>```not this```</think>\n```python\n{CODE}```",
        f"```python\n{CODE}```".replace("\n", "\r\n"),
    ],
)
def test_the_wrapping_comes_off(reply: str) -> None:
    assert clean_body(reply, "content") == Body(CODE)


def test_a_closing_fence_that_never_came_is_noticed() -> None:
    assert clean_body(f"```python\n{CODE}", "greet.py") == Body(CODE, complete=False)


def test_indentation_stays() -> None:
    assert clean_body("    indented\n\tmore", "content").text == "    indented\n\tmore\n"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (README, "README.md"),
        (README, "content"),
        (f"````markdown\n{README}````", "content"),
        (f"```markdown\n{README}```", "README.md"),
        (f"```markdown\n{README}```", "content"),
        (f"```\n{README}```", "docs/README.md"),
    ],
)
def test_a_document_keeps_its_own_fences(reply: str, kind: str) -> None:
    assert clean_body(reply, kind) == Body(README)


def test_a_document_with_bare_inner_fences_keeps_them() -> None:
    inner = "# Title\n\n```\nplain\n```\n\nend\n"
    assert clean_body(f"```md\n{inner}```", "content") == Body(inner)


def test_nothing_stays_nothing() -> None:
    assert clean_body("", "content") == Body("")
    assert clean_body("```python\n```", "content") == Body("")


@pytest.mark.parametrize(
    "reply",
    [
        EDIT,
        f"```\n{EDIT}```",
        f"I change one line:\n\n```diff\n{EDIT}```\nDone.",
        f"I change one line:\n{EDIT}\nDone.",
    ],
)
def test_an_edit_is_taken_out_of_the_talk_around_it(reply: str) -> None:
    assert clean_body(reply, "edits") == Body(EDIT)


def test_several_edits_stay_together() -> None:
    assert clean_body(f"{EDIT}\nand\n```\n{EDIT}```\n{EDIT}", "edits") == Body(EDIT * 3)


def test_half_an_edit_is_noticed() -> None:
    assert not clean_body(EDIT + "<<<<<<< SEARCH\nold\n", "edits").complete


def test_a_file_may_hold_conflict_markers() -> None:
    assert clean_body(f"```text\n{EDIT}```", "content") == Body(EDIT)
    assert clean_body(EDIT, "content") == Body(EDIT)


def test_blocks_after_the_decision_come_in_order() -> None:
    text = f"\n```python\n{CODE}```\nand\n{EDIT}\n{EDIT}\n~~~\nlast\n~~~\n"
    assert take_blocks(text) == (CODE, f"{EDIT}\n{EDIT}", "last\n")


def test_a_block_that_was_cut_is_not_taken() -> None:
    assert take_blocks(f"```python\n{CODE}```\n```python\nprint(") == (CODE,)
    assert take_blocks("<<<<<<< SEARCH\nold\n=======\nne") == ()


@given(some.text())
def test_any_text_is_a_body_with_one_newline_at_its_end(text: str) -> None:
    body = clean_body(text, "content").text
    assert body == "" or (body.endswith("\n") and not body.endswith("\n\n"))
    assert all(block == "" or block.endswith("\n") for block in take_blocks(text))


@given(some.lists(some.text("ab `~#\n", max_size=8), max_size=8).map("\n".join))
def test_a_longer_fence_carries_any_text(content: str) -> None:
    fence = "`" * 12
    assert clean_body(f"{fence}\n{content}\n{fence}", "notes.txt").text.rstrip("\n") == content.rstrip("\n")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>hm</think>yes", "yes"),
        ("<thinking>a</thinking>\n<think>b</think>\nyes", "\nyes"),
        ("so</think>\nyes", "yes"),
        ("<think>endless", ""),
        ('{"text": "</think>\\n"}', '{"text": "</think>\\n"}'),
        ("no thoughts", "no thoughts"),
    ],
)
def test_thoughts_are_not_the_answer(text: str, answer: str) -> None:
    assert without_thoughts(text) == answer
