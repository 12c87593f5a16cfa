"""SWE-bench without its harness: instances become tasks, and what comes of them becomes predictions."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from duckflow.errors import UsageError
from duckflow.fleet.engine import AttemptState, TaskState
from duckflow.fleet.task import FleetTask
from duckflow.fleet.task_file import ListedTasks, make_task
from duckflow.safety.git import Git

NEEDED = ("instance_id", "repo", "base_commit", "problem_statement")


def read_instances(text: str, source: str, given: Mapping[str, Any], clones: Path) -> ListedTasks:
    """A task for each line. `clones`: the folder in which the repositories lie, as `owner__name`, `owner/name` or
    `name`."""
    tasks = [
        _task(line, number, source, given, clones) for number, line in enumerate(text.split("\n"), 1) if line.strip()
    ]
    if not tasks:
        raise UsageError("fleet.file.no_tasks", source=source)
    return ListedTasks(tuple(tasks))


def _task(line: str, number: int, source: str, given: Mapping[str, Any], clones: Path) -> FleetTask:
    where = f":{number}"
    try:
        told: Any = json.loads(line)
    except ValueError as problem:
        raise UsageError("fleet.file.json", source=source, task=where, reason=str(problem)) from None
    instance = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    for field in NEEDED:
        if not isinstance(instance.get(field), str) or not instance[field].strip():
            raise UsageError("fleet.file.value", source=source, task=where, field=field, value=str(instance.get(field)))
    owner, _, name = str(instance["repo"]).partition("/")
    places = [clones / f"{owner}__{name}", clones / owner / name, clones / name]
    place = next((path for path in places if name and path.is_dir()), None)
    if place is None:
        raise UsageError("fleet.file.no_clone", source=source, repository=instance["repo"], folder=str(clones))
    row = {**given, "name": instance["instance_id"], "repository": str(place.resolve())}
    row |= {"base": instance["base_commit"], "prompt": instance["problem_statement"]}
    return make_task(row, where, source, clones).model_copy(update={"instance": instance["instance_id"]})


async def predictions(states: Sequence[TaskState], attempts: Sequence[AttemptState]) -> list[dict[str, str]]:
    """One for each task: the patch of the attempt that was picked, else of the last one that changed something."""
    rows: list[dict[str, str]] = []
    for state in states:
        task = state.task
        own = [one for one in attempts if one.task == task.name and one.report and one.report.commit]
        chosen = next((one for one in own if one.number == state.picked), own[-1] if own else None)
        patch = ""
        if chosen and chosen.report:
            git = Git(Path(task.repository))
            diff = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--binary", task.base, chosen.report.commit)
            patch = (await git.ends(*diff)).output
        model = f"duckflow:{task.model}" if task.model else "duckflow"
        rows.append({"instance_id": task.instance or task.name, "model_name_or_path": model, "model_patch": patch})
    return rows
