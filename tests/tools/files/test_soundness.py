"""A first check of a text before it is written."""

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
def test_a_text_that_does_not_parse_is_reported(path: str, text: str, expected: str) -> None:
    assert expected in fault_in(path, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [("a.py", "x = 1\n"), ("a.json", "[1]"), ("a.txt", "def area(:"), ("a.py", ""), ("Makefile", "all:\n")],
)
def test_a_sound_text_or_an_unknown_language_passes(path: str, text: str) -> None:
    assert fault_in(path, text) == ""


def test_a_definition_that_is_lost_is_reported() -> None:
    assert fault_in("a.py", "def area(side):\n    return side ** 2\n", STUB) == (
        "Box, Box.lid was in the file and is missing now"
    )


def test_a_function_that_is_still_a_stub_is_reported() -> None:
    text = "def area(side):\n    return side ** 2\n\n\nclass Box:\n    def lid(self):\n        ...\n"
    assert fault_in("a.py", text, STUB) == "Box.lid still does nothing"


def test_a_file_that_was_broken_before_is_not_compared() -> None:
    assert fault_in("a.py", "x = 1\n", "def area(:\n") == ""
