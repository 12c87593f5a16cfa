"""What is wrong with drafted tasks, in words a model can act on. Pure."""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from duckflow.state.operation import Operation
from duckflow.state.plan import Task

NOT_TASKS = ("plan_tool.", "task_tool.", "task_loop.")
READ_OR_EDIT = frozenset({"file_ops.read_file", "file_ops.edit_file"})
FILE_NAME = re.compile(r"\.(?:py|js|ts|json|md|txt|html|css|toml|yaml|yml|sh|rs|go|c|h|java|rb)$", re.IGNORECASE)
FEW = frozenset({"file_ops.list_files", "file_ops.read_file", "file_ops.write_file", "shell.run"})
WRITE = "file_ops.write_file"
TALK = frozenset({"response", "duck_call", "exit"})


def usable_in_tasks(operations: Sequence[Operation], few: bool = False) -> tuple[Operation, ...]:
    """Tasks do things; they do not talk and do not plan. A small model does better with few kinds of them."""
    if few:
        return tuple(one for one in operations if one.name in FEW)
    return tuple(one for one in operations if one.name not in TALK and not one.name.startswith(NOT_TASKS))


def task_problems(
    tasks: Sequence[Task], operations: Sequence[Operation], there: Callable[[str], bool] = lambda path: True
) -> list[str]:
    """Operations that do not exist, arguments that are missing or unknown, and files that will not be there."""
    known = {operation.name: operation for operation in operations}
    problems: list[str] = []
    made: set[str] = set()
    for number, task in enumerate(tasks, 1):
        operation = known.get(task.operation)
        if operation is None:
            problems.append(f"task {number}: there is no operation {task.operation!r}; use one of {', '.join(known)}")
        else:
            wrong = _args(task, operation) or _place(task, made, there)
            problems += [f"task {number} ({task.operation}): {problem}" for problem in wrong]
        made |= {str(task.args[name]) for name in ("path", "target") if task.args.get(name)}
    return problems


def _place(task: Task, made: set[str], there: Callable[[str], bool]) -> list[str]:
    path = str(task.args.get("path", ""))
    if task.operation == WRITE and (path.startswith(("/", "~")) or PurePosixPath(path).name in ("", "..")):
        return [f"{path!r} is no file of this folder; give the file's name, relative to the folder"]
    if task.operation == "file_ops.make_folder" and FILE_NAME.search(path):
        return [f"{path} is the name of a file, not of a folder; file_ops.write_file makes its folders itself"]
    if task.operation in READ_OR_EDIT and path not in made and not there(path):
        return [f"there is no {path}, and no task before makes it; leave it out, or write the file first"]
    return []


def _args(task: Task, operation: Operation) -> list[str]:
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    required = [name for name in operation.parameters.get("required", []) if name != operation.body]
    missing = [name for name in required if task.args.get(name) in (None, "")]
    unknown = [name for name in task.args if name not in properties]
    return [f"the argument {name} is missing" for name in missing] + [
        f"it takes no argument {name}; it takes {', '.join(properties)}" for name in unknown
    ]
