"""Rules cover what they say, and nothing that hides behind it."""

from pathlib import Path

import pytest

from duckflow.errors import UsageError
from duckflow.safety.permissions import Permission, Permissions, rule_for
from duckflow.state.question import FileImpact


def edits(*paths: str) -> tuple[FileImpact, ...]:
    return tuple(FileImpact(path=path, change="edit") for path in paths)


def test_a_rule_for_files_is_their_kind_in_their_folder() -> None:
    rule = rule_for("file_ops.write_file", edits("src/a.py", "src/b.py"), "")
    assert rule is not None
    assert rule == Permission(operation="file_ops.write_file", pattern="src/*.py")
    assert rule.covers("file_ops.write_file", edits("src/c.py"), "")
    assert not rule.covers("file_ops.write_file", edits("src/c.py", "setup.cfg"), "")
    assert not rule.covers("file_ops.delete_file", edits("src/c.py"), "")
    assert rule_for("file_ops.write_file", edits("src/a.py", "b.txt"), "") is None


@pytest.mark.parametrize(
    ("command", "pattern"), [("pytest", "pytest"), ("npm test", "npm test"), ("npm run build --x", "npm run")]
)
def test_a_rule_for_a_command_is_its_program_and_first_word(command: str, pattern: str) -> None:
    rule = rule_for("shell.run", (), command)
    assert rule is not None and rule.pattern == pattern
    assert rule.covers("shell.run", (), command)


@pytest.mark.parametrize(
    "hidden",
    ["pytest; rm -rf ~", "pytest && evil", "pytest $(evil)", "pytest `evil`", "pytest > x", "pytest\nevil", "pytestx"],
)
def test_nothing_hides_behind_an_allowed_beginning(hidden: str) -> None:
    rule = Permission(operation="shell.run", pattern="pytest")
    assert not rule.covers("shell.run", (), hidden)
    if hidden != "pytestx":
        assert rule_for("shell.run", (), hidden) is None


def test_rules_for_good_survive_and_can_be_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "deep/permissions.json"
    permissions = Permissions(path)
    permissions.add(Permission(operation="shell.run", pattern="pytest"), for_good=True)
    permissions.add(Permission(operation="shell.run", pattern="make"), for_good=False)
    again = Permissions(path)
    assert again.allows("shell.run", (), "pytest -q") and not again.allows("shell.run", (), "make")
    assert again.remove(1).pattern == "pytest"
    assert not Permissions(path).allows("shell.run", (), "pytest -q")
    with pytest.raises(UsageError):
        again.remove(1)


def test_a_broken_file_allows_nothing(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('[{"operation": 1')
    assert Permissions(tmp_path / "p.json").always == []
