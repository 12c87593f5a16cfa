"""The work folder: what looking at it tells of the project, and whether a step is done."""

import json

from duckflow.errors import ToolError
from duckflow.safety.workspace import Workspace
from duckflow.state.agent import AgentState
from duckflow.state.evidence import Named, named_in
from duckflow.state.plan import Step
from duckflow.tools.plan.ports import Folder

FACT_FILE = 200_000
NAMES = 60


class WorkFolder:
    """Looks, and never stumbles over what it finds."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def names(self) -> list[str]:
        try:
            return sorted(entry.name for entry in self._workspace.root.iterdir() if not entry.name.startswith("."))
        except OSError:
            return []

    def text(self, path: str) -> str:
        try:
            return self._workspace.read_bytes(path, FACT_FILE).decode("utf-8", "replace")
        except (OSError, ToolError):
            return ""

    def exists(self, path: str) -> bool:
        try:
            self._workspace.stat(path)
        except (OSError, ToolError):
            return False
        return True


def command_for_tests(folder: Folder) -> str:
    """How this project's tests are run, found by looking; nothing when it has none."""
    names = set(folder.names())
    if names & {"pytest.ini", "conftest.py"} or "[tool.pytest" in folder.text("pyproject.toml"):
        return "python -m pytest -q"
    if names & {"tests", "test"} and any(name.endswith(".py") or name == "pyproject.toml" for name in names):
        return "python -m pytest -q"
    if any(name.startswith("test_") and name.endswith(".py") for name in names):
        return "python -m pytest -q"
    if _npm_test(folder.text("package.json")):
        return "npm test"
    if "Cargo.toml" in names:
        return "cargo test"
    if "go.mod" in names:
        return "go test ./..."
    if any(line.startswith("test:") for line in folder.text("Makefile").splitlines()):
        return "make test"
    return ""


def facts(folder: Folder) -> str:
    """What is known of the project, in one line."""
    command = command_for_tests(folder)
    return f"its tests are run with: {command}" if command else ""


def listing(folder: Folder) -> str:
    names = folder.names()
    more = f" … and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(names[:NAMES]) + more


def _npm_test(package: str) -> bool:
    try:
        script = json.loads(package)["scripts"]["test"]
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(script, str) and "no test specified" not in script


SHOWN_FILES = 6


def proof(state: AgentState, step: Step, folder: Folder) -> str:
    """The recorded result from after the last change that shows it; nothing when there is none.

    What its own criterion names must be there, and have ended well: then the exit code of something else shows nothing.
    Where it names nothing, a command counts with its exit code, and where tasks were run only one of the step's own;
    without one, the files the step was to make must be there. When the last command failed, nothing is shown."""
    last = state.evidence[-1] if state.evidence else None
    if last and not last.ok:
        return ""
    named = named_in(step.success)
    if named.files or named.commands:
        return _shown(named, state, folder)
    if last and (not step.tasks or any(task.effect == "run" for task in step.tasks)):
        return last.text
    files = made_by(step) or [path for path in state.files_changed if path in f"{step.description} {step.success}"]
    if not files or not all(folder.exists(path) for path in files):
        return ""
    return f"there: {', '.join(files[:SHOWN_FILES])}"


def _shown(named: Named, state: AgentState, folder: Folder) -> str:
    """What shows everything that is named; nothing when one of it is not shown."""
    ran: list[str] = []
    for command in named.commands:
        found = next((one.text for one in reversed(state.evidence) if one.ok and _is_part(command, one.text)), "")
        ran += [found] if found else []
    if len(ran) < len(named.commands) or not all(folder.exists(path) for path in named.files):
        return ""
    there = [f"there: {', '.join(named.files[:SHOWN_FILES])}"] if named.files else []
    return "; ".join([*there, *dict.fromkeys(ran)])


def _is_part(command: str, ran: str) -> bool:
    """Whether all words of a command stand in what was run, in their order."""
    words = iter(ran.partition(": exit code")[0].split())
    return all(word in words for word in command.split())


def made_by(step: Step) -> list[str]:
    """The files that the step's completed tasks have written."""
    return list(dict.fromkeys(path for task in step.tasks if task.status == "completed" for path in task.makes))
