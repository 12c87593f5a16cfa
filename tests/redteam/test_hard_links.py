"""Files of the work folder that are one with a file elsewhere, by a hard link: what a command does to them stays in the
folder."""

import os
from pathlib import Path

import pytest

from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond

END = decide(respond("ok"), step="PLANNING", next_step="pending_user")
WRITES = [
    "echo bad > deep/bashrc",
    "echo bad >> deep/bashrc",
    "python3 -c \"open('deep/bashrc', 'w').write('bad')\"",
    "cp other.txt deep/bashrc",
    "tee deep/bashrc < other.txt",
    "dd if=other.txt of=deep/bashrc 2>/dev/null",
    "perl -e 'truncate \"deep/bashrc\", 0'",
    "mv deep moved; echo bad > moved/bashrc",
    "ln deep/bashrc second; echo bad > second",
]


def story_in(top: Path, command: str, mode: str = "full-auto") -> Story:
    call = decide(act("shell.run", command=command), next_step="continue")
    return Story(top, [call, END], mode=mode)


@pytest.mark.parametrize("mode", ["full-auto", "auto"])
@pytest.mark.parametrize("command", WRITES)
async def test_a_command_does_not_write_through_a_hard_link(tmp_path: Path, command: str, mode: str) -> None:
    story = story_in(tmp_path, command, mode)
    home_file, inner_file = tmp_path / "bashrc", story.folder / "deep/bashrc"
    home_file.write_text("mine\n")
    home_file.chmod(0o640)
    os.utime(home_file, (10**9, 10**9))
    inner_file.parent.mkdir()
    os.link(home_file, inner_file)
    (story.folder / "other.txt").write_text("bad\n")
    await story.tell("go")
    assert home_file.read_text() == "mine\n" and home_file.stat().st_mode & 0o777 == 0o640
    story.answer = lambda question: Answer(choice="all" if "all" in {key.key for key in question.choices} else "yes")
    await story.chat.run_command("/undo")
    assert inner_file.read_text() == "mine\n" and inner_file.stat().st_mode & 0o777 == 0o640


async def test_a_copy_keeps_the_time_and_files_that_are_one_within_the_folder_stay_so(tmp_path: Path) -> None:
    story = story_in(tmp_path, "touch new")
    outside, inner, twin = tmp_path / "out", story.folder / "in", story.folder / "twin"
    outside.write_text("x\n")
    os.utime(outside, (10**9, 10**9))
    os.link(outside, inner)
    (story.folder / "first").write_text("y\n")
    os.link(story.folder / "first", twin)
    await story.tell("go")
    assert inner.stat().st_nlink == 1 and inner.stat().st_mtime == 10**9
    assert twin.stat().st_nlink == 2
