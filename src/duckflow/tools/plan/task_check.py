"""The conditions that drafted tasks must meet, and the step that runs the project's tests."""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from duckflow.i18n.template import render
from duckflow.i18n.words import search
from duckflow.state.action import RUN_COMMAND, WRITE_FILE, Operation
from duckflow.state.plan import Plan, Step, Task, TaskList
from duckflow.tools.plan.criterion import FILE, named_in
from duckflow.tools.plan.folder import WorkFolder, command_for_tests

FILE_NAME = re.compile(r"\.(?:py|js|ts|json|md|txt|html|css|toml|yaml|yml|sh|rs|go|c|h|java|rb)$", re.IGNORECASE)

DOCUMENTS = frozenset((".md", ".rst", ".txt"))


def task_problems(
    tasks: Sequence[Task], operations: Sequence[Operation], exists: Callable[[str], bool] = lambda path: True
) -> list[str]:
    """Returns the problems: operations that do not exist, arguments that are missing or unknown, and files that will
    not exist."""
    operations_by_name = {operation.name: operation for operation in operations}
    problems: list[str] = []
    made_paths: set[str] = set()
    for number, task in enumerate(tasks, 1):
        operation = operations_by_name.get(task.operation)
        if operation is None:
            problems.append(
                f"task {number}: there is no operation {task.operation!r}; use one of {', '.join(operations_by_name)}"
            )
        else:
            mistakes = _args(task, operation) or _place(task, operation, made_paths, exists)
            problems += [f"task {number} ({task.operation}): {problem}" for problem in mistakes]
        made_paths |= {str(task.args[name]) for name in ("path", "target") if task.args.get(name)}
    return problems


def _place(task: Task, operation: Operation, made: set[str], exists: Callable[[str], bool]) -> list[str]:
    path = str(task.args.get("path", ""))
    match operation.expects:
        case "file" if path.startswith(("/", "~")) or PurePosixPath(path).name in ("", ".."):
            return [f"{path!r} is no file of this folder; give the file's name, relative to the folder"]
        case "folder" if FILE_NAME.search(path):
            return [f"{path} is the name of a file, not of a folder; {WRITE_FILE} makes its folders itself"]
        case "there" if path not in made and not exists(path):
            return [f"there is no {path}, and no task before makes it; leave it out, or write the file first"]
        case _:
            return []


def _args(task: Task, operation: Operation) -> list[str]:
    properties: dict[str, Any] = operation.parameters.get("properties", {})
    required_names = [name for name in operation.parameters.get("required", []) if name != operation.body]
    missing_names = [name for name in required_names if task.args.get(name) in (None, "")]
    unknown_names = [name for name in task.args if name not in properties]
    return [f"the argument {name} is missing" for name in missing_names] + [
        f"it takes no argument {name}; it takes {', '.join(properties)}" for name in unknown_names
    ]


def with_tests(plan: Plan, folder: WorkFolder, language: str) -> Plan:
    """Adds a step that runs the tests to the end of the draft, unless it has one, or only changes documents, which no
    test is about. The added step is marked, and the user can drop it."""
    command = command_for_tests(folder)
    if not command or all(map(_only_documents, plan.steps)):
        return plan
    plan = plan.model_copy(update={"steps": [_naming(step, command, language) for step in plan.steps]})
    if any(_runs_tests(step, language) for step in plan.steps):
        return plan
    name, description, success = render(language, "tests_step", command=command).split("\n")
    step = Step(
        name=name,
        description=description,
        success=success,
        depends_on=_last(plan.steps),
        added=True,
        task_list=TaskList(
            tasks=[Task(operation=RUN_COMMAND, args={"command": command}, reasoning=description, subject="command")]
        ),
    )
    return plan.model_copy(update={"steps": [*plan.steps, step]})


def still_with_tests(revised: Plan, before: Plan, changes: str, language: str) -> Plan:
    """Puts the step that runs the tests back into a revised plan that has lost it, unless the change was about tests or
    adds such a step."""
    added_step = next((step for step in before.steps if step.added), None)
    has_tests = any(
        added_step is None or step.step_id == added_step.step_id or _runs_tests(step, language)
        for step in revised.steps
    )
    if added_step is None or has_tests or search("plans.about_tests", changes, language):
        return revised
    step = added_step.copied()
    step.depends_on = _last(revised.steps)
    return revised.model_copy(update={"steps": [*revised.steps, step]})


def _only_documents(step: Step) -> bool:
    """Says whether the step names files, and all of them are documents."""
    names = re.findall(FILE, f"{step.name}. {step.description}. {step.success}")
    return bool(names) and all(PurePosixPath(name).suffix.lower() in DOCUMENTS for name in names)


def _runs_tests(step: Step, language: str) -> bool:
    text = f"{step.name}. {step.description}. {step.success}"
    return search("plans.runs_tests", text, language) is not None


def _naming(step: Step, command: str, language: str) -> Step:
    """Adds the command to a criterion that only says the tests pass, so that the criterion can be checked."""
    runs_tests = search("plans.runs_tests", step.success, language)
    needs_command = runs_tests and not any(thing.kind == "command" for thing in named_in(step.success))
    return step.model_copy(update={"success": f"{step.success} (`{command}`)"}) if needs_command else step


def _last(steps: Sequence[Step]) -> list[str]:
    """Returns the steps that no other step waits for: when these steps are completed, all steps are."""
    needed_ids = {need for step in steps for need in step.depends_on}
    return [step.step_id for step in steps if step.step_id not in needed_ids]
