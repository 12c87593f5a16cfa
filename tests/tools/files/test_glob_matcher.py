"""Globs over paths."""

import time

import pytest

from duckflow.errors import ToolError
from duckflow.safety.ignore_rules import glob_matcher


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("*.py", ["a.py", "src/deep/a.py"], ["a.pyc", "a.py/b"]),
        ("src/*.py", ["src/a.py"], ["src/deep/a.py", "other/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py"]),
        ("**/test_*", ["test_a", "x/test_a.py"], ["a_test"]),
        ("src/**", ["src/a", "src/x/y"], ["a"]),
        ("./a?.txt", ["a1.txt"], ["a/.txt", "a12.txt"]),
        ("[ab]*.{js,ts}", ["a.js", "x/bc.ts"], ["c.js", "a.css"]),
        ("[!a].txt", ["b.txt"], ["a.txt", "/.txt"]),
        ("[]x].txt", ["].txt", "x.txt"], ["a.txt"]),
        ("a[b", ["a[b"], ["ab"]),
        ("a{b", ["a{b"], ["ab"]),
        (r"\*.py", ["*.py"], ["a.py"]),
        ("日本*.txt", ["日本語.txt"], ["日.txt"]),
        ("a.b+c", ["a.b+c"], ["aXb+c", "a.bbc"]),
    ],
)
def test_globs_match_these_paths(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    matches = glob_matcher(pattern)
    assert [path for path in fits + fits_not if matches(path)] == fits


def test_an_invalid_glob_is_reported() -> None:
    with pytest.raises(ToolError, match="bad_glob"):
        glob_matcher("[z-a]")


def test_many_stars_on_a_long_name_take_no_time() -> None:
    matches, began = glob_matcher("a" + "*a" * 100 + "b"), time.process_time()
    assert not matches("a" * 10_000)
    assert time.process_time() - began < 1
