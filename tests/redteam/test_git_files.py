"""A folder whose own files of git are made to be read for minutes: an index with one path a hundred thousand times, a
number without an end, settings whose every line is looked at together with a name of megabytes."""

import struct
import time
from pathlib import Path

import pytest

from duckflow.safety.repository import find_repository, same_staged
from duckflow.safety.started_files import git_runs
from tests.journeys.story import Story, act, decide, respond

SECONDS = 4.0
"""Processor time; before, each of these took from half a minute to hours."""
MANY = 150_000
STATS, FLAGS = b"\0" * 60, b"\0\0"


def header(version: int, count: int) -> bytes:
    return struct.pack(">4sII", b"DIRC", version, count)


def long_names() -> bytes:
    first_name = b"x" * 4_000_000
    return header(4, MANY) + STATS + FLAGS + b"\0" + first_name + b"\0" + (STATS + FLAGS + b"\0y\0") * MANY


INDEXES = {
    "empty paths": header(2, MANY) + b"\0" * 72 * MANY,
    "more than there are": header(2, 0xFFFFFFFF) + b"\0" * 72 * MANY,
    "one path": header(2, MANY) + (STATS + b"\0\1a" + b"\0" * 9) * MANY,
    "one path, extended": header(3, MANY) + (STATS + b"\x40\1\0\0a" + b"\0" * 7) * MANY,
    "one path, version 4": header(4, MANY) + STATS + FLAGS + b"\0a\0" + (STATS + FLAGS + b"\0\0") * MANY,
    "an endless number": header(4, 1) + STATS + FLAGS + b"\x80" * 4_000_000,
    "an endless number, later": header(4, 2) + STATS + FLAGS + b"\0a\0" + STATS + FLAGS + b"\xff" * 4_000_000,
    "paths that grow": long_names(),
}
NAME = ".url" * 100_000
SETTINGS = {
    "one setting of many lines": "[user]\n\tname = " + "a\\\n" * 340_000,
    "the same with spaces": "[user]\n\tname = " + " \\\n" * 340_000,
    "the same with Windows' ends": "[user]\n\tname = " + "a\\\r\n" * 250_000,
    "a remote with a long name": f'[remote "{NAME}"]\n' + "url = x\n" * 20_000,
    "a submodule with a long name": f'[submodule "{NAME}"]\n' + "path = x\n" * 20_000,
    "a server with a long name": f'[lfs "{NAME}"]\n' + "access\n" * 20_000,
    "a section with a long name": f"[{'a.' * 200_000}]\n" + "b\n" * 200_000,
    "settings without number": "[lfs]\n" + "a\n" * 500_000,
}


def folder_with(top: Path, name: str, data: bytes) -> Path:
    folder = top / "work"
    for inner in ("objects", "refs"):
        (folder / ".git" / inner).mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/config").write_text("[core]\n")
    (folder / ".git" / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_is_soon_read_or_given_up(tmp_path: Path, name: str) -> None:
    repository = find_repository(folder_with(tmp_path, "index", INDEXES[name]))
    assert repository
    started = time.process_time()
    for _ in range(5):
        assert len(repository.index()) <= 1
    assert not same_staged(INDEXES[name], INDEXES[name])
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_soon_read_or_count_as_running_programs(tmp_path: Path, name: str) -> None:
    folder = folder_with(tmp_path, "config", SETTINGS[name].encode())
    repository = find_repository(folder)
    assert repository
    started = time.process_time()
    repository.runs_programs()
    git_runs("a.txt", folder)
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize(
    ("file", "data"), [("index", INDEXES["empty paths"]), ("config", SETTINGS["one setting of many lines"].encode())]
)
async def test_a_turn_ends_where_they_lie(tmp_path: Path, file: str, data: bytes) -> None:
    folder_with(tmp_path, file, data)
    ls = decide(act("shell.run", command="ls"), next_step="continue")
    story = Story(tmp_path, [ls, decide(respond("Done."))], mode="plan")
    started = time.process_time()
    assert await story.tell("look") == "done"
    await story.close()
    assert time.process_time() - started < 5 * SECONDS
