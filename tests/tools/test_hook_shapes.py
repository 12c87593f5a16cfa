"""Tools as hooks of other assistants know them, and back."""

from pathlib import Path
from typing import Any

import pytest

from duckflow.state.action import all_names
from duckflow.tools.tool import AnyTool
from tests.tools.offer import packaged_tools
from tests.tools.test_contract import Stamp

FOLDER = Path("/work")
BLOCK = "<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE"


@pytest.fixture(scope="module")
def tools() -> dict[str, AnyTool]:
    return {tool.operation: tool for tool in (*packaged_tools(), Stamp(FOLDER))}


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
        ("stamps.put", {"file": "duck"}, {"file": "duck"}),
    ],
)
def test_hooks_get_arguments_under_the_names_they_know(
    tools: dict[str, AnyTool], operation: str, args: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert tools[operation].for_hooks(args, FOLDER) == expected


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("shell.run", {"command": "ls"}),
        ("file_ops.write_file", {"path": "a/b.txt", "content": "x"}),
        ("file_ops.edit_file", {"path": "a", "edits": [{"old": "1", "new": "2"}, {"old": "3", "new": "4"}]}),
        ("agent.run", {"task": "look", "kind": "explore"}),
        ("stamps.put", {"file": "duck"}),
    ],
)
def test_arguments_from_a_hook_fit_the_tool_again(
    tools: dict[str, AnyTool], operation: str, args: dict[str, Any]
) -> None:
    tool = tools[operation]
    assert tool.from_hooks(args, tool.for_hooks(args, FOLDER), FOLDER) == args


def test_a_hook_changes_only_the_arguments_that_the_tool_allows(tools: dict[str, AnyTool]) -> None:
    updated = {"file_path": "/work/b", "old_string": "3", "new_string": "4", "mark": "?"}
    args = {"path": "a", "old": "1", "new": "2"}
    assert tools["file_ops.edit_file"].from_hooks(args, updated, FOLDER) == {
        "path": "b",
        "edits": [{"old": "3", "new": "4"}],
    }
    assert tools["file_ops.read_file"].from_hooks({"path": "a"}, {"file_path": "/etc/hosts"}, FOLDER) == {
        "path": "/etc/hosts"
    }
    assert tools["stamps.put"].from_hooks({"file": "a"}, updated, FOLDER) == {"file": "a", **updated}


def test_hooks_hear_of_results_in_their_own_shape(tools: dict[str, AnyTool]) -> None:
    ran = tools["shell.run"].result_for_hooks("hi", {"command": "echo hi"}, FOLDER)
    assert ran == {"stdout": "hi", "stderr": "", "interrupted": False, "isImage": False}
    read = tools["file_ops.read_file"].result_for_hooks("text", {"path": "a"}, FOLDER)
    assert read == {"filePath": "/work/a", "success": True, "content": "text"}
    listed = tools["file_ops.list_files"].result_for_hooks("a", {"path": "a"}, FOLDER)
    assert listed == {"success": True, "content": "a"}


def test_a_matcher_may_know_either_name(tools: dict[str, AnyTool]) -> None:
    assert tools["shell.run"].names == tools["shell.run"].describe().names == ("Bash", "shell.run", "shell_run")
    assert all_names("mcp__a__b", "") == ("mcp__a__b",)


def test_an_edit_without_texts_is_shown_to_hooks_too(tools: dict[str, AnyTool]) -> None:
    shaped = tools["file_ops.edit_file"].for_hooks({"path": "a", "edits": []}, FOLDER)
    assert shaped == {"file_path": "/work/a", "old_string": "", "new_string": "", "replace_all": False}
    halves = tools["file_ops.edit_file"].from_hooks({"path": "a", "old": "1", "new": "2"}, {"old_string": "3"}, FOLDER)
    assert halves == {"path": "a", "old": "1", "new": "2"}
