"""The test command is found by looking."""

from pathlib import Path

import pytest

from duckflow.safety.workspace import Workspace
from duckflow.tools.plan.folder import WorkFolder, command_for_tests, facts, listing

COMMANDS = [
    ({"conftest.py": ""}, "python -m pytest -q"),
    ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "python -m pytest -q"),
    ({"app.py": "", "tests/test_app.py": ""}, "python -m pytest -q"),
    ({"test_app.py": ""}, "python -m pytest -q"),
    ({"package.json": '{"scripts": {"test": "vitest"}}'}, "npm test"),
    ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, ""),
    ({"package.json": "{broken"}, ""),
    ({"Cargo.toml": ""}, "cargo test"),
    ({"go.mod": ""}, "go test ./..."),
    ({"Makefile": "all:\n\ntest: all\n\techo\n"}, "make test"),
    ({"README": ""}, ""),
]


@pytest.mark.parametrize(("files", "command"), COMMANDS)
def test_the_test_command_is_found_by_looking(tmp_path: Path, files: dict[str, str], command: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    folder = WorkFolder(Workspace(tmp_path))
    assert command_for_tests(folder) == command
    assert (command in facts(folder)) if command else facts(folder) == ""


def test_a_long_listing_is_cut(tmp_path: Path) -> None:
    for number in range(70):
        (tmp_path / f"f{number:02}").touch()
    (tmp_path / ".hidden").touch()
    assert listing(WorkFolder(Workspace(tmp_path))).endswith("f59 … and 10 more")
