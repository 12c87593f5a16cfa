"""A folder of so many repositories that guarding each of them would take a command minutes."""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished
from duckflow.safety.sandbox.bubblewrap import MOST_REPOSITORIES
from duckflow.state.action import ActionResult
from tests.journeys.story import Story, act, decide, respond

HOOK = ".git/hooks/pre-commit"
PLACED = {
    "echo bad > number7/.git/hooks/pre-commit": "a hook of the named one",
    "cd number7; mv .git gone && git init -q . && echo bad > .git/hooks/pre-commit": "the named one's git folder",
    "n=umber8; echo bad > n$n/.git/hooks/pre-commit": "a hook of another one",
    "n=umber8; mv n$n other": "another one as a whole",
    "cd number7; cd ..; for name in n*; do echo bad > $name/.git/hooks/pre-commit; done": "the hooks of all",
    "n=umber8; echo new > n$n/a.txt": "a file of another one",
}


def begin(first: Path, others: Iterable[Path]) -> None:
    subprocess.run(["git", "init", "-q", str(first)], check=True)
    (first / "a.txt").write_text("old\n")
    for other in others:
        shutil.copytree(first, other)


async def run(tmp_path: Path, command: str, names: Iterable[str]) -> tuple[ActionResult, Path]:
    tried, done = decide(act("shell.run", command=command), next_step="continue"), decide(respond("done"))
    story = Story(tmp_path, [tried, done, done], mode="full-auto", settings={"sandbox": {"kind": "bubblewrap"}})
    first, *others = (story.folder / name for name in names)
    begin(first, others)
    await story.tell("go on")
    (result,) = [event.result for event in story.all(ActionFinished) if event.result.operation == "shell.run"]
    await story.close()
    return result, story.folder


NAMES = [f"number{number}" for number in range(MOST_REPOSITORIES + 2)]


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
@pytest.mark.parametrize("command", PLACED, ids=PLACED.values())
async def test_what_a_command_does_not_name_cannot_be_changed(tmp_path: Path, command: str) -> None:
    result, folder = await run(tmp_path, command, NAMES)
    assert "exit code 0" not in result.for_model and not list(folder.glob(f"*/{HOOK}"))
    assert (folder / "number8/a.txt").read_text() == "old\n"


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
async def test_a_repository_that_the_command_names_can_be_changed(tmp_path: Path) -> None:
    result, folder = await run(tmp_path, "echo new > number7/a.txt; cd number9 && git add a.txt", NAMES)
    assert result.ok and (folder / "number7/a.txt").read_text() == "new\n" and (folder / "number9/.git/index").exists()


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is missing")
async def test_a_command_that_names_them_all_is_not_run(tmp_path: Path) -> None:
    result, folder = await run(tmp_path, f"touch {' '.join(NAMES)} new", NAMES)
    assert not result.ok and f"more than {MOST_REPOSITORIES} repositories" in result.for_model
    assert not (folder / "new").exists()
