"""Duckflow itself runs nothing that the work folder brings: no program a repository names, none that lies in it."""

import os
import subprocess
from pathlib import Path

import pytest

from duckflow.programs.find import find_program
from duckflow.state.question import Answer
from tests.cli.shell import Shell
from tests.journeys.story import Story, act, decide, respond

HOOKS = ("post-index-change", "reference-transaction", "post-checkout", "pre-commit", "fsmonitor-watchman")
TEXTS = {".gitattributes": "* filter=x diff=x merge=x\n", "sub/.gitignore": "*.log\n"}
LOOKS = (
    act("file_ops.list_files", path=".", depth=3),
    act("file_ops.find_files", pattern="*.py"),
    act("file_ops.grep", pattern="duck"),
    act("file_ops.grep", pattern="鴨"),
)


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=duck", "-c", "user.email=duck@pond")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def plant(path: Path, canary: Path) -> str:
    """A program that leaves a trace when it is run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {canary}\nexit 1\n')
    path.chmod(0o755)
    return str(path)


def prepare(top: Path, canary: Path) -> Path:
    """A linked worktree of a repository that names programs wherever git would start one."""
    main, work = top / "main", top / "work"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    for name in ("app.py", "secret.log", ".gitattributes", "sub/.gitignore"):
        (main / name).parent.mkdir(exist_ok=True)
        (main / name).write_text(TEXTS.get(name, "# duck\n"))
    git(main, "add", "-A")
    git(main, "commit", "-qm", "start")
    git(main, "worktree", "add", "-q", "-b", "other", str(work))
    (work / "new.py").write_text("duck = '鴨'\n")
    # An ignore file that is not in the working tree, whose text has to be fetched from elsewhere.
    git(work, "update-index", "--skip-worktree", "sub/.gitignore")
    (work / "sub/.gitignore").unlink()
    (work / "sub/b.log").write_text("x")
    evil = plant(top / "evil", canary)
    digest = git(main, "rev-parse", "HEAD:sub/.gitignore").strip()
    (main / f".git/objects/{digest[:2]}/{digest[2:]}").unlink()
    (main / ".git/objects/info/alternates").write_text(f"{top}/elsewhere/objects\n")
    for key in (
        *("core.pager", "core.sshCommand", "core.fsmonitor", "core.askPass", "core.editor", "diff.external"),
        *("diff.x.textconv", "diff.x.command", "filter.x.clean", "filter.x.smudge", "filter.x.process"),
        *("remote.origin.uploadpack", "credential.helper", "gpg.program", "alias.status", "core.alternateRefsCommand"),
    ):
        git(main, "config", key, evil)
    for key, value in (("remote.origin.promisor", "true"), ("remote.origin.url", f"file://{top}/elsewhere")):
        git(main, "config", key, value)
    git(main, "config", "core.repositoryformatversion", "1")
    git(main, "config", "extensions.partialClone", "origin")
    for hook in HOOKS:
        plant(main / ".git/hooks" / hook, canary)
    canary.unlink(missing_ok=True)
    return work


async def test_a_prepared_repository_runs_nothing_when_it_is_looked_at(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    prepare(tmp_path, canary)
    write = act("file_ops.write_file", path="made.py", content="duck = 2\n")
    story = Story(tmp_path, [decide(*LOOKS, next_step="continue"), decide(write, respond("done"))], mode="ask")
    story.answers = [Answer(choice="no"), Answer(choice="yes")]
    assert await story.tell("look around and change it") == "done"
    assert [question.kind for question in story.questions] == ["choice", "gate"]
    assert "new.py" in story.chat.find_files("new", 5)
    assert "app.py" in story.prompt()
    assert (await story.chat.undo.restore(back=True)).conflicts == ()
    assert not (story.folder / "made.py").exists()
    assert not canary.exists(), canary.read_text()


def test_the_doctor_runs_nothing_of_a_prepared_repository(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    shell = Shell(tmp_path)
    shell.work = prepare(tmp_path / "repo", canary)
    shell.run("doctor", "-m", shell.script())
    assert not canary.exists(), canary.read_text()


@pytest.mark.parametrize("place", ["venv/bin", "node_modules/.bin"])
def test_programs_that_lie_in_the_work_folder_are_passed_over(tmp_path: Path, place: str) -> None:
    shell, canary = Shell(tmp_path), tmp_path / "canary"
    for name in ("git", "rg", "bwrap", "bash", "sh", "python", "python3", "pip", "uv", "vi"):
        plant(shell.work / place / name, canary)
    (shell.work / "a.py").write_text("duck = 1\n")
    link = tmp_path / "bin"
    link.symlink_to(shell.work / place)
    path = os.pathsep.join([place, str(shell.work / place), str(link), os.environ["PATH"]])
    write = act("file_ops.write_file", path="made.py", content="duck = 2\n")
    script = shell.script(
        decide(*LOOKS, next_step="continue"),
        decide(act("shell.run", command="true"), write, respond("done")),
    )
    done = shell.run("-p", "look", "-m", script, "--mode", "full-auto", PATH=path)
    assert done.returncode == 0, done.stderr
    assert (shell.work / "made.py").read_text() == "duck = 2\n"
    shell.run("doctor", "-m", script, PATH=path)
    assert not canary.exists(), canary.read_text()


def test_a_program_is_found_outside_of_the_work_folder_only(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    mine = Path(plant(work / "tool", tmp_path / "canary"))
    outside.mkdir()
    (outside / "tool").symlink_to(mine)
    assert find_program("tool", work, f"{work}{os.pathsep}{outside}{os.pathsep}.") is None
    assert find_program(str(mine), work) is None and find_program("./tool", work) is None
    good = plant(tmp_path / "good/tool", tmp_path / "canary")
    assert find_program("tool", work, f"{work}{os.pathsep}{outside}{os.pathsep}{tmp_path}/good") == good
    assert find_program(good, work) == good
    assert find_program("sh", Path("/")), "everything lies beneath it"
