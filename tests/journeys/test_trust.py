"""A folder that brings programs, or is no project, is asked about once; without a yes its programs stay off."""

import subprocess
from pathlib import Path

import pytest

from duckflow.i18n.words import Words
from duckflow.state.question import Answer
from tests.cli.shell import HELLO, Shell
from tests.journeys.story import Story, act, decide, respond

LOOK = decide(act("shell.run", command="git status --short"), respond("seen"))
LEFT_OUT = decide(respond("I could not look."), step="PLANNING")
HELLOS = [decide(respond("Hello."), step="PLANNING")] * 3


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=duck", "-c", "user.email=duck@pond")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def bring_programs(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "start")
    git(folder, "config", "core.fsmonitor", "./evil")


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_folder_that_brings_programs_is_asked_about_once(tmp_path: Path, language: str) -> None:
    bring_programs(tmp_path / "work")
    story = Story(tmp_path, HELLOS, language=language)
    story.answers = [Answer(choice="trust")]
    assert await story.tell("hello") == "done"
    question = story.questions[0]
    words = Words(language)
    assert question.kind == "choice" and words.phrase(question.title) == words("trust.question")
    assert [phrase.key for phrase in question.details] == ["trust.repository"]
    assert await story.tell("hello again") == "done"
    assert await story.restart(HELLOS).tell("and later") == "done"
    assert len(story.questions) == 1
    kept = tmp_path / "home/trusted.json"
    assert kept.stat().st_mode & 0o777 == 0o600 and str(story.folder) in kept.read_text()


async def test_nothing_is_sent_before_the_answer_and_a_plain_folder_is_not_asked_about(tmp_path: Path) -> None:
    story = Story(tmp_path, HELLOS)
    git(story.folder, "init", "-q")
    assert await story.tell("hello") == "done" and not story.questions
    bring_programs(tmp_path / "other/work")
    other = Story(tmp_path / "other", HELLOS)
    sent: list[int] = []
    other.answer = lambda question: sent.append(len(other.model.requests)) or Answer(choice="no")
    assert await other.tell("hello") == "done"
    assert sent == [0] and len(other.model.requests) == 1


async def test_a_linked_worktree_inherits(tmp_path: Path) -> None:
    main = tmp_path / "main"
    bring_programs(main)
    git(main, "config", "--unset", "core.fsmonitor")
    git(main, "worktree", "add", "-q", "-b", "other", str(tmp_path / "work"))
    git(main, "config", "core.fsmonitor", "./evil")
    story = Story(tmp_path, HELLOS)
    (tmp_path / "home/trusted.json").write_text(f'["{main / ".git"}"]')
    assert await story.tell("hello") == "done" and not story.questions


async def test_a_program_for_duckflow_itself_is_a_reason(tmp_path: Path) -> None:
    brought = tmp_path / "work/.duckflow/hooks/start"
    brought.parent.mkdir(parents=True)
    brought.write_text("#!/bin/sh\n")
    brought.chmod(0o755)
    story = Story(tmp_path, HELLOS)
    story.answers = [Answer(choice="no")]
    assert await story.tell("hello") == "done"
    assert story.questions[0].details[0].values["files"] == ".duckflow/hooks/start"


def test_headless_the_programs_stay_off_and_that_is_said(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    bring_programs(shell.work)
    done = shell.run("-p", "look", "-m", shell.script(LOOK, LEFT_OUT))
    assert done.returncode == 3 and "not trusted" in done.stderr and "--trust" in done.stderr
    done = shell.run("-p", "look", "--mode", "full-auto", "-m", shell.script(LOOK, LEFT_OUT), "--lang", "ja")
    assert done.returncode == 3 and "信頼されていません" in done.stderr, "not even in full-auto"
    done = shell.run("-p", "look", "--trust", "-m", shell.script(LOOK, LEFT_OUT))
    assert done.returncode == 3 and "not trusted" not in done.stderr, "trust takes away no question of the Gate"
    done = shell.run("-p", "look", "--mode", "full-auto", "-m", shell.script(LOOK, LEFT_OUT))
    assert done.returncode == 0, done.stderr
    assert "not trusted" not in shell.run("-p", "hello", "-m", shell.script()).stderr, "it is remembered"


def test_home_has_to_be_wanted(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    at_home = {"HOME": str(shell.work)}
    done = shell.run("-p", "hello", "-m", shell.script(), **at_home)
    assert done.returncode == 1 and "Nothing was done" in done.stderr and "Hello" not in done.stdout
    assert shell.run("-p", "hello", "--trust", "-m", shell.script(HELLO), **at_home).returncode == 0
    assert shell.run("-p", "hello", "-m", shell.script(HELLO), **at_home).returncode == 0


def test_duckflows_own_folders_are_no_work_folder(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for name in ("data", "config/deeper", "cache"):
        shell.work = shell.home / name
        shell.work.mkdir(parents=True, exist_ok=True)
        done = shell.run("-p", "hello", "--trust", "-m", shell.script())
        assert done.returncode == 2 and "own files" in done.stderr


async def test_the_users_own_commands_wait_for_the_answer_too(tmp_path: Path) -> None:
    bring_programs(tmp_path / "work")
    story = Story(tmp_path, HELLOS)
    seen: list[bool] = []
    story.answer = lambda question: seen.append((story.folder / "ran").exists()) or Answer(choice="no")
    assert await story.chat.run_own("touch ran") == 0
    assert seen == [False] and (story.folder / "ran").exists()
