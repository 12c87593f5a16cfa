"""The work folder as planning sees it: what can be learned about the project by looking."""

import json

from duckflow.errors import ToolError
from duckflow.safety.ignore_rules import ignored_in
from duckflow.safety.workspace import Workspace
from duckflow.state.plan import Step
from duckflow.tools.plan.ports import Folder

FACT_FILE = 16_000_000
"""The size in bytes of the largest file that is looked at. The tools cannot read a larger one either."""
NAMES = 60
TICK = 0.01
"""Seconds that a file system's clock may be behind."""
SHORT = 10_000
"""The number of bytes below which a file is read to see whether it holds more than blanks."""
EMPTY_BY_NATURE = frozenset(("__init__.py", "py.typed", ".gitkeep"))


class WorkFolder:
    """Looks at the work folder, and never fails because of what it finds there."""

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

    def changed_since(self, at: float) -> bool:
        is_ignored, folder_entry = ignored_in(self._workspace), self._workspace.stat(".")
        entries = self._workspace.walk(enter=lambda folder: not is_ignored(folder))
        return any(entry.modified > at - TICK and not is_ignored(entry) for entry in (folder_entry, *entries))

    def has_content(self, path: str) -> bool:
        try:
            entry = self._workspace.stat(path, follow=False)
        except (OSError, ToolError):
            return False
        if entry.kind != "file" or entry.links > 1:
            return False
        is_blank = entry.size < SHORT and not self.text(path).strip()
        return (entry.size > 0 and not is_blank) or entry.name in EMPTY_BY_NATURE


def command_for_tests(folder: Folder) -> str:
    """Returns the command that runs this project's tests, found by looking; nothing when there are none."""
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
    """Returns what is known of the project, in one line."""
    command = command_for_tests(folder)
    return f"its tests are run with: {command}" if command else ""


def listing(folder: Folder) -> str:
    names = folder.names()
    note = f" … and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return ", ".join(names[:NAMES]) + note


def _npm_test(package: str) -> bool:
    try:
        script = json.loads(package)["scripts"]["test"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    return isinstance(script, str) and "no test specified" not in script


def made_by(step: Step) -> list[str]:
    """Returns the files that the step's completed tasks have written."""
    return list(dict.fromkeys(path for task in step.tasks if task.status == "completed" for path in task.makes))
