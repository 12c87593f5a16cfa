"""The work folder as planning sees it: facts about the project that can be read from its files."""

import json

from duckflow.errors import ToolError
from duckflow.safety.ignore_rules import ignored_in
from duckflow.safety.secret_diffs import leads_into_git, leads_to_secret
from duckflow.safety.secrets import mask
from duckflow.safety.workspace import Workspace
from duckflow.state.plan import Step

FACT_FILE = 16_000_000
"""The size in bytes of the largest file that is read for facts. The tools cannot read a larger file either."""
NAMES = 60
TICK = 0.01
"""Seconds that a file system's clock may be behind."""
SHORT = 10_000
"""The number of bytes below which a file is read to see whether it holds more than blanks."""
EMPTY_BY_NATURE = frozenset(("__init__.py", "py.typed", ".gitkeep"))


class WorkFolder:
    """Looks at the work folder. Broken or unreadable files never make it fail."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def names(self) -> list[str]:
        try:
            return sorted(entry.name for entry in self._workspace.root.iterdir() if not entry.name.startswith("."))
        except OSError:
            return []

    def text(self, path: str) -> str:
        """Returns the text of a file. It is empty for secret files and for git's own files, so that nothing that is
        told about a file, such as whether a step is proved, tells what stands in a secret one. Keys in other files are
        hidden."""
        if leads_to_secret(path, self._workspace.root) or leads_into_git(path, self._workspace.root):
            return ""
        return mask(self._any_text(path)).text

    def exists(self, path: str) -> bool:
        try:
            self._workspace.stat(path)
        except (OSError, ToolError):
            return False
        return True

    def is_folder(self, path: str) -> bool:
        try:
            return self._workspace.stat(path).kind == "folder"
        except (OSError, ToolError):
            return False

    def changed_since(self, at: float) -> bool:
        """Says whether a file was made, deleted or written since the time `at`. Caches and files that git ignores do
        not count."""
        is_ignored, folder_entry = ignored_in(self._workspace), self._workspace.stat(".")
        entries = self._workspace.walk(enter=lambda folder: not is_ignored(folder))
        return any(entry.modified > at - TICK and not is_ignored(entry) for entry in (folder_entry, *entries))

    def was_written(self, path: str, at: float) -> bool:
        """Says whether a file was made or written since the time `at`."""
        try:
            return self._workspace.stat(path).modified > at - TICK
        except (OSError, ToolError):
            return False

    def has_content(self, path: str) -> bool:
        """Says whether the path is a file (no link) that has content, or a kind of file that is always empty."""
        try:
            entry = self._workspace.stat(path, follow=False)
        except (OSError, ToolError):
            return False
        if entry.kind != "file" or entry.links > 1:
            return False
        is_blank = entry.size < SHORT and not self._any_text(path).strip()
        return (entry.size > 0 and not is_blank) or entry.name in EMPTY_BY_NATURE

    def _any_text(self, path: str) -> str:
        try:
            return self._workspace.read_bytes(path, FACT_FILE).decode("utf-8", "replace")
        except (OSError, ToolError):
            return ""


def command_for_tests(folder: WorkFolder) -> str:
    """Returns the command that runs this project's tests, guessed from its files; empty if there are no tests."""
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


def facts(folder: WorkFolder) -> str:
    """Describes the project in one line by the facts that its files show."""
    command = command_for_tests(folder)
    return f"its tests are run with: {command}" if command else ""


def listing(folder: WorkFolder) -> str:
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
