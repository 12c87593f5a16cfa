"""A repository is read without git: which files it tracks, and whether its settings make git run programs."""

import os
import subprocess
from pathlib import Path

import pytest

from duckflow.safety.repository import find_repository, git_runs_programs, tracked_files


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
        ("remote.origin.uploadpack", "evil"),
        ("remote.origin.promisor", "true"),
        ("extensions.partialClone", "origin"),
        ("core.gitProxy", "evil"),
        ("something.new", "evil"),
    ],
)
def test_settings_that_name_programs_are_found(tmp_path: Path, key: str, value: str) -> None:
    subprocess.run(["git", "config", key, value], cwd=repository(tmp_path), check=True)
    assert git_runs_programs(tmp_path)


def test_gits_own_file_watcher_is_harmless(tmp_path: Path) -> None:
    subprocess.run(["git", "config", "core.fsmonitor", "true"], cwd=repository(tmp_path), check=True)
    assert not git_runs_programs(tmp_path)


def test_a_hook_that_reading_triggers_is_found(tmp_path: Path) -> None:
    hook = repository(tmp_path) / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    assert git_runs_programs(tmp_path)


def test_a_repository_that_cannot_be_read_is_not_trusted(tmp_path: Path) -> None:
    (repository(tmp_path) / ".git/config").write_text("[broken")
    assert git_runs_programs(tmp_path)


ODD_NAMES = (
    "a.py",
    "deep/er/b.txt",
    "日本語.md",
    "with space",
    "new\nline",
    "x" * 200,
    "deep/" + "long/" * 40 + "end",
    "-n",
)
FORMS = {
    "version 2": ("update-index", "--index-version", "2"),
    "version 3": ("add", "--intent-to-add", "later.py"),
    "version 4": ("update-index", "--index-version", "4"),
    "split": ("update-index", "--split-index"),
}


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=duck", "-c", "user.email=duck@pond")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape")


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("digest", ["sha1", "sha256"])
def test_the_index_is_read_as_git_reads_it(tmp_path: Path, form: str, digest: str) -> None:
    subprocess.run(["git", "init", "-q", f"--object-format={digest}", str(tmp_path)], check=True)
    fill(tmp_path, *ODD_NAMES, "later.py", "untracked")
    git(tmp_path, "add", "--", *ODD_NAMES)
    git(tmp_path, *FORMS[form])
    fill(tmp_path, "after.py")
    git(tmp_path, "add", "after.py")
    repository = find_repository(tmp_path)
    assert repository
    assert set(repository.index()) == set(git(tmp_path, "ls-files", "-z").split("\0")) - {""}


def test_files_are_known_from_a_folder_below_and_in_a_linked_worktree(tmp_path: Path) -> None:
    main = repository(tmp_path / "main")
    fill(main, "deep/a.py", "b.py")
    git(main, "add", "-A")
    git(main, "commit", "-qm", "start")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    fill(main, "deep/new.py")
    assert tracked_files(main / "deep", ["a.py", "new.py"]) == {"a.py"}
    linked = tmp_path / "linked"
    assert tracked_files(linked, ["deep/a.py", "b.py", "c.py"]) == {"deep/a.py", "b.py"}
    git(main, "config", "core.pager", "evil")
    assert git_runs_programs(linked), "a linked worktree shares the settings of the main one"


@pytest.mark.parametrize("damage", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\7cut off", b"nonsense" * 100])
def test_an_index_that_cannot_be_read_tracks_nothing(tmp_path: Path, damage: bytes) -> None:
    (repository(tmp_path) / ".git/index").write_bytes(damage)
    assert tracked_files(tmp_path, ["a.py"]) == frozenset()


def test_a_pipe_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(repository(tmp_path) / ".git/index")
    assert tracked_files(tmp_path, ["a.py"]) == frozenset()


def test_settings_over_several_lines_and_on_the_line_of_their_section_are_read(tmp_path: Path) -> None:
    config = repository(tmp_path) / ".git/config"
    config.write_text('[user]\n\tname = a\\\n  b ; c\n[branch "x.y"] merge = z # w\n\n# [alias]\n;x = y\n')
    assert not git_runs_programs(tmp_path)
    config.write_text('[user] name = x\n[ALIAS] st = "!evil"\n')
    assert git_runs_programs(tmp_path)
