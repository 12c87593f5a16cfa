"""Operations in the shape that hooks expect, and back."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.extensions.tool_shapes import names_of, our_arguments, tool_input

FOLDER = Path("/work")
BLOCK = "<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE"


@pytest.mark.parametrize(
    ("operation", "args", "expected"),
    [
        ("shell.run", {"command": "ls", "timeout_seconds": 5}, {"command": "ls", "timeout": 5000}),
        ("file_ops.write_file", {"path": "a", "content": "x"}, {"file_path": "/work/a", "content": "x"}),
        ("file_ops.read_file", {"path": "/etc/hosts"}, {"file_path": "/etc/hosts"}),
        (
            "file_ops.edit_file",
            {"path": "a", "edits": BLOCK},
            {"file_path": "/work/a", "old_string": "one\n", "new_string": "two\n", "replace_all": False},
        ),
        ("mcp__pond__count", {"kind": "duck"}, {"kind": "duck"}),
    ],
)
def test_hooks_are_told_what_they_know(operation: str, args: dict[str, Any], expected: dict[str, Any]) -> None:
    assert tool_input(operation, args, FOLDER) == expected


def test_what_a_hook_hands_back_fits_again() -> None:
    for operation, args in (
        ("shell.run", {"command": "ls"}),
        ("file_ops.write_file", {"path": "a/b.txt", "content": "x"}),
        ("file_ops.edit_file", {"path": "a", "edits": [{"old": "1", "new": "2"}, {"old": "3", "new": "4"}]}),
        ("mcp__pond__count", {"kind": "duck"}),
    ):
        assert our_arguments(operation, args, tool_input(operation, args, FOLDER), FOLDER) == args


def test_a_matcher_may_know_either_name() -> None:
    assert names_of("shell.run") == ("Bash", "shell.run", "shell_run") and names_of("mcp__a__b") == ("mcp__a__b",)
