"""Programs that a folder brings in by the settings of a repository, on top or further in: git asks before it compares
files there, and is free where the repositories name no program, or where it only reads what is recorded."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished
from duckflow.safety.commands.judge import judge_command
from duckflow.safety.commands.paths import CommandFacts
from duckflow.safety.environment import GIT_ALONE
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.ground import Ground

LOOKS = (
    "git status",
    "git status --short",
    "git diff",
    "git diff --submodule=log HEAD",
    "git ls-files -m",
    "git ls-files --recurse-submodules",
    "git log -p -1",
    "git describe --always --dirty",
)
RECORDS = (
    "git log",
    "git log --oneline --graph --all",
    "git log -g -2",
    "git log --follow notes.txt",
    "git rev-list --count HEAD",
    "git shortlog -n HEAD",
    "git branch -vv",
    "git branch --contains HEAD",
    "git tag -n3",
    "git for-each-ref",
    "git show-ref",
    "git rev-parse HEAD",
    "git merge-base HEAD HEAD",
    "git remote -v",
    "git config --list",
    "git ls-tree -r HEAD",
    "git cat-file -p HEAD",
    "git describe --always",
    "git reflog",
    "git worktree list",
    "git ls-files",
    "git ls-files --others",
    "git grep x",
    "git grep --cached x",
    "git check-ignore a.log",
)
"""Commands that are free in every repository: git is kept from starting a program that it names."""
SETTINGS = (
    "core.fsmonitor", "core.hooksPath", "diff.external", "filter.x.clean", "include.path", "core.sshCommand",
    "gc.recentObjectsHook", "init.templateDir",
)  # fmt: skip


def git(folder: Path, *words: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    options = ("-c", "user.name=d", "-c", "user.email=d@p", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *options, *words], cwd=folder, check=True, capture_output=True)


def begun(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("x\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-qm", "first")


def submodule(work: Path) -> Path:
    begun(work.parent / "lib")
    begun(work)
    git(work, "submodule", "--quiet", "add", str(work.parent / "lib"), "sub")
    return work / ".git/modules/sub/config"


def submodule_of_a_submodule(work: Path) -> Path:
    begun(work.parent / "deep")
    begun(work.parent / "lib")
    git(work.parent / "lib", "submodule", "--quiet", "add", str(work.parent / "deep"), "inner")
    git(work.parent / "lib", "commit", "-qm", "inner")
    begun(work)
    git(work, "submodule", "--quiet", "add", str(work.parent / "lib"), "sub")
    git(work, "submodule", "--quiet", "update", "--init", "--recursive")
    return work / ".git/modules/sub/modules/inner/config"


def embedded(work: Path) -> Path:
    begun(work)
    begun(work / "vendor/part")
    git(work, "add", "vendor/part")
    return work / "vendor/part/.git/config"


def moved_away(work: Path) -> Path:
    """Makes a `.git` that is a file, in a repository that was added like a file."""
    begun(work)
    begun(work / "part")
    (work / "part/.git").rename(work / "elsewhere")
    (work / "part/.git").write_text("gitdir: ../elsewhere\n")
    git(work, "add", "part")
    return work / "elsewhere/config"


def bare_layout(work: Path) -> Path:
    """Makes a folder that is a git folder itself, with its files beside."""
    begun(work)
    for path in list((work / ".git").iterdir()):
        path.rename(work / path.name)
    (work / ".git").rmdir()
    git(work, "config", "-f", "config", "core.bare", "true")
    return work / "config"


def bare_above(work: Path) -> Path:
    """Makes the same, one folder further up."""
    return bare_layout(work.parent)


PLACES: tuple[Callable[[Path], Path], ...] = (
    submodule,
    submodule_of_a_submodule,
    embedded,
    moved_away,
    bare_layout,
    bare_above,
)


async def asks(top: Path, command: str) -> bool:
    story = Story(top, [decide(act("shell.run", command=command), respond("ok"))], mode="ask")
    await story.tell("look")
    asked = bool(story.questions)
    await story.close()
    return asked


@pytest.mark.one_in(4)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("command", LOOKS)
async def test_a_program_named_further_in_is_asked_about(
    tmp_path: Path, place: Callable[[Path], Path], command: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    config = place(work)
    name = SETTINGS[LOOKS.index(command) % len(SETTINGS)]
    git(config.parent.parent, "config", "-f", str(config), name, str(tmp_path / "evil.sh"))
    assert await asks(tmp_path, command)


def hostile(top: Path) -> Ground:
    """Makes a repository that names a program for everything, with a signed commit, and another such repository in
    it."""
    ground = Ground(top)
    ground.make_repository()
    work, evil = ground.work, str(ground.work / "evil.sh")
    begun(work / "inner")
    for name in ("core.fsmonitor", "diff.external"):
        git(work / "inner", "config", name, evil)
    for name in ("gpg.openpgp.program", "gpg.x509.program", "gpg.ssh.program", "core.alternateRefsCommand"):
        git(work, "config", name, evil)
    for name, value in (("format.pretty", "%H %G? %GS"), ("submodule.recurse", "true"), ("diff.submodule", "log")):
        git(work, "config", name, value)
    still = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    git(work, *still, "add", "inner")
    text = subprocess.run(["git", "cat-file", "commit", "HEAD"], cwd=work, check=True, capture_output=True).stdout
    head, _, message = text.partition(b"\n\n")
    signed = head + b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n" + message
    (top / "signed").write_bytes(signed)
    git(work, *still, "update-ref", "HEAD", made(work, top / "signed"))
    (work / "notes.txt").write_text("changed\n")
    return ground


def made(work: Path, commit: Path) -> str:
    words = ["git", "hash-object", "-t", "commit", "-w", str(commit)]
    return subprocess.run(words, cwd=work, check=True, capture_output=True, text=True).stdout.strip()


def started(ground: Ground, command: str, variables: dict[str, str]) -> bool:
    """Runs a command without a sandbox, and says whether a program of the repository has run."""
    traces = (ground.outside / "hit", ground.work / "hit")
    for trace in traces:
        trace.unlink(missing_ok=True)
    usual = {"PATH": os.environ["PATH"], "HOME": str(ground.top)}
    subprocess.run(command.split(), cwd=ground.work, env=usual | variables, capture_output=True, check=False)
    return any(trace.exists() for trace in traces)


@pytest.mark.parametrize("objects", ["there", "missing"])
def test_reading_what_is_recorded_starts_no_program(tmp_path: Path, objects: str) -> None:
    ground = hostile(tmp_path)
    for folder in (ground.work / ".git/objects").glob("??") if objects == "missing" else ():
        shutil.rmtree(folder)
    judged = CommandFacts(str(ground.work), str(tmp_path), git_runs_programs=True)
    assert [command for command in RECORDS if judge_command(command, judged).verdict != "safe"] == []
    assert [command for command in RECORDS if started(ground, command, GIT_ALONE)] == []
    alone = [command for command in RECORDS if started(ground, command, {})]
    assert len(alone) > 8, "without the environment of a free command they do"


async def test_a_free_git_command_has_that_environment(tmp_path: Path) -> None:
    ground = hostile(tmp_path)
    (ground.work / "evil.sh").write_text("#!/bin/sh\necho the folder ran this >&2\nexit 1\n")
    looks = [decide(act("shell.run", command=command), next_step="continue") for command in ("git grep x", "git log")]
    story = Story(tmp_path, [*looks, decide(respond("ok"))], mode="ask")
    await story.tell("look")
    results = [event.result.for_model for event in story.all(ActionFinished)]
    assert "exit code" in results[0] and "exit code" in results[1]
    assert "the folder ran" not in "".join(results)
    assert not [question for question in story.questions if question.gate]
    await story.close()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
async def test_the_same_repositories_without_programs_are_free(tmp_path: Path, place: Callable[[Path], Path]) -> None:
    work = tmp_path / "work"
    work.mkdir()
    place(work)
    assert not await asks(tmp_path, "git status --short")


@pytest.mark.parametrize(
    "command",
    [
        "cd x.git && git log",
        "git -C x.git log",
        "git --git-dir=x.git log",
        "git --git-dir x.git status",
        "GIT_DIR=x.git git log",
        "cd x.git; git status",
    ],
)
async def test_a_bare_repository_further_in_is_asked_about(tmp_path: Path, command: str) -> None:
    work = tmp_path / "work"
    begun(work)
    git(work, "init", "-q", "--bare", "x.git")
    assert await asks(tmp_path, command)
