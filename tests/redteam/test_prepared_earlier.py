"""What was prepared or typed before something else happened: a file tool whose path leads elsewhere by the time that it
writes, because a command of the same reply or something else has put a link there, an option of a reader that changes
files that the command does not name, and a yes that reaches a question which its terminal has not shown."""

import asyncio
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import QuestionAsked
from duckflow.i18n.words import Words
from duckflow.state.question import Answer, Question
from duckflow.ui.console.chat import Chat
from duckflow.ui.settings import UiSettings
from tests.journeys.story import Story, act, decide
from tests.redteam.test_undo_gaps import END, git
from tests.remote.test_conversation import WRITE, Served
from tests.ui.console.test_early_answers import Keys

bubblewrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    (work / "deep/link").symlink_to(".git")
    (work / "notes.txt").write_text("one\ntwo\n")
    git(work, "init", "-q", "-b", "main")
    git(work, "add", "notes.txt")
    git(work, "commit", "-qm", "start")
    (work / ".git/hooks").mkdir(exist_ok=True)
    return work


def write(path: str) -> dict[str, Any]:
    return act("file_ops.write_file", path=path, content="echo evil\n")


def run(command: str) -> dict[str, Any]:
    return act("shell.run", command=command)


LED_ELSEWHERE = [
    ([run("ln -s .git d"), write("d/hooks/pre-commit")], ".git/hooks/pre-commit"),
    ([run("ln -s .git/hooks d"), write("d/pre-push")], ".git/hooks/pre-push"),
    ([run("mkdir -p a; ln -s ../.git a/b"), write("a/b/hooks/post-merge")], ".git/hooks/post-merge"),
    ([run("ln -s conftest.py a.py"), write("a.py")], "conftest.py"),
    ([run("python3 -c 'import os; os.symlink(\"Makefile\", \"a.txt\")'"), write("a.txt")], "Makefile"),
    ([run("ln -s .github d"), write("notes2.txt"), write("d/workflows/x.yml")], ".github/workflows/x.yml"),
    ([run("git init -q --bare g"), write("g/hooks/pre-commit")], "g/hooks/pre-commit"),
    ([write("b.txt"), run("ln -s .git d"), write("d/hooks/pre-rebase")], ".git/hooks/pre-rebase"),
    ([act("file_ops.move_file", source="deep/link", target="d"), write("d/hooks/pre-push")], ".git/hooks/pre-push"),
    ([run("ln -s .vscode d"), act("file_ops.make_folder", path="d/x"), write("d/tasks.json")], ".vscode/tasks.json"),
]  # fmt: skip


class NoToFiles(Story):
    """Says yes to commands, and no to every question about files that make code run later."""

    def answer(self, question: Question) -> Answer:
        reasons = {reason.key for reason in question.gate.reasons} if question.gate else {"risk.runs_later"}
        return Answer(choice="no" if "risk.runs_later" in reasons else "yes")


@bubblewrap
@pytest.mark.parametrize("mode", ["ask", "auto-edit", "auto"])
@pytest.mark.parametrize(("calls", "place"), LED_ELSEWHERE)
async def test_a_command_of_the_same_reply_leads_no_file_tool_elsewhere(
    tmp_path: Path, work: Path, calls: list[dict[str, Any]], place: str, mode: str
) -> None:
    story = NoToFiles(tmp_path, [decide(*calls, next_step="continue"), END, END], mode=mode)
    await story.tell("go on")
    await story.close()
    assert not (work / place).exists() and not (work / ".git/hooks/pre-commit").exists()


WHILE_ASKED: list[tuple[dict[str, Any], str, str, str]] = [
    (write("d/pre-commit"), "d", ".git/hooks", ".git/hooks/pre-commit"),
    (write("d/hooks/x"), "d", ".git", ".git/hooks/x"),
    (write("a.py"), "a.py", "conftest.py", "conftest.py"),
    (write("a/b/c.yml"), "a", ".github", ".github/b/c.yml"),
    (act("file_ops.make_folder", path="d/hooks/x"), "d", ".git", ".git/hooks/x"),
    (act("file_ops.move_file", source="notes.txt", target="d/pre-commit"), "d", ".git/hooks", ".git/hooks/pre-commit"),
    (act("file_ops.move_file", source="notes.txt", target="new/config"), "new", ".github", ".github/config"),
]


