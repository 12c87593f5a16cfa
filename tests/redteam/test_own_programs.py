"""Programs that Duckflow starts with the user's rights start others by their names: none of these is one that a command
has put into the work folder, where PATH leads when an environment of the project is active."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from duckflow.safety.git import Git
from tests.journeys.story import Story, act, decide, respond
from tests.redteam.ground import END

PLANT = "printf '#!/bin/sh\\ntouch {hit}\\nexit 1\\n' > {place}/{name}; chmod +x {place}/{name}"
PLACES = [".venv/bin", "node_modules/.bin", "bin", "."]


def story_of(top: Path, *commands: str, **settings: Any) -> Story:
    tries = [decide(act("shell.run", command=text), respond("done"), next_step="continue") for text in commands]
    return Story(top, [*tries, END, END], settings=settings)


async def plant(top: Path, place: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = top / "work" / place
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    story = story_of(top, PLANT.format(hit=top / "hit", place=place, name=name))
    await story.tell("go")
    await story.close()
    assert (folder / name).exists(), "it is planted without a question"


async def served(top: Path, **server: Any) -> Story:
    story = story_of(top, "sleep 1", mcp={"servers": {"own": server}})
    await story.tell("go on")
    await story.close()
    return story


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["node", "python3"])
async def test_a_server_of_the_users_own_starts_no_program_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    script = tmp_path / "server"
    script.write_text(f"#!/usr/bin/env {name}\n")
    script.chmod(0o755)
    await plant(tmp_path, place, name, monkeypatch)
    await served(tmp_path, command=str(script))
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("name", "setting", "words"),
    [
        ("ssh", ("remote.origin.url", "git@nowhere.invalid:a/b"), ("ls-remote", "origin")),
        ("git-remote-duck", ("remote.origin.url", "duck://a"), ("ls-remote", "origin")),
        ("helper", ("alias.x", "!helper"), ("x",)),
    ],
)
async def test_git_of_duckflows_own_starts_no_program_of_the_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    name: str,
    setting: tuple[str, str],
    words: tuple[str, ...],
) -> None:
    (tmp_path / "work").mkdir()
    git = Git(tmp_path / "work")
    await git("init", "-q")
    await plant(tmp_path, place, name, monkeypatch)
    await git("config", *setting)
    async with asyncio.timeout(20):
        await git.ends(*words)
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize(
    ("command", "args", "cwd"),
    [
        ("WORK/server", [], ""),
        ("server", [], "."),
        ("/bin/sh", ["WORK/server"], ""),
        ("sh", ["./server"], "."),
        ("sh", ["-e", "WORK/../work/deep/../server"], ""),
        ("sh", ["link/server"], "OUTSIDE"),
        ("env", ["X=1", "sh", "WORK/server"], ""),
        ("node", ["--require=WORK/server", "/dev/null"], ""),
        ("python3", ["WORK"], ""),
    ],
)
async def test_a_server_of_the_users_own_is_no_file_of_the_folder(
    tmp_path: Path, command: str, args: list[str], cwd: str
) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "link").symlink_to(work)
    for name in ("server", "__main__.py"):
        (work / name).write_text(
            f"#!/bin/sh\ntouch {tmp_path}/hit\n" if name == "server" else f"open('{tmp_path}/hit', 'w')\n"
        )
        (work / name).chmod(0o755)
    words = [word.replace("WORK", str(work)) for word in (command, *args)]
    await served(tmp_path, command=words[0], args=words[1:], cwd=cwd.replace("OUTSIDE", str(outside)))
    assert not (tmp_path / "hit").exists()


async def test_a_server_of_the_users_own_that_gets_the_folder_as_data_runs(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/ran\n')
    script.chmod(0o755)
    await served(tmp_path, command=str(script), args=[str(tmp_path / "work")])
    assert (tmp_path / "ran").exists()
