"""A repository may bring settings that run programs; then even looking is asked for."""

import subprocess
from pathlib import Path

import pytest

from duckflow.safety.git_programs import git_runs_programs


def repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def test_a_plain_repository_and_no_repository_run_nothing(tmp_path: Path) -> None:
    assert not git_runs_programs(tmp_path)
    inside = repository(tmp_path) / "deep/down"
    inside.mkdir(parents=True)
    assert not git_runs_programs(inside)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("core.fsmonitor", "./evil.sh"),
        ("core.hooksPath", "hooks"),
        ("core.pager", "evil"),
        ("alias.st", "!evil"),
        ("diff.external", "evil"),
        ("filter.x.clean", "evil"),
        ("diff.x.textconv", "evil"),
        ("include.path", "other"),
    ],
)
def test_settings_that_name_programs_are_found(tmp_path: Path, key: str, value: str) -> None:
    subprocess.run(["git", "config", key, value], cwd=repository(tmp_path), check=True)
    assert git_runs_programs(tmp_path)


def test_gits_own_file_watcher_is_harmless(tmp_path: Path) -> None:
    subprocess.run(["git", "config", "core.fsmonitor", "true"], cwd=repository(tmp_path), check=True)
    assert not git_runs_programs(tmp_path)


def test_a_hook_that_looking_triggers_is_found(tmp_path: Path) -> None:
    hook = repository(tmp_path) / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    assert git_runs_programs(tmp_path)


def test_a_repository_that_cannot_be_read_is_not_trusted(tmp_path: Path) -> None:
    (repository(tmp_path) / ".git/config").write_text("[broken")
    assert git_runs_programs(tmp_path)
