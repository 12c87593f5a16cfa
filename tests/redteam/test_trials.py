"""Tests that are tried on the code before a change notice that, and leave links, pipes and lies where Duckflow writes
and reads next. Nothing outside changes, and nothing waits."""

import asyncio
import shutil
import sys
import time
from pathlib import Path

import pytest

from duckflow.events.types import ProofTried
from duckflow.programs.launch import Launch
from duckflow.proof.settings import ProofSettings
from duckflow.review.report import WitnessRunner
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings
from duckflow.state.changes import Witness
from duckflow.tools.settings import ShellSettings
from duckflow.tools.shell.run import shell_launch
from tests.journeys.story import Story, act, decide, respond

OLD, NEW = "def f():\n    return 1\n", "def f():\n    return 2\n"
HELD = "outside\n"
TEST = """\
import atexit, glob, os, sys, unittest
from src.app import f
OUTSIDE = {outside!r}
class TestF(unittest.TestCase):
    def test_f(self):
        orders = getattr(sys.modules["__main__"], "ORDERS", None)
        if orders:
            report = orders._report
            place = os.path.dirname(report)
            {way}
        self.assertEqual(f(), 2)
"""
LINKS = {
    "the file": 'os.remove("src/app.py"); os.symlink(OUTSIDE + "/file", "src/app.py")',
    "the file, by a relative link": 'os.remove("src/app.py"); os.symlink("../" * 20 + OUTSIDE + "/file", "src/app.py")',
    "its folder": 'os.rename("src", "old"); os.symlink(OUTSIDE, "src")',
    "its folder, by two links": 'os.rename("src", "old"); os.symlink(OUTSIDE, "one"); os.symlink("one", "src")',
    "what is compiled of it": 'os.makedirs("src/x"); os.rename("src/x", "src/__pycache__") if not os.path.exists('
    '"src/__pycache__") else os.rename("src/__pycache__", "gone"); os.path.isdir("src/__pycache__") and os.rmdir('
    '"src/__pycache__"); os.symlink(OUTSIDE, "src/__pycache__")',
    "the orders": 'os.remove(place + "/orders.json"); os.symlink(OUTSIDE + "/file", place + "/orders.json")',
    "the orders, in temporary files": '[os.symlink(OUTSIDE + "/file", n) for p in glob.glob("/tmp/trial-*") for n in '
    '[p + "/orders.json"] if not os.remove(n)]',
    "their folder": '[os.symlink(OUTSIDE, n) for n in glob.glob("/tmp/trial-*") if not os.rename(n, n + "x")]',
    "the module": 'n = place + "/duckflow_trial.py"; os.remove(n); os.symlink(OUTSIDE + "/file", n)',
}
WAITS = {
    "a pipe for the file": 'os.remove("src/app.py"); os.mkfifo("src/app.py")',
    "a pipe for the orders": 'os.remove(place + "/orders.json"); os.mkfifo(place + "/orders.json")',
    "a pipe for the report": "atexit.register(lambda: (os.remove(report), os.mkfifo(report)))",
    "a device for the report": 'atexit.register(lambda: (os.remove(report), os.symlink("/dev/zero", report)))',
    "a deep report": 'open(report, "a").write("[" * 200000 + "\\n")',
    "a report of odd types": 'open(report, "a").write(\'{"ran": [["a", 1e999]], "file": {}, "test": []}\\n1\\n\')',
    "a report of long numbers": 'open(report, "a").write(\'{"ran": [["a", \' + "9" * 5000 + \']], "file": "x"}\\n\')',
    "a report of many lines": 'open(report, "a").write("{}\\n" * 4000000)',
}


async def tried(top: Path, way: str) -> Story:
    """Runs a turn whose test takes this way once it is tried."""
    outside, test = top / "outside", "tests/test_f.py"
    outside.mkdir()
    for name in ("file", "app.x.pyc"):
        (outside / name).write_text(HELD)
    command = act("shell.run", command=f"{sys.executable} -m unittest tests.test_f")
    work = [
        act("file_ops.read_file", path="src/app.py"),
        act("file_ops.write_file", path="src/app.py", content=NEW),
        act("file_ops.write_file", path="tests/__init__.py", content=""),
        act("file_ops.write_file", path=test, content=TEST.format(outside=str(outside), way=way)),
        command,
    ]
    replies = [decide(one, next_step="continue") for one in work]
    story = Story(top, [*replies, *[decide(respond("done"), next_step="done")] * 4], mode="full-auto")
    (story.folder / "src").mkdir()
    (story.folder / "src/app.py").write_text(OLD)
    async with asyncio.timeout(60):
        await story.tell("mend it")
    assert story.all(ProofTried), "nothing was tried"
    await story.close()
    return story


@pytest.mark.one_in(3)
@pytest.mark.parametrize("way", LINKS.values(), ids=LINKS)
async def test_a_link_that_a_tried_test_leaves_leads_nowhere(tmp_path: Path, way: str) -> None:
    await tried(tmp_path, way)
    left = {path.name: path.read_text() for path in (tmp_path / "outside").iterdir()}
    assert left == {"file": HELD, "app.x.pyc": HELD}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("way", WAITS.values(), ids=WAITS)
async def test_what_a_tried_test_leaves_neither_holds_nor_breaks_the_turn(tmp_path: Path, way: str) -> None:
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            begun = time.monotonic()
            await asyncio.sleep(0.05)
            longest = max(longest, time.monotonic() - begun)

    watching = asyncio.create_task(watch())
    story = await tried(tmp_path, way)
    watching.cancel()
    assert story.ending().outcome != "failed" and longest < 5


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="a trial needs bubblewrap")
@pytest.mark.parametrize("name", ["node_modules", ".venv", "deep/node_modules"])
async def test_a_shared_folder_that_becomes_a_link_while_the_copy_is_made_shows_nothing(
    tmp_path: Path, name: str
) -> None:
    """A command in the background swaps the folder after it was checked, and before the sandbox starts."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / name).mkdir(parents=True)
    outside.mkdir()
    (outside / "node_modules").mkdir()
    for place in (outside, outside / "node_modules"):
        (place / "file").write_text(HELD)
    sandbox = choose(SandboxSettings(), work)

    def swapped(inner: Sandbox, command: str) -> Launch:
        taken = work / Path(name).parts[0]
        taken.rename(work / "old")
        taken.symlink_to(outside)
        return shell_launch(inner, ShellSettings(), command, False)

    async def find() -> Sandbox:
        return sandbox

    witness = Witness(command=f"cat {name}/file; exit 3")
    shown = await WitnessRunner(find, swapped, ProofSettings()).run(witness, {})
    sandbox.close()
    assert HELD.strip() not in shown.output.split()
