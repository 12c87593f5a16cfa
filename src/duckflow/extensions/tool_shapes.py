"""Operations as hooks know them: by the names of the tools they were written for, with arguments of that shape."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from duckflow.errors import ToolError
from duckflow.state.action import wire_name

NAMES = {
    "shell.run": "Bash",
    "file_ops.read_file": "Read",
    "file_ops.write_file": "Write",
    "file_ops.edit_file": "Edit",
    "file_ops.find_files": "Glob",
    "file_ops.grep": "Grep",
    "file_ops.list_files": "LS",
    "web.fetch": "WebFetch",
    "web.search": "WebSearch",
    "skill.read": "Skill",
    "agent.run": "Task",
}
OURS_TO_THEIRS: dict[str, dict[str, str]] = {
    "shell.run": {"command": "command", "background": "run_in_background"},
    "file_ops.read_file": {"path": "file_path"},
    "file_ops.write_file": {"path": "file_path", "content": "content"},
    "file_ops.edit_file": {"path": "file_path"},
    "agent.run": {"task": "prompt", "kind": "subagent_type"},
}
EDITING = frozenset(("edits", "old", "new", "all"))
FILES = frozenset(("file_ops.read_file", "file_ops.write_file", "file_ops.edit_file"))


def names_of(operation: str) -> tuple[str, ...]:
    """Every name a matcher may know it by; the first is what the hook is told. `mcp__server__tool` stays as it is."""
    own = (operation, wire_name(operation))
    return tuple(dict.fromkeys((NAMES[operation], *own) if operation in NAMES else own))


def tool_input(operation: str, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The arguments as the hook expects them; paths of files are absolute."""
    theirs = OURS_TO_THEIRS.get(operation)
    if theirs is None:
        return dict(args)
    given = {
        theirs.get(name, name): value for name, value in args.items() if name not in ("edits", "old", "new", "all")
    }
    if operation in FILES and isinstance(path := given.get("file_path"), str):
        given["file_path"] = str(folder / path)
    if operation == "file_ops.edit_file":
        pairs = _pairs(args)
        given["old_string"], given["new_string"] = pairs[0] if pairs else ("", "")
        given["replace_all"] = bool(args.get("all"))
        if len(pairs) > 1:
            given["edits"] = [{"old_string": old, "new_string": new} for old, new in pairs]
    if operation == "shell.run" and isinstance(seconds := given.pop("timeout_seconds", None), int):
        given["timeout"] = seconds * 1000
    return given


def our_arguments(operation: str, args: Mapping[str, Any], updated: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What a hook has put in place of the arguments, as the operation takes it. What it leaves out stays."""
    theirs = OURS_TO_THEIRS.get(operation)
    if theirs is None:
        return {**args, **updated}
    ours = {name: updated[their] for name, their in theirs.items() if their in updated}
    if operation in FILES and isinstance(path := ours.get("path"), str):
        inside = Path(path).is_absolute() and Path(path).is_relative_to(folder)
        ours["path"] = str(Path(path).relative_to(folder)) if inside else path
    if operation != "file_ops.edit_file":
        return {**args, **ours}
    edits: Any = updated.get("edits") or [updated]
    changed = [{"old": one["old_string"], "new": one["new_string"]} for one in edits if "old_string" in one]
    kept = {name: value for name, value in args.items() if name not in ("edits", "old", "new")}
    return {**kept, **ours, "edits": changed} if changed else {**args, **ours}


def tool_response(operation: str, text: str, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    if operation == "shell.run":
        return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    path = {"filePath": str(folder / str(args["path"]))} if operation in FILES and "path" in args else {}
    return {**path, "success": True, "content": text}


def _pairs(args: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The old and new texts of an edit, in whichever form it came."""
    from duckflow.tools.files.edit_file import parse_blocks

    edits: Any = args.get("edits")
    if isinstance(edits, str) and edits.strip():
        try:
            return parse_blocks(edits)
        except ToolError:
            return [("", edits)]
    listed = cast("list[dict[str, Any]]", edits) if isinstance(edits, list) else [dict(args)]
    return [(str(one.get("old", "")), str(one.get("new", ""))) for one in listed]
