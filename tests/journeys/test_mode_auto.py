"""The mode `auto`: what sandbox and undo make harmless runs, everything else is asked for."""

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import Noticed
from duckflow.state.question import Answer
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.ground import Ground
from tests.redteam.test_commands import HARMS, NETWORK, SECRETS

needs_bubblewrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")

END = decide(respond("ok"), step="PLANNING", next_step="pending_user")


def run(command: str, **other: Any) -> dict[str, Any]:
    return act("shell.run", command=command, **other)


def write(path: str, content: str = "new\n") -> dict[str, Any]:
    return act("file_ops.write_file", path=path, content=content)


def started(tmp_path: Path, *actions: dict[str, Any], **settings: Any) -> Story:
    story = Story(tmp_path, [decide(*actions, next_step="continue"), END], mode="auto", settings=settings)
    (story.folder / "old.txt").write_text("old\n")
    (story.folder / "ducks.db").write_text("ducks\n")
    (story.folder / ".gitignore").write_text("*.db\n")
    return story


async def test_what_comes_back_runs_without_a_question_and_does_come_back(tmp_path: Path) -> None:
    deeds = [
        write("new.txt"),
        run("rm old.txt"),
        run("python3 -c \"open('made', 'w')\""),
        run("for name in a b; do echo $name > $name.txt; done"),
        run("mkdir -p deep && cp new.txt deep && sed -i s/new/newer/ deep/new.txt"),
        act("file_ops.delete_file", path="new.txt"),
    ]
    story = started(tmp_path, *deeds)
    (story.folder / "ducks.db").unlink()
    before = {path.name: path.read_text() for path in story.folder.iterdir()}
    await story.tell("go")
    assert not story.questions and {"made", "a.txt", "b.txt", "deep"} <= {path.name for path in story.folder.iterdir()}
    story.answers = [Answer(choice="all")]
    await story.chat.run_command("/undo")
    assert {path.name: path.read_text() for path in story.folder.iterdir()} == before


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "deed",
    [run("touch x", network=True), run("touch x", background=True), run("touch x", secrets=True), run("rm -rf src")]
    + [run("cat .env"), run("cp old.txt ../x"), run("cat /etc/hostname"), run("cd .. && touch x"), run("rm ducks.db")]
    + [
        run("echo x > .envrc"),
        run("cp old.txt tests/conftest.py"),
        run("sudo touch x"),
        run("git push"),
        run("touch 'x"),
    ]
    + [write("conftest.py"), write(".env"), write("a.py", "key = 'AKIAABCDEFGHIJKLMNOP'\n"), write(".git/config")],
)
async def test_what_does_not_come_back_is_asked_for(tmp_path: Path, deed: dict[str, Any]) -> None:
    story = started(tmp_path, deed)
    await story.tell("go")
    assert len(story.gates()) == 1 and (story.folder / "old.txt").exists()


LOSING = [
    "rm *.d?", "rm duck*.db", "for f in *.db; do rm $f; done", "python3 -c \"import glob; print(glob.glob('*'))\"",
    "python3 script.py", "pytest --junitxml=ducks.db", "pytest --junitxml ducks.db", "pytest --log-file=ducks.db",
    "go test -coverprofile=ducks.db ./...", "mv deep deeper", "rm large.bin", "echo x > large.bin",
    "cp old.txt ducks.db", "truncate -s 0 large.bin", "sh script.sh", "find . -name '*.db' -exec rm {} +",
    "ls | xargs rm", "perl -i -pe 1 duck*",
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", LOSING)
async def test_what_could_lose_a_file_that_undo_does_not_keep_is_asked_for(tmp_path: Path, command: str) -> None:
    story = started(tmp_path, run(command))
    (story.folder / "deep/er").mkdir(parents=True)
    (story.folder / "deep/er/more.db").write_text("ducks\n")
    for name in ("script.py", "script.sh"):
        (story.folder / name).write_text("")
    with (story.folder / "large.bin").open("wb") as file:
        file.truncate(60 * 1024 * 1024)
    await story.tell("go")
    assert len(story.gates()) == 1


@pytest.mark.one_in(3)
@needs_bubblewrap
@pytest.mark.parametrize(
    ("command", "asks"),
    [("sort -oducks.db old.txt", True), ("sort -uoducks.db old.txt", True), ("git tag x", False)]
    + [(f"git {verb} other", True) for verb in ("switch", "checkout", "merge", "rebase", "cherry-pick", "pull .")]
    + [("git -C . switch other", True), ("git reset --hard other", True), ("git stash -a", True)]
    + [("git add old.txt && git commit -qm old", False), ("git branch x", False)],
)
async def test_git_that_puts_files_in_place_may_lose_an_ignored_one(tmp_path: Path, command: str, asks: bool) -> None:
    story = started(tmp_path, run(command))
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q"], cwd=story.folder, check=True)
    await story.tell("go")
    assert len(story.gates()) == asks


@needs_bubblewrap
@pytest.mark.parametrize(
    "command", ["pytest --junitxml=report.xml", "python3 script.py", "rm *.txt", "mv old.txt new.txt"]
)
async def test_what_tools_make_anew_is_no_reason_to_ask(tmp_path: Path, command: str) -> None:
    story = started(tmp_path, run(command))
    (story.folder / "ducks.db").unlink()
    (story.folder / ".gitignore").write_text("build/\n.coverage\n*.log\nnode_modules/\n.env\n")
    for name in ("build/a.o", ".coverage", "run.log", "node_modules/a/b.js", ".env", "script.py"):
        (story.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (story.folder / name).write_text("")
    await story.tell("go")
    assert not story.gates()


@pytest.mark.parametrize("settings", [{"sandbox": {"network": True}}, {"undo": {"enabled": False}}])
async def test_with_network_for_all_or_without_undo_commands_ask(tmp_path: Path, settings: dict[str, Any]) -> None:
    story = started(tmp_path, write("new.txt"), run("touch x"), **settings)
    await story.tell("go")
    [question] = story.gates()
    assert question.gate and question.gate.operations == ("shell.run",)


async def test_without_a_sandbox_it_asks_like_auto_edit_and_says_so_once(tmp_path: Path) -> None:
    deeds = write("new.txt"), act("file_ops.delete_file", path="old.txt")
    story = started(tmp_path, *deeds, sandbox={"kind": "none"})
    await story.tell("go")
    [question] = story.gates()
    assert question.gate and question.gate.operations == ("file_ops.delete_file",)
    await story.tell("go on")
    assert [event.what.key for event in story.all(Noticed)].count("mode.without_sandbox") == 1


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", [*HARMS, *NETWORK, *SECRETS])
async def test_nothing_gets_out_that_full_auto_keeps_in(tmp_path: Path, command: str) -> None:
    ground = Ground(tmp_path)
    tried = run(command.format(out=ground.outside, port=ground.port))
    assert await ground.got(tried, mode="auto") == []
    ground.listener.close()
