"""Files that Duckflow reads back from places where commands can write: pipes, devices, endless, huge and deeply nested
files."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from duckflow.events.types import ActionFinished
from duckflow.tools.shell.checkers import REPORTS, RUNNER_REPORTS, ReportFile
from tests.journeys.story import Story, act, decide, respond

SECONDS = 20
DONE = decide(respond("done"), step="PLANNING", next_step="pending_user")
READ_AT_THE_START = [
    ".mcp.json", ".duckflow/config.toml", ".duckflow/skills/a/SKILL.md", ".claude/settings.json",
    ".claude/commands/go.md", ".claude/agents/one.md", "AGENTS.md", "CLAUDE.md", "package.json", "pyproject.toml",
    "Makefile", ".gitignore", ".git/HEAD", ".git/config", ".git/index", ".git/packed-refs", ".git/info/exclude", ".env",
    "conftest.py", "castle.md", ".git",
]  # fmt: skip


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"{")
        file.truncate(30_000_000_000)


def folder(path: Path) -> None:
    path.mkdir()


def nested_json(path: Path) -> None:
    path.write_text('{"testResults":' + "[" * 200_000)


def nested_lists(path: Path) -> None:
    path.write_text("{" + '"a":{' * 100_000)


def nested_tables(path: Path) -> None:
    path.write_text("a = " + "[" * 100_000)


def nested_xml(path: Path) -> None:
    path.write_text("<a>" * 400_000)


def many_elements(path: Path) -> None:
    path.write_text("<a>" + "<b/>" * 4_000_000 + "</a>")


def many_values(path: Path) -> None:
    path.write_text('{"testResults":[' + "[]," * 5_000_000 + "[]]}")


def wrong_shape(path: Path) -> None:
    path.write_text('{"testResults": [[1, 2], "a", null]}')


def entities(path: Path) -> None:
    path.write_text('<!DOCTYPE a [<!ENTITY b "x">]><a>&b;</a>')


def no_text(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 100)


KINDS = [pipe, endless, huge, folder, nested_json, nested_lists, nested_tables, nested_xml, no_text]
OF_REPORTS = [*KINDS, many_elements, many_values, wrong_shape, entities]


class Heartbeat:
    """Measures the longest time that the event loop has stood still."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._task = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            self.longest = max(self.longest, time.monotonic() - before)

    def stop(self) -> None:
        self._task.cancel()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("runner", RUNNER_REPORTS)
@pytest.mark.parametrize("make", OF_REPORTS)
def test_what_stands_in_place_of_a_report_is_no_report(
    tmp_path: Path, make: Callable[[Path], None], runner: str
) -> None:
    report = ReportFile(RUNNER_REPORTS[runner], tmp_path)
    words = report.environment({REPORTS: str(tmp_path)}).get(RUNNER_REPORTS[runner].variable) or report.arguments
    name = next(word for word in words.replace('"', "").replace("=", "/").split("/") if word.startswith("report-"))
    make(tmp_path / name)
    begun = time.process_time()
    assert report.read() is None
    assert time.process_time() - begun < 2


@pytest.mark.slow
@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", READ_AT_THE_START)
async def test_nothing_that_lies_in_the_folder_stops_a_conversation(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "work" / name
    path.parent.mkdir(parents=True)
    make(path)
    story = Story(tmp_path, [decide(act("shell.run", command="echo qua''ck"), next_step="continue"), DONE, DONE])
    async with asyncio.timeout(SECONDS):
        await story.tell("go on")
        await story.close()


@pytest.mark.parametrize("make", ["mkfifo(name)", "symlink('/dev/zero', name)", "mkdir(name)"])
@pytest.mark.parametrize("name", [".git/HEAD", "AGENTS.md", ".mcp.json", "pyproject.toml", ".gitignore", ".env"])
@pytest.mark.one_in(3)
async def test_what_a_command_puts_in_place_of_a_file_stops_nothing(tmp_path: Path, name: str, make: str) -> None:
    (tmp_path / "work/.git").mkdir(parents=True)
    swap = f"import os\nname = {name!r}\nif os.path.exists(name): os.remove(name)\nos.{make}\nprint('swapped')\n"
    (tmp_path / "work/swap.py").write_text(swap)
    commands = ("python3 swap.py", "python3 -m unittest discover -q", "ls -a")
    tries = [decide(act("shell.run", command=command), next_step="continue") for command in commands]
    story = Story(tmp_path, [*tries, DONE, DONE, DONE])
    async with asyncio.timeout(SECONDS):
        await story.tell("go on")
        await story.tell("and again")
    results = [event.result.for_model for event in story.all(ActionFinished)]
    assert any("swapped" in text for text in results), results
    await story.close()


@pytest.mark.parametrize(
    "swap",
    [
        "os.mkfifo(path)",
        "os.symlink('/dev/zero', path)",
        "open(path, 'w').write('{' + '\"a\":{' * 100000)",
        "open(path, 'w').write('<a>' * 6000000)",
    ],
)
async def test_a_run_that_replaces_its_report_leaves_the_loop_alone(tmp_path: Path, swap: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "test_a.py").write_text("def test_a():\n    assert True\n")
    swapped = "path = re.search(r'--junitxml=(\\S+)', os.environ['PYTEST_ADDOPTS'])[1]"
    (work / "conftest.py").write_text(
        f"import atexit, os, re\n{swapped}\n\n@atexit.register\ndef swap():\n    os.unlink(path)\n    {swap}\n"
    )
    run = decide(act("shell.run", command="pytest -q -p no:cacheprovider"), next_step="continue")
    story = Story(tmp_path, [run, DONE, DONE])
    heart = Heartbeat()
    async with asyncio.timeout(SECONDS):
        await story.tell("go on")
    heart.stop()
    assert "1 passed" in story.all(ActionFinished)[0].result.for_model
    assert story.all(ActionFinished)[0].result.check is not None
    assert heart.longest < 2
    await story.close()