@pytest.mark.parametrize(("call", "name", "target", "place"), WHILE_ASKED)
async def test_a_link_that_comes_while_it_is_asked_leads_no_file_tool_elsewhere(
    tmp_path: Path, work: Path, call: dict[str, Any], name: str, target: str, place: str
) -> None:
    class Swapping(Story):
        def answer(self, question: Question) -> Answer:
            if len(self.questions) == 1:
                (work / ".github").mkdir()
                (work / name).symlink_to(target)
            return Answer(choice="yes" if len(self.questions) == 1 else "no")

    story = Swapping(tmp_path, [decide(call, next_step="continue"), END, END], mode="ask")
    await story.tell("go on")
    assert len(story.questions) == 1 and not (work / place).exists() and (work / "notes.txt").exists()
    await story.close()


async def test_a_plain_reply_of_several_writes_is_one_question(tmp_path: Path, work: Path) -> None:
    calls = [write("a.txt"), write("sub/b.txt"), run("touch c.txt"), run("touch d.txt")]
    story = NoToFiles(tmp_path, [decide(*calls, next_step="continue"), END], mode="ask")
    await story.tell("go on")
    assert len(story.questions) == 1 and (work / "sub/b.txt").exists() and (work / "c.txt").exists()
    await story.close()


OPTIONS = [
    "sed -i.db s/a/b/ data", "sed --in-place=.db s/a/b/ data", "sed -Ei.db d data", "sed -i'.db' d data",
    "sed -f s.sed notes.txt", "sed -nfs.sed notes.txt", "sed --file=s.sed notes.txt", "sed -i -f s.sed notes.txt",
    "sed -i 1e./ev.sh notes.txt", "sed -i 's/a/b/;w data.db' notes.txt", "sed -i 's,one,e,gw data.db' notes.txt",
    r"sed -i s/one/y/w\ data.db notes.txt", r"sed -i y/o/e/\;wdata.db notes.txt", "sed -n -s -i.db d data",
    "sort --compress-program=./ev.sh -S 1k big -o z", "awk -f p.awk notes.txt", "rg --pre ./ev.sh one notes.txt",
]  # fmt: skip


@bubblewrap
@pytest.mark.parametrize("command", OPTIONS)
async def test_in_auto_no_option_changes_a_file_that_the_command_does_not_name(
    tmp_path: Path, work: Path, command: str
) -> None:
    files = {".gitignore": "*.db\n", "data.db": "PRECIOUS\n", "data": "a\n", "s.sed": "w data.db\n"}
    files |= {"ev.sh": "#!/bin/sh\necho evil > data.db\ncat\n", "p.awk": '{print > "data.db"}\n'}
    files["big"] = "".join(f"{number}\n" for number in range(50_000, 0, -1))
    for name, text in files.items():
        (work / name).write_text(text)
    (work / "ev.sh").chmod(0o755)
    story = Story(tmp_path, [decide(run(command), next_step="continue"), END, END], mode="auto")
    await story.tell("go on")
    await story.close()
    assert (work / "data.db").read_text() == "PRECIOUS\n"


@pytest.mark.parametrize("said", ["yes", "y", "1", "ok", "go ahead", "always", "yes, for the session"])
async def test_a_line_answers_no_question_that_its_terminal_has_not_shown(tmp_path: Path, said: str) -> None:
    """The conversation runs in another process, and has asked before the terminal has heard of it."""
    async with Served(tmp_path, WRITE) as served:
        front_end, opened = await served.join(), asyncio.Event()
        chat = Chat(front_end.port, Keys(), Words("en"), UiSettings())
        chat.open()
        asking = served.built.conversation
        asking.hear(lambda _, event: opened.set() if isinstance(event, QuestionAsked) else None)
        turn = asyncio.create_task(asking.say("write a.txt"))
        await opened.wait()
        assert not front_end.port.questions
        chat.take(said, time.monotonic() + 1)
        await front_end.asked()
        await front_end.port.work.jobs_over()
        assert asking.questions and not (tmp_path / "work/a.txt").exists()
        asking.answer(asking.questions[0].question_id, choice="no")
        await turn
        chat.close()
