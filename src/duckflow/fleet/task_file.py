"""Reads tasks as people write them: a TOML file, or a list with one task a line.

The caller says which of the two formats a text has. The format is never guessed: lines may come from strangers, and a
TOML file with a mistake must not be read as a list.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from duckflow.errors import UsageError
from duckflow.fleet.engine import AttemptState, TaskState
from duckflow.fleet.task import BRANCHES, Budgets, FleetTask, free_name, under_names
from duckflow.fleet.worktree import bring_clone, default_branch, is_address, repository_in
from duckflow.safety.git import Git
from duckflow.state.mode import Mode
from duckflow.whole_text import parse_json

TABLE = "task"
OWN = frozenset({"onto", "remote"})
"""Fields that Duckflow fills in itself and that a file must not set."""
LISTS = ("checks", "include", "may_touch", "after", "secrets")
VARIABLE = re.compile(r"\{(\w+)\}")
FILLED = ("name", "prompt", "repository", "after")
"""The only fields in which variables of the matrix are filled in, because the values may come from strangers."""
HEAD = re.compile(rf"""\s*(?:\[\s*)+["']?(?:{TABLE}|fleet|matrix)["']?\s*\]""")
FIELD = re.compile(rf"""(?:{"|".join((TABLE, *FleetTask.model_fields))})\s*=\s*["'\[{{\d]""")
NO_WORD = re.compile(r"[^\w]+")
LINE_MARK = re.compile(r"^(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
LONGEST_NAME = 32


class ListedTasks(NamedTuple):
    """The tasks that were read, and the budgets for all of them."""

    tasks: tuple[FleetTask, ...]
    budget_usd: float = 0.0
    """Dollars for all tasks together; 0 means no limit."""
    budget_tokens: int = 0


def read_tasks(
    text: str, source: str, defaults: Mapping[str, Any], folder: Path, listed: Mapping[str, Sequence[str]] | None = None
) -> ListedTasks:
    """Reads tasks from TOML. `defaults` are fields for all tasks; `listed` holds more variables of the matrix."""
    try:
        file_table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UsageError("fleet.file.toml", source=source, reason=str(problem)) from None
    tables, fleet, matrix = file_table.pop(TABLE, None), file_table.pop("fleet", {}), file_table.pop("matrix", {})
    parts = [fleet, matrix, *(cast("list[Any]", tables) if isinstance(tables, list) else ())]
    if len(parts) < 3 or not all(isinstance(part, dict) for part in parts):
        raise UsageError("fleet.file.no_tasks", source=source)
    cells = read_matrix(cast("dict[str, Any]", matrix) | dict(listed or {}), source)
    _require_known(file_table, FleetTask.model_fields.keys() - OWN - {"name", "prompt"}, source, "")
    fleet = cast("dict[str, Any]", fleet)
    _require_known(fleet, Budgets.model_fields, source, "[fleet]")
    try:
        budgets = Budgets.model_validate(fleet)
    except ValidationError as problem:
        raise _unfit_value(problem, source, "[fleet]") from None
    tables = cast("list[dict[str, Any]]", tables)
    rows = [fill_in({**defaults, **file_table, **row}, matrix_cell, source) for matrix_cell in cells for row in tables]
    tasks = [make_task(row, f"[[{TABLE}]] {number}", source, folder) for number, row in enumerate(rows, 1)]
    if any(task.mode is Mode.CONTAINED for task in tasks) and defaults.get("mode") != Mode.CONTAINED:
        # The file may come with a repository, and only the user may choose this mode.
        raise UsageError("fleet.file.contained", source=source)
    return ListedTasks(_named(tasks, source, len(tables)), **budgets.model_dump())


def read_matrix(matrix: Mapping[str, Any], source: str) -> list[dict[str, str]]:
    """Returns every combination of the values in the matrix; without a matrix, one empty combination."""
    for name, listed_values in matrix.items():
        texts = cast("list[Any]", listed_values) if isinstance(listed_values, list) else []
        if not texts or not all(isinstance(text, str) for text in texts):
            value_text = json.dumps(listed_values, default=str)
            raise UsageError("fleet.file.value", source=source, task="[matrix]", field=name, value=value_text)
    return [dict(zip(matrix, listed_values, strict=True)) for listed_values in product(*matrix.values())]


def fill_in(row: Mapping[str, Any], cell: Mapping[str, str], source: str) -> dict[str, Any]:
    """Fills in variables such as `{version}`. `{repository}` becomes the last part of its path or address."""
    short_values = {
        name: Path(value).name.removesuffix(".git") if name == "repository" else value for name, value in cell.items()
    }

    def fill(value: Any) -> Any:
        if isinstance(value, list):
            return [fill(part) for part in cast("list[Any]", value)]
        return (
            VARIABLE.sub(lambda match: short_values.get(match[1], match[0]), value) if isinstance(value, str) else value
        )

    for name, value in row.items():
        if name not in FILLED and any(variable in cell for variable in VARIABLE.findall(str(value))):
            raise UsageError("fleet.file.no_variable", source=source, field=name, fields=", ".join(FILLED))
    filled_row = {name: fill(value) if name in FILLED else value for name, value in row.items()}
    return filled_row | ({"repository": cell["repository"]} if "repository" in cell else {})


def read_lines(text: str, source: str, defaults: Mapping[str, Any], folder: Path) -> ListedTasks:
    """Reads one task a line. Skips empty lines and comments, and removes list marks such as `-`."""
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1)]
    lines = [(number, LINE_MARK.sub("", line)) for number, line in lines if line and not line.startswith("#")]
    if not lines:
        raise UsageError("fleet.file.no_tasks", source=source)
    if head_numbers := [number for number, line in lines if HEAD.match(line) or FIELD.match(line)]:
        raise UsageError("fleet.file.lines", source=source, line=head_numbers[0])
    return ListedTasks(
        _named(
            [make_task({**defaults, "prompt": line}, f":{number}", source, folder) for number, line in lines], source, 1
        )
    )


def make_task(row: Mapping[str, Any], where: str, source: str, folder: Path) -> FleetTask:
    _require_known(row, FleetTask.model_fields.keys() - OWN, source, where)
    prompt = row.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise UsageError("fleet.file.no_prompt", source=source, task=where)
    name = row.get("name") or _slug(prompt)
    location = str(row.get("repository", "."))
    remote = location if is_address(location) else ""
    repository = remote or str(folder / Path(location).expanduser())
    lists = {key: [row[key]] for key in LISTS if isinstance(row.get(key), str)}
    try:
        return FleetTask.model_validate({**row, **lists, "name": name, "repository": repository, "remote": remote})
    except ValidationError as problem:
        if problem.errors()[0]["loc"][0] == "name":
            raise UsageError("fleet.file.name", source=source, task=where, name=str(name)) from None
        raise _unfit_value(problem, source, str(name)) from None


def _unfit_value(problem: ValidationError, source: str, task: str) -> UsageError:
    first_error = problem.errors()[0]
    field_name = str(first_error["loc"][0])
    given_value = json.dumps(first_error["input"], ensure_ascii=False, default=str)
    choices = re.findall(r"'(.+?)'", first_error.get("ctx", {}).get("expected", ""))
    # A file cannot set the mode `contained`.
    known_choices = ", ".join(choice for choice in choices if choice != Mode.CONTAINED)
    is_number = first_error["type"] in ("float_type", "int_type")
    key = f"fleet.file.{'choice' if known_choices else 'number' if is_number else 'value'}"
    return UsageError(key, source=source, task=task, field=field_name, value=given_value, known=known_choices)


def _require_known(row: Mapping[str, Any], known: Iterable[str], source: str, where: str) -> None:
    for key in row:
        if key not in known:
            near_names = difflib.get_close_matches(key, known, n=1)
            message_key = "fleet.file.near" if near_names else "fleet.file.unknown"
            message_values = {"near": near_names[0]} if near_names else {"known": ", ".join(sorted(known))}
            raise UsageError(message_key, source=f"{source} {where}".rstrip(), field=key, **message_values)


def _slug(prompt: str) -> str:
    """Makes a task's name from the first words of its prompt; Japanese characters stay."""
    first_line = prompt.strip().split("\n")[0].casefold()
    return NO_WORD.sub("-", first_line).strip("-")[:LONGEST_NAME].strip("-") or TABLE


def _named(tasks: list[FleetTask], source: str, together: int) -> tuple[FleetTask, ...]:
    """Gives each task a unique name in the fleet, by adding a number where needed. `together` is the number of tasks in
    each cell of the matrix. A task that waits for another task waits for the one in its own cell."""
    taken_names: set[str] = set()
    named_tasks: list[FleetTask] = []
    for start_index in range(0, len(tasks), together):
        cell_tasks = tasks[start_index : start_index + together]
        names: list[str] = []
        for task in cell_tasks:
            names.append(free_name(task.name, taken_names))
            taken_names.add(names[-1])
        named_tasks += under_names(cell_tasks, names)
    _require_order(named_tasks, source)
    return tuple(named_tasks)


def _require_order(tasks: Sequence[FleetTask], source: str) -> None:
    """Checks that every needed task exists, and that no tasks wait for each other in a circle."""
    needed_tasks = {task.name: task.after for task in tasks}
    for task in tasks:
        if missing_names := [name for name in task.after if name not in needed_tasks]:
            raise UsageError("fleet.file.after", source=source, task=task.name, other=missing_names[0])
    try:
        tuple(TopologicalSorter(needed_tasks).static_order())
    except CycleError as problem:
        circle_text = " → ".join(cast("list[str]", problem.args[1]))
        raise UsageError("fleet.file.circle", source=source, tasks=circle_text) from None


async def settle_bases(
    tasks: Sequence[FleetTask], below: Path | None = None, clones: Path | None = None
) -> tuple[FleetTask, ...]:
    """Returns the tasks with their repository's top folder, the commit to start from, the branch to merge onto, and
    names whose branches are free. `clones` is the folder for repositories that are named by an address; `below` is the
    folder of repositories that are named by a relative path."""
    bases: dict[tuple[str, str], Base] = {}
    taken_names: set[str] = set()
    settled_tasks: list[FleetTask] = []
    names: list[str] = []
    for task in tasks:
        base_key = task.repository, task.base
        if base_key not in bases:
            bases[base_key] = await (
                _find_remote_base(task, clones) if task.remote and clones else _find_base(task, below)
            )
        top_folder, base_commit, onto_branch, used_names = bases[base_key]
        names.append(free_name(task.name, used_names, taken_names))
        taken_names.add(names[-1])
        changed_fields = {"base": base_commit, "onto": onto_branch} | (
            {} if below or task.remote else {"repository": top_folder}
        )
        settled_tasks.append(task.model_copy(update=changed_fields))
    return tuple(under_names(settled_tasks, names))


class Base(NamedTuple):
    """The state of a repository from which a task starts."""

    top: str
    commit: str
    onto: str
    used: frozenset[str]
    """Names of tasks that already have branches in the repository."""


async def _find_remote_base(task: FleetTask, clones: Path) -> Base:
    git = Git(await bring_clone(task.remote, clones))
    onto_branch = (
        task.base
        if task.base and await git.commit_of(f"refs/remotes/origin/{task.base}")
        else await default_branch(git)
    )
    commit = await git.commit_of(
        f"refs/remotes/origin/{onto_branch}" if onto_branch == task.base or not task.base else task.base
    )
    if not commit:
        raise UsageError("fleet.file.no_base", task=task.name, base=task.base, repository=task.remote)
    return Base(task.remote, commit, onto_branch, await _used_names(git))


async def _used_names(git: Git) -> frozenset[str]:
    refs = await git("for-each-ref", "--format=%(refname:lstrip=3)", f"refs/heads/{BRANCHES}")
    return frozenset(ref.rpartition("-")[0] for ref in refs.split("\n"))


async def _find_base(task: FleetTask, below: Path | None) -> Base:
    folder = repository_in(str(below or ""), task.repository)
    git = Git(folder)
    if not folder.is_dir() or (await git.ends("rev-parse", "--is-inside-work-tree")).output.strip() != "true":
        raise UsageError("fleet.file.no_repository", task=task.name, repository=str(folder))
    top_folder = await git("rev-parse", "--show-toplevel")
    if await git.commit_of(f"refs/heads/{BRANCHES.rstrip('/')}"):
        raise UsageError(
            "fleet.file.branch_in_the_way", task=task.name, repository=top_folder, branch=BRANCHES.rstrip("/")
        )
    commit = await git.commit_of(task.base or "HEAD")
    if not commit:
        key = "fleet.file.no_base" if task.base else "fleet.file.no_commit"
        raise UsageError(key, task=task.name, base=task.base, repository=top_folder)
    is_branch = task.base and await git.commit_of(f"refs/heads/{task.base}")
    onto_branch = task.base if is_branch else await git.checked_out()
    return Base(top_folder, commit, onto_branch, await _used_names(git))


NEEDED = ("instance_id", "repo", "base_commit", "problem_statement")


def read_instances(text: str, source: str, defaults: Mapping[str, Any], clones: Path) -> ListedTasks:
    """Reads SWE-bench instances, one a line, as tasks. `clones` is the folder with the repositories, as `owner__name`,
    `owner/name` or `name`."""
    tasks = [
        _task(line, number, source, defaults, clones) for number, line in enumerate(text.split("\n"), 1) if line.strip()
    ]
    if not tasks:
        raise UsageError("fleet.file.no_tasks", source=source)
    return ListedTasks(tuple(tasks))


def _task(line: str, number: int, source: str, defaults: Mapping[str, Any], clones: Path) -> FleetTask:
    line_reference = f":{number}"
    try:
        parsed_line = parse_json(line)
    except ValueError as problem:
        raise UsageError("fleet.file.json", source=source, task=line_reference, reason=str(problem)) from None
    instance = cast("dict[str, Any]", parsed_line) if isinstance(parsed_line, dict) else {}
    for field in NEEDED:
        if not isinstance(instance.get(field), str) or not instance[field].strip():
            raise UsageError(
                "fleet.file.value", source=source, task=line_reference, field=field, value=str(instance.get(field))
            )
    owner, _, name = str(instance["repo"]).partition("/")
    candidate_folders = [clones / f"{owner}__{name}", clones / owner / name, clones / name]
    clone_folder = next((path for path in candidate_folders if name and path.is_dir()), None)
    if clone_folder is None:
        raise UsageError("fleet.file.no_clone", source=source, repository=instance["repo"], folder=str(clones))
    row = {**defaults, "name": instance["instance_id"], "repository": str(clone_folder.resolve())}
    row |= {"base": instance["base_commit"], "prompt": instance["problem_statement"]}
    return make_task(row, line_reference, source, clones).model_copy(update={"instance": instance["instance_id"]})


async def predictions(states: Sequence[TaskState], attempts: Sequence[AttemptState]) -> list[dict[str, str]]:
    """Returns a row for each task: the patch of the picked attempt, or else of the last attempt that changed something.
    If the task has secrets, only attempts that passed are used, because others may not have been searched for the
    secrets."""
    rows: list[dict[str, str]] = []
    for task_state in states:
        task = task_state.task
        attempts_of_task = [
            attempt
            for attempt in attempts
            if attempt.task == task.name
            and (report := attempt.report)
            and report.commit
            and (report.passed or not task.secrets)
        ]
        chosen_attempt = next(
            (attempt for attempt in attempts_of_task if attempt.number == task_state.picked),
            attempts_of_task[-1] if attempts_of_task else None,
        )
        patch = ""
        if chosen_attempt and chosen_attempt.report:
            git = Git(Path(task.repository))
            commits = [task.base, chosen_attempt.report.commit]
            patch = (await git.ends("diff", "--no-ext-diff", "--no-textconv", "--binary", values=commits)).output
        model = f"duckflow:{task.model}" if task.model else "duckflow"
        rows.append({"instance_id": task.instance or task.name, "model_name_or_path": model, "model_patch": patch})
    return rows
