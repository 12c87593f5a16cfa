"""What is wrong with drafted tasks, in words a model can act on. Pure."""

from collections.abc import Sequence
from typing import Any

from duckflow.state.operation import Operation
from duckflow.state.plan import Task

NOT_TASKS = ("plan_tool.", "task_tool.", "task_loop.")
TALK = frozenset({"response", "duck_call", "exit"})


def usable_in_tasks(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Tasks do things; they do not talk and do not plan."""
    return tuple(one for one in operations if one.name not in TALK and not one.name.startswith(NOT_TASKS))


def task_problems(tasks: Sequence[Task], operations: Sequence[Operation]) -> list[str]:
    """Operations that do not exist, and arguments that are missing or unknown."""
    known = {operation.name: operation for operation in operations}
    problems: list[str] = []
    for number, task in enumerate(tasks, 1):
        operation = known.get(task.operation)
        if operation is None:
            problems.append(f"task {number}: there is no operation {task.operation!r}; use one of {', '.join(known)}")
        else:
            problems += [f"task {number} ({task.operation}): {problem}" for problem in _args(task, operation)]
    return problems


def _args(task: Task, operation: Operation) -> list[str]:
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    required = [name for name in operation.parameters.get("required", []) if name != operation.body]
    missing = [name for name in required if task.args.get(name) in (None, "")]
    unknown = [name for name in task.args if name not in properties]
    return [f"the argument {name} is missing" for name in missing] + [
        f"it takes no argument {name}; it takes {', '.join(properties)}" for name in unknown
    ]
