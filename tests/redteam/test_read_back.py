"""Files that Duckflow reads back from places where commands can write: pipes, devices, endless, huge and deeply nested
files."""

import asyncio
import contextlib
import os
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from duckflow.agent.pictures import LARGEST
from duckflow.events.types import ActionFinished, Noticed
from duckflow.tools.shell.checkers import REPORTS, RUNNER_REPORTS, ReportFile
from tests.journeys.story import Story, act, decide, respond

SECONDS = 20
MOST_MEMORY = 3 * 2**30
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


@pytest.mark.parametrize("make", [huge, endless])
@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore", "deep/.ignore", ".git/info/exclude"])
async def test_no_rules_on_what_to_ignore_fill_the_memory_of_a_search(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    (work := tmp_path / "work").mkdir()
    (work / "pond.py").write_text("QUACK\n")
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    make(work / name)
    story = Story(tmp_path, [decide(act("file_ops.grep", pattern="QUACK"), next_step="continue"), DONE], mode="ask")
    turn, most = asyncio.create_task(story.tell("look")), 0
    while not turn.done():
        most = max(most, memory_of("rg", work))
        await asyncio.sleep(0.05)
    found = story.all(ActionFinished)[0].result.for_model
    assert "1:QUACK" in found and most < MOST_MEMORY


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore", "deep/.ignore", ".git/info/exclude"])
async def test_a_pipe_in_place_of_rules_hides_nothing_from_a_search(tmp_path: Path, name: str) -> None:
    (work := tmp_path / "work").mkdir()
    (work / "pond.py").write_text("QUACK\n")
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    pipe(work / name)
    calls = [decide(act("file_ops.grep", pattern="QUACK"), next_step="continue"), DONE]
    story = Story(tmp_path, calls, mode="ask", settings={"files": {"grep_seconds": 2}})
    await story.tell("look")
    assert "1:QUACK" in story.all(ActionFinished)[0].result.for_model


def memory_of(program: str, folder: Path) -> int:
    """Returns the bytes that a program in this folder holds in memory."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "comm").read_text().strip() == program and (process / "cwd").readlink() == folder:
                return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return 0


@pytest.mark.parametrize("name", [b"\xff.py", b"\xe3\x81.py", b"a\x80b.py", b"\xff/pond.py", b"deep/\xc0/pond.py"])
async def test_a_name_that_is_no_text_does_not_break_the_code_map(tmp_path: Path, name: bytes) -> None:
    for path in (tmp_path / "work" / os.fsdecode(name), tmp_path / "work/good.py"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def quack():\n    pass\n")
    calls = [act("code.outline", path="."), act("code.find", symbol="quack")]
    story = Story(tmp_path, [*(decide(call, next_step="continue") for call in calls), DONE], mode="ask")
    await story.tell("look")
    results = [event.result for event in story.all(ActionFinished) if event.result.operation.startswith("code.")]
    assert [result.ok for result in results] == [True, True] and "good.py" in results[1].for_model


@pytest.mark.parametrize(
    ("width", "height"), [(12_000, 12_000), (9000, 9000), (60_000, 1300), (1000, 60_000), (8000, 8000)]
)
async def test_a_picture_of_many_points_is_not_unpacked(tmp_path: Path, width: int, height: int) -> None:
    (work := tmp_path / "work").mkdir()
    (work / "pond.png").write_bytes(black_picture(width, height) + b"x" * LARGEST)
    story = Story(tmp_path, [DONE], mode="ask")
    await story.tell("look at @pond.png")
    told = [event.what.key for event in story.all(Noticed)]
    assert "picture.too_large" in told or "picture.not_made_smaller" in told


def black_picture(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    lines = zlib.compress(bytes(1 + (width + 7) // 8) * height, 1)
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")
