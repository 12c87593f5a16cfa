"""A damaged session as a user meets it: it goes on with what can be read, and every command says what has happened."""

import json
import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.journeys.story import decide, respond


def no_utf8(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE events SET body = CAST(x'FFFE7B' AS TEXT) WHERE seq = (SELECT max(seq) / 2 FROM events)")
        db.commit()


def page_of(name: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        with path.open("r+b") as file:
            file.seek((root - 1) * 4096)
            file.write(random.Random(name).randbytes(4096))

    return damage


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def foreign(path: Path) -> None:
    path.write_bytes(b"%PDF-1.7 something else entirely\n" * 300)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", ["-c", "--fork"])
@pytest.mark.parametrize(
    "damage",
    [no_utf8, page_of("messages"), page_of("headline"), page_of("events"), cut, emptied, foreign],
    ids=["no UTF-8", "index", "headline", "events", "cut", "emptied", "foreign"],
)
def test_a_damaged_session_goes_on_with_its_readable_part(
    damage: Callable[[Path], None], form: str, tmp_path: Path
) -> None:
    shell = Shell(tmp_path)
    shell.run("-p", "first question", "-m", shell.script(decide(respond("one"), step="PLANNING")))
    [journal] = shell.home.rglob("sessions/*/*.db")
    damage(journal)
    assert journal.stem in shell.run("sessions").stdout
    for reading in (("audit",), ("sessions", "export", journal.stem, "-o", "-")):
        told = shell.run(*reading)
        assert "went wrong" not in told.stderr
        assert told.returncode == 0 or "is damaged" in told.stderr
    again = shell.script(decide(respond("two"), step="PLANNING"))
    done = shell.run(form, "-p", "second", "-m", again, "--output-format", "json")
    assert done.returncode == 0, done.stderr
    assert "two" in done.stdout and json.loads(done.stdout)["session_id"]
    [aside] = journal.parent.glob("*.damaged-*.db")
    assert "damaged" in done.stderr and str(aside) in done.stderr and "went wrong" not in done.stderr
    again = shell.script(decide(respond("three"), step="PLANNING"))
    third = shell.run("-c", "-p", "third", "-m", again)
    assert third.returncode == 0 and "damaged" not in third.stderr
