"""A first look at a text before it is written."""

import pytest

from duckflow.tools.files.soundness import fault_in

STUB = "def area(side):\n    pass\n\n\nclass Box:\n    def lid(self):\n        pass\n"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", "def area(:\n", "SyntaxError in line 1"),
        ("a.py", "x = 1\n\0", "null bytes"),
        ("data.json", '{"a" 1}', "Expecting ':' delimiter"),
        ("pyproject.toml", "a = = 1", "Invalid value"),
    ],
)
def test_what_does_not_parse_is_named(path: str, text: str, expected: str) -> None:
    assert expected in fault_in(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [("a.py", "x = 1\n"), ("a.json", "[1]"), ("a.txt", "def area(:"), ("a.py", ""), ("Makefile", "all:\n")],
)
def test_what_is_fine_or_unknown_passes(path: str, text: str) -> None:
    assert fault_in(path, text) == ""


def test_what_was_there_must_not_be_lost() -> None:
    assert fault_in("a.py", "def area(side):\n    return side ** 2\n", STUB) == (
        "Box, Box.lid was in the file and is missing now"
    )


def test_a_stub_that_is_still_one() -> None:
    text = "def area(side):\n    return side ** 2\n\n\nclass Box:\n    def lid(self):\n        ...\n"
    assert fault_in("a.py", text, STUB) == "Box.lid still does nothing"


def test_a_file_that_was_broken_before_is_no_measure() -> None:
    assert fault_in("a.py", "x = 1\n", "def area(:\n") == ""
