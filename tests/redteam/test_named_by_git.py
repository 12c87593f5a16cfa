"""A model that writes a file which git's settings name: the next git of the user would run it, outside the sandbox."""

import shutil
import subprocess
from pathlib import Path

import pytest

from duckflow.events.types import Noticed
from duckflow.safety.risk import runs_later
from duckflow.safety.started_files import git_runs
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.brought import TRUST

END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
NAMED = [
    ("core.hooksPath", "tools/hooks", "tools/hooks/pre-commit"),
    ("core.hooksPath", ".", "post-checkout"),
    ("core.hooksPath", "scripts/", "scripts/lib/common.py"),
    ("include.path", "../team.settings", "team.settings"),
    ("include.path", "../conf/git.inc", "conf/git.inc"),
    ("includeIf.gitdir:**.path", "../more", "more"),
    ("filter.x.clean", "./scripts/clean.py", "scripts/clean.py"),
    ("filter.x.smudge", "python3 scripts/smudge.py %f", "scripts/smudge.py"),
    ("diff.x.textconv", "sh -c './tools/conv \"$1\"' -", "tools/conv"),
    ("core.fsmonitor", "tools/monitor", "tools/monitor"),
    ("core.sshCommand", "env A=b tools/ssh", "tools/ssh"),
    ("alias.st", "!tools/st", "tools/st"),
    ("core.editor", "tools/ed", "tools/ed"),
    ("gpg.program", "./tools/gpg", "tools/gpg"),
    ("merge.x.driver", "python3 tools/m.py %O %A %B", "tools/m.py"),
    ("credential.helper", "!./tools/login", "tools/login"),
    ("core.attributesFile", "attributes", "attributes"),
]
PLAIN = [
    ("core.hooksPath", "tools/hooks", "tools/build.txt"),
    ("core.hooksPath", ".", "src/app.txt"),
    ("alias.st", "status app.txt", "app.txt"),
    ("remote.origin.url", "app.txt", "app.txt"),
    ("user.name", "app.txt", "app.txt"),
    ("filter.x.clean", "git-lfs clean -- %f", "src/clean.txt"),
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    return work


def configure(work: Path, name: str, value: str, where: str = "--local") -> None:
    subprocess.run(["git", "config", where, name, value], cwd=work, check=True)


async def gates(top: Path, mode: str, operation: str, **args: str) -> int:
    story = Story(top, [decide(act(operation, **args), next_step="continue"), END, END], mode=mode)
    story.answers = [TRUST]
    await story.tell("go on")
    await story.close()
    return len(story.gates())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", ["auto-edit", "auto"])
@pytest.mark.parametrize(("name", "value", "path"), NAMED)
async def test_a_file_that_git_runs_is_asked_about(
    tmp_path: Path, work: Path, name: str, value: str, path: str, mode: str
) -> None:
    configure(work, name, value)
    assert await gates(tmp_path, mode, "file_ops.write_file", path=path, content="touch hit\n") == 1
    assert not (work / path).exists()


@pytest.mark.parametrize(("name", "value", "path"), NAMED[:4])
async def test_a_command_that_writes_it_is_asked_about(
    tmp_path: Path, work: Path, name: str, value: str, path: str
) -> None:
    configure(work, name, value)
    (work / path).parent.mkdir(parents=True, exist_ok=True)
    assert await gates(tmp_path, "auto", "shell.run", command=f"echo hit > {path}") == 1


@pytest.mark.parametrize(("name", "value", "path"), PLAIN)
def test_other_files_are_as_free_as_before(work: Path, name: str, value: str, path: str) -> None:
    configure(work, name, value)
    assert not git_runs(path, work)


def test_what_included_settings_and_those_of_the_home_name_counts_too(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    configure(work, "core.hooksPath", "everywhere", "--global")
    configure(work, "include.path", "../team")
    (work / "team").write_text("[core]\n\thooksPath = checks\n[include]\n\tpath = team\n")
    assert git_runs("checks/pre-push", work) and git_runs("everywhere/pre-push", work) and not git_runs("a.txt", work)


HOOK = "printf '#!/bin/sh\\ntouch hit\\n' > {0}; chmod +x {0}"
MADE = {
    "settings": ("git init -q sub; git -C sub config core.fsmonitor ./evil", "sub/.git/config"),
    "a hook": ("git init -q sub; " + HOOK.format("sub/.git/hooks/pre-commit"), "sub/.git/config"),
    "deep": ("git init -q a/b/c; git -C a/b/c config core.pager ./evil", "a/b/c/.git/config"),
    "an alias": ("git init -q sub; git -C sub config alias.st '!./evil'", "sub/.git/config"),
    "more settings": ("git init -q sub; git -C sub config include.path ../../evil", "sub/.git/config"),
    "written by hand": (
        "mkdir -p x/.git/objects x/.git/refs; echo 'ref: refs/heads/a' > x/.git/HEAD; "
        "printf '[core]\\n\\tsshCommand = ./evil\\n' > x/.git/config",
        "x/.git/config",
    ),
}


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("name", MADE)
async def test_a_new_repository_that_starts_programs_is_told(tmp_path: Path, work: Path, name: str, kind: str) -> None:
    script, settings = MADE[name]
    (work / "build.sh").write_text(script)
    call = decide(act("shell.run", command="sh build.sh"), next_step="continue")
    story = Story(tmp_path, [call, END, END], settings={"sandbox": {"kind": kind}})
    await story.tell("go on")
    notices = [event.what for event in story.all(Noticed)]
    assert settings in [notice.values.get("path") for notice in notices if notice.key == "risk.runs_later"]


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
async def test_a_new_repository_without_programs_is_not_told(tmp_path: Path, work: Path) -> None:
    (work / "build.sh").write_text("git init -q sub; git -C sub config user.name duck")
    call = decide(act("shell.run", command="sh build.sh"), next_step="continue")
    story = Story(tmp_path, [call, END, END])
    await story.tell("go on")
    assert (work / "sub/.git/config").exists()
    assert "risk.runs_later" not in [event.what.key for event in story.all(Noticed)]


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize("command", ["git commit -qam more", "git branch other", "git tag v1", "git checkout -qb b2"])
async def test_a_commit_is_not_told_as_something_that_starts_programs(tmp_path: Path, work: Path, command: str) -> None:
    begun(work)
    call = decide(act("shell.run", command=command), next_step="continue")
    story = Story(tmp_path, [call, END, END])
    story.answers = [Answer(choice="yes")]
    await story.tell("go on")
    assert "exit code 0" in story.prompt()
    assert "risk.runs_later" not in [event.what.key for event in story.all(Noticed)]


def begun(work: Path) -> None:
    """Makes a repository with one commit and one change."""
    who = ("user.name", "duck"), ("user.email", "duck@example.org")
    (work / "a").write_text("1\n")
    calls = [("init", "-q"), *(("config", *pair) for pair in who), ("add", "a"), ("commit", "-qm", "one")]
    for args in calls:
        subprocess.run(["git", "-C", str(work), *args], check=True)
    (work / "a").write_text("2\n")


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".git/config", ".git/logs/config", ".git/refs/hooks/x", "x/.git/HEAD", "sub/HEAD"]
)
def test_what_starts_programs_in_a_repository_still_counts(tmp_path: Path, path: str) -> None:
    for name in (".git", ".git/logs", ".git/refs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "HEAD").write_text("ref: refs/heads/main\n")
    assert runs_later(path, True, tmp_path)
