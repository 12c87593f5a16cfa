"""Rules cover what they say, and nothing that hides behind it."""

from pathlib import Path
from typing import Literal

import pytest

from duckflow.agent.permissions import Permission, Permissions, rule_for
from duckflow.errors import UsageError
from duckflow.state.question import FileImpact


def edits(*paths: str) -> tuple[FileImpact, ...]:
    return tuple(FileImpact(path=path, change="edit") for path in paths)


def test_a_rule_for_files_is_their_kind_in_their_folder() -> None:
    rule = rule_for("file_ops.write_file", edits("src/a.py", "src/b.py"), "")
    assert rule is not None
    assert rule == Permission(operation="file_ops.edits", pattern="src/*.py")
    assert rule.covers("file_ops.write_file", edits("src/c.py"), "")
    assert rule.covers("file_ops.edit_file", edits("src/c.py"), ""), "by whichever tool"
    assert not rule.covers("file_ops.write_file", edits("src/c.py", "setup.cfg"), "")
    for change in ("delete", "move"):
        impacts = (FileImpact(path="src/c.py", change=change),)
        assert not rule.covers(f"file_ops.{change}_file", impacts, "")
        given = rule_for(f"file_ops.{change}_file", impacts, "")
        assert given and not given.covers("file_ops.edit_file", edits("src/c.py"), "")
    assert not rule.covers("memory.remember", edits("src/c.py"), "")
    assert rule_for("file_ops.write_file", edits("src/a.py", "b.txt"), "") is None


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("pytest", "pytest"),
        ("npm test", "npm test"),
        ("npm run build --x", "npm run build --x"),
        ("poetry run pytest tests/a.py", "poetry run pytest tests/a.py"),
        ("git bisect start HEAD", "git bisect start"),
        ("git commit -m 'one'", "git commit"),
        ("timeout 30 pytest tests", "pytest tests"),
        ("env CI=1 nice -n 5 npm test", "npm test"),
    ],
)
def test_a_rule_for_a_command_is_its_program_and_what_it_is_to_do(command: str, pattern: str) -> None:
    rule = rule_for("shell.run", (), command)
    assert rule is not None and rule.pattern == pattern
    assert rule.covers("shell.run", (), command)


@pytest.mark.parametrize(
    "hidden",
    ["pytest; rm -rf ~", "pytest && evil", "pytest $(evil)", "pytest `evil`", "pytest > x", "pytest\nevil", "pytestx"]
    + ["env LD_PRELOAD=evil pytest"],
)
def test_nothing_hides_behind_an_allowed_beginning(hidden: str) -> None:
    rule = Permission(operation="shell.run", pattern="pytest")
    assert not rule.covers("shell.run", (), hidden)
    if hidden != "pytestx":
        assert rule_for("shell.run", (), hidden) is None


@pytest.mark.parametrize(
    "command",
    ["python -c 'x'", "python3 -m http.server", "node -e 1", "perl -e1", "sh x.sh", "bash -x", "npx thing", "make test"]
    + ["timeout 5 make", "env -i sh", "sudo ls", "/bin/sh x", "xargs rm", "docker run x", "env LD_PRELOAD=x pytest"],
)
def test_no_rule_is_made_where_it_would_allow_any_code(command: str) -> None:
    assert rule_for("shell.run", (), command) is None


def test_a_rule_for_files_stays_in_their_folder() -> None:
    rule = Permission(operation="file_ops.write_file", pattern="src/*.py")
    assert not rule.covers("file_ops.write_file", edits("src/deep/a.py"), "")
    assert not Permission(operation="x", pattern="*.py").covers("x", edits("src/a.py"), "")


def test_a_file_without_a_suffix_or_to_be_deleted_is_named_itself() -> None:
    def pattern(change: Literal["edit", "delete"], *paths: str) -> str:
        rule = rule_for("x", [FileImpact(path=path, change=change) for path in paths], "")
        return rule.pattern if rule else ""

    assert pattern("edit", "bin/tool") == "bin/tool"
    assert pattern("edit", ".bashrc") == ".bashrc"
    assert pattern("edit", "bin/a", "bin/b") == ""
    assert pattern("delete", "src/a.py") == "src/a.py"
    assert pattern("delete", "src/a.py", "src/b.py") == ""
    assert pattern("edit", "a[1]/x.py") == r"a\[1]/*.py"


def test_rules_for_good_survive_and_can_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "deep/permissions.json"
    permissions = Permissions(path)
    permissions.add(Permission(operation="shell.run", pattern="pytest"), for_good=True)
    permissions.add(Permission(operation="shell.run", pattern="make"), for_good=False)
    again = Permissions(path)
    assert again.allows("shell.run", (), "pytest") and not again.allows("shell.run", (), "make")
    assert again.remove(1).pattern == "pytest"
    assert not Permissions(path).allows("shell.run", (), "pytest")
    with pytest.raises(UsageError):
        again.remove(1)


def test_a_broken_file_allows_nothing(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('[{"operation": 1')
    assert Permissions(tmp_path / "p.json").always == []
