"""Signatures: texts that count as the same, and texts that do not."""

import pytest

from duckflow.pacemaker.signatures import (
    call_signature,
    error_signature,
    is_empty,
    name_call,
    never_ran,
    result_signature,
    says_nothing_found,
    strip_changing,
)

LONG = "a line of output\n" * 500


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("finished at 12:01:59.123", "finished at 07:44:00"),
        ("3 passed in 0.12s", "3 passed in 14.03s"),
        ("took 5 ms", "took 812 ms"),
        ("waited 2 seconds", "waited 40 seconds"),
        ("<Foo object at 0x7f00aa11>", "<Foo object at 0x7fffbb22cc>"),
        ("wrote /tmp/tmpab12cd34/out.txt", "wrote /tmp/tmpzz99yy88/out.txt"),
        ("/tmp/pytest-of-me/pytest-3/x", "/tmp/pytest-of-me/pytest-41/x"),
        ("/var/folders/k2/abc/T/one", "/var/folders/k2/abc/T/two"),
    ],
)
def test_parts_that_change_by_themselves_do_not_count(one: str, other: str) -> None:
    assert strip_changing(one) == strip_changing(other)
    assert result_signature(one, printed=True) == result_signature(other, printed=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 passed in 0.12s", "4 passed in 0.12s"),
        ("app.py:12:34: unused", "app.py:12:35: unused"),
        ("version 1.2", "version 1.3"),
        ("/tmp/plan.txt", "/tmp/notes.txt"),
        ("10 items", "11 items"),
    ],
)
def test_differences_that_a_person_would_see_count(one: str, other: str) -> None:
    assert result_signature(one, printed=True) != result_signature(other, printed=True)


def test_the_text_of_a_file_is_compared_as_it_is() -> None:
    assert result_signature("sleep 1s", printed=False) != result_signature("sleep 2s", printed=False)


@pytest.mark.parametrize("changed", ["x" + LONG, LONG + "x", LONG + "one line more\n"])
def test_a_long_result_is_compared_by_its_head_its_tail_and_its_length(changed: str) -> None:
    assert result_signature(LONG, printed=True) != result_signature(changed, printed=True)


def test_the_order_of_arguments_does_not_matter() -> None:
    assert call_signature("grep", {"a": 1, "b": [2]}) == call_signature("grep", {"b": [2], "a": 1})
    assert call_signature("grep", {"a": 1}) != call_signature("find", {"a": 1})
    assert call_signature("grep", {"a": 1}) != call_signature("grep", {"a": 2})


def test_arguments_that_are_not_json_have_a_signature_too() -> None:
    assert call_signature("run", {"x": {1, 2}}) == call_signature("run", {"x": {1, 2}})
    circle: dict[str, object] = {}
    circle["again"] = circle
    assert call_signature("run", circle) == call_signature("run", circle)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file 'a.py' not found", "file 'b.py' not found"),
        ("sh: line 12: foo: command not found", "sh: line 90: foo: command not found"),
        ("Error:\n  cannot parse line 3", "Error:\n  cannot parse line 8"),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'",
            'Traceback (most recent call last):\n  File "b.py", line 7\n  File "c.py", line 2\nKeyError: \'y\'',
        ),
        ("<output>\nno space left\n</output>", "no space left"),
    ],
)
def test_errors_of_the_same_kind_have_the_same_signature(one: str, other: str) -> None:
    assert error_signature(one) == error_signature(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file not found", "permission denied"),
        ("Error:\n  cannot parse", "Error:\n  cannot read"),
        (
            "Traceback (most recent call last):\n  x\nKeyError: 1",
            "Traceback (most recent call last):\n  x\nTypeError: 1",
        ),
    ],
)
def test_errors_of_different_kinds_have_different_signatures(one: str, other: str) -> None:
    assert error_signature(one) != error_signature(other)


@pytest.mark.parametrize("text", ["", "   \n", "[]", "{}", "<output>\n</output>", "---"])
def test_texts_without_words_are_empty(text: str) -> None:
    assert is_empty(text)


@pytest.mark.parametrize("text", ["0", "<a b='c'>", "あ", "-" * 200])
def test_texts_with_words_are_not_empty(text: str) -> None:
    assert not is_empty(text)


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        ("No matches found for x", True),
        ("grep: nothing found", True),
        ("一致する行は見つかりませんでした", True),
        ("Found 10 matches for x", False),
        ("Found 0 matches for x", True),
        ("x not found " * 40, False),
    ],
)
def test_a_search_that_says_it_found_nothing(text: str, nothing: bool) -> None:
    assert says_nothing_found(text) is nothing


def test_a_command_that_never_ran_is_not_one_that_failed() -> None:
    assert never_ran("sh: foo: command not found")
    assert not never_ran("1 failed, 3 passed")


def test_a_call_is_named_by_its_operation_and_first_argument() -> None:
    assert name_call("file_ops.grep", {"pattern": "def  main\n", "path": "."}) == "file_ops.grep def main"
    assert name_call("exit", {}) == "exit"
    assert len(name_call("run", "x" * 1000)) < 100
