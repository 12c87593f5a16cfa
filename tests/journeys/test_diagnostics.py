"""What the project's own checker says newly about a change is told in the same turn; what it said before never is."""

import asyncio
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from duckflow.events.types import Noticed, Waiting
from tests.journeys.plans import until
from tests.journeys.story import Story, act, decide, respond

OK = decide(respond("done"))
CONFIG = "[tool.basedpyright]\ntypeCheckingMode = 'standard'\n"
TILL = "def total(prices: list[int]) -> int:\n    return sum(prices)\n"
USE = "from till import total\n\nprint(total([1, 2]))\n"
BROKEN = TILL.replace("prices: list[int]", "prices: list[int], tax: int")
needs_mounts = pytest.mark.skipif(not shutil.which("bwrap"), reason="needs bubblewrap")


def story(top: Path, files: dict[str, str], replies: list[Any], **code: Any) -> Story:
    for name, text in files.items():
        (top / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (top / "work" / name).write_text(text)
    return Story(top, replies, settings={"code": {"diagnostics_seconds": 60, **code}})


def write(path: str, content: str) -> dict[str, Any]:
    read = act("file_ops.read_file", path=path)
    return decide(read, act("file_ops.write_file", path=path, content=content), next_step="continue")


def checker(top: Path, name: str, script: str) -> None:
    """A project's own program, in its own place."""
    program = top / "work/.venv/bin" / name
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\n{script}")
    program.chmod(0o755)


def noticed(told: Story, key: str) -> list[dict[str, Any]]:
    return [dict(one.what.values) for one in told.all(Noticed) if one.what.key == key]


MYPY = """\
import re, sys
for path in sys.argv[1:]:
    text = open(path).read() if path.endswith(".py") else ""
    for number, line in enumerate(text.split("\\n"), 1):
        wanted = open("till.py").read().split(")")[0].count(":")
        if (called := re.search(r"total\\((.*)\\)$", line)) and "def" not in line:
            if called[1].count(";") + 1 != wanted:
                print(f"{path}:{number}: error: total takes {wanted}")
        if "bad" in line:
            print(f"{path}:{number}: error: bad name")
"""
CALLS = "from till import total\n\ntotal([1])\n"


@pytest.mark.slow
@needs_mounts
async def test_a_real_checker_sees_that_a_caller_in_another_file_breaks(tmp_path: Path) -> None:
    files = {"pyproject.toml": CONFIG, "till.py": TILL, "use.py": USE, "old.py": "x: int = 'no'\n"}
    mended = write("use.py", USE.replace("[1, 2]", "[1, 2], 3"))
    told = story(tmp_path, files, [write("till.py", BROKEN), OK, mended, OK])
    assert await told.tell("add a tax") == "done"
    asked_again = told.prompt(2)
    assert "use.py:3:" in asked_again and '"tax"' in asked_again and "old.py" not in asked_again
    assert noticed(told, "diagnostics.left") == []


@needs_mounts
async def test_a_caller_in_another_file_that_breaks_is_told_in_the_same_turn(tmp_path: Path) -> None:
    checker(tmp_path, "mypy", MYPY)
    files = {"mypy.ini": "", "till.py": TILL, "use.py": CALLS, "old.py": "bad = 1\n"}
    mended = write("use.py", CALLS.replace("[1]", "[1]; 3"))
    told = story(tmp_path, files, [write("till.py", BROKEN), OK, mended, OK])
    assert await told.tell("add a tax") == "done"
    assert "use.py:3: total takes 2 (mypy)" in told.prompt(2) and "old.py" not in told.prompt(2)
    assert noticed(told, "diagnostics.left") == []


@needs_mounts
async def test_what_stays_wrong_is_beside_the_done_line(tmp_path: Path) -> None:
    checker(tmp_path, "mypy", MYPY)
    told = story(tmp_path, {"mypy.ini": "", "till.py": TILL, "use.py": CALLS}, [write("till.py", BROKEN), OK, OK])
    await told.tell("add a tax")
    [left] = noticed(told, "diagnostics.left")
    assert (left["names"], left["count"], left["place"]) == ("mypy", 1, "use.py:3")


@needs_mounts
async def test_five_hundred_old_errors_are_never_told(tmp_path: Path) -> None:
    checker(tmp_path, "mypy", MYPY)
    old = "".join(f"bad{number} = 1\n" for number in range(500))
    told = story(tmp_path, {"mypy.ini": "", "a.py": old}, [write("a.py", "# a word\n" + old), OK])
    assert await told.tell("add a comment") == "done"
    assert len(told.model.requests) == 2 and noticed(told, "diagnostics.left") == []


@needs_mounts
async def test_a_hanging_checker_costs_its_limit_once(tmp_path: Path) -> None:
    checker(tmp_path, "ruff", "import time\ntime.sleep(600)\n")
    files = {"ruff.toml": "", "a.py": "x = 1\n"}
    told = story(tmp_path, files, [write("a.py", "x = 2\n"), OK, write("a.py", "x = 3\n"), OK], diagnostics_seconds=1)
    begun = time.monotonic()
    assert await told.tell("two") == "done"
    assert time.monotonic() - begun < 20
    assert await told.tell("three") == "done"
    waits = [one for one in told.all(Waiting) if one.why and one.why.key == "wait.diagnostics"]
    assert len(waits) == 1 and waits[0].why.values["names"] == "ruff"


@needs_mounts
async def test_a_key_skips_it(tmp_path: Path) -> None:
    checker(tmp_path, "ruff", "import time\ntime.sleep(600)\n")
    told = story(tmp_path, {"ruff.toml": "", "a.py": "x = 1\n"}, [write("a.py", "x = 2\n"), OK])
    turn = asyncio.create_task(told.tell("two"))
    await until(told, lambda: any(one.why and one.why.key == "wait.diagnostics" for one in told.all(Waiting)))
    told.chat.interrupt()
    assert await turn == "done" and noticed(told, "turn.interrupted") == []


@pytest.mark.parametrize(
    ("files", "settings"),
    [
        ({"a.py": "x = 1\n"}, {}),
        ({"ruff.toml": "", "a.py": "x = 1\n"}, {"diagnostics": False}),
        ({"go.mod": "", "a.py": "x = 1\n"}, {}),
    ],
    ids=["no config", "switched off", "another language"],
)
async def test_nobody_is_asked_without_need(tmp_path: Path, files: dict[str, str], settings: dict[str, Any]) -> None:
    told = story(tmp_path, files, [write("a.py", "import os\n"), OK], **settings)
    assert await told.tell("change it") == "done"
    assert not any(one.why and one.why.key == "wait.diagnostics" for one in told.all(Waiting))
