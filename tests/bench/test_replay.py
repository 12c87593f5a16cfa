"""Sessions played again from their record: the same files, and a record that was changed is noticed."""

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from duckflow.agent.session import replay
from duckflow.bench.replay import play, read_past
from duckflow.llm.scripted import Scripted
from duckflow.state.question import Answer, Question
from duckflow.store.journal import JournalReader, checksum
from duckflow.store.paths import Paths
from tests.cli.shell import Shell
from tests.journeys.story import Story, act, decide, respond

HERE = Path(__file__).parents[2]
SNAKE = "def snake():\n    return 'hiss'\n"


@pytest.fixture
def bare(tmp_path: Path) -> Shell:
    """Makes a folder in which a model has written, edited, run and removed files."""
    shell = Shell(tmp_path)
    (shell.work / "old.txt").write_bytes(b"one\r\ntwo\r\n\xff\n")
    (shell.work / "gone.txt").write_text("bye\n")
    command = "printf 'three' >> old.txt; mkdir deep; ln -s ../old.txt deep/link; rm gone.txt"
    done = [decide(respond("Done."))] * 3
    model = shell.script(
        decide(act("file_ops.write_file", path="snake.py", content=SNAKE), next_step="continue"),
        decide(act("shell.run", command=command), next_step="continue"),
        *done,
    )
    first = shell.run("-m", model, "--mode", "full-auto", "-p", "Make a snake.")
    assert first.returncode == 0, first.stderr
    edit = act("file_ops.edit_file", path="snake.py", edits=[{"old": "'hiss'", "new": "'HISS'"}])
    look = decide(act("file_ops.read_file", path="snake.py"), next_step="continue")
    shell.script(look, decide(edit, next_step="continue"), *done)
    second = shell.run("-c", "-m", model, "--mode", "full-auto", "-p", "Louder.")
    assert second.returncode == 0, second.stderr
    return shell


def journal_of(shell: Shell) -> Path:
    [path] = shell.home.rglob("sessions/*/*.db")
    return path


def rewrite(path: Path, before: str, after: str, mended: bool) -> None:
    """Changes the record; with `mended` its checksum fits."""
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT seq, kind, body FROM events WHERE instr(body, ?)", (before,)).fetchall()
        assert rows
        for seq, kind, body in rows:
            kind_bytes = kind if isinstance(kind, bytes) else kind.encode()
            changed = (body if isinstance(body, bytes) else body.encode()).replace(before.encode(), after.encode())
            crc = checksum(kind_bytes, changed)
            database.execute("UPDATE events SET body = ? WHERE seq = ?", (changed.decode(), seq))
            if mended:
                database.execute("UPDATE events SET crc = ? WHERE seq = ?", (crc, seq))
        database.commit()


def test_a_replay_ends_in_the_same_files_byte_by_byte(bare: Shell, tmp_path: Path) -> None:
    done = bare.run("replay", "--into", str(tmp_path / "again"))
    assert done.returncode == 0 and "identical, byte for byte" in done.stdout, (done.stdout, done.stderr)
    for name in ("snake.py", "old.txt"):
        assert (tmp_path / "again" / name).read_bytes() == (bare.work / name).read_bytes()
    assert (tmp_path / "again/deep/link").readlink() == Path("../old.txt")
    assert not (tmp_path / "again/gone.txt").exists()
    refused = bare.run("replay", "--into", str(tmp_path / "again"))
    assert refused.returncode == 2 and "not an empty folder" in refused.stderr


def test_the_files_of_today_do_not_matter(bare: Shell, tmp_path: Path) -> None:
    written = (bare.work / "snake.py").read_bytes()
    (bare.work / "snake.py").write_text("something else\n")
    assert bare.run("replay", "--into", str(tmp_path / "again")).returncode == 0
    assert (tmp_path / "again/snake.py").read_bytes() == written


@pytest.mark.parametrize("mended", [False, True])
def test_a_record_that_was_changed_is_noticed(bare: Shell, mended: bool) -> None:
    rewrite(journal_of(bare), "'HISS'", "'MOO!'", mended)
    done = bare.run("replay")
    assert done.returncode != 0 and "byte for byte" not in done.stdout, (done.stdout, done.stderr)


@pytest.mark.slow
def test_every_session_of_the_journeys(tmp_path: Path) -> None:
    records = tmp_path / "records"
    records.mkdir()
    run = [sys.executable, "-m", "pytest", "-q", "-n", "2", "tests/journeys"]
    subprocess.run(run, env={**os.environ, "DUCKFLOW_KEEP_RECORDS": str(records)}, cwd=HERE, check=False, timeout=3600)
    journals = sorted(records.glob("*/home/s.db"))
    assert len(journals) > 500
    problems: list[str] = []
    for number, path in enumerate(journals):
        home = path.parent
        with closing(JournalReader.open(path)) as journal:
            folder = Path(replay(journal).folder)
        played = play(path, Paths(home, home, home).undo_of(folder), tmp_path / str(number))
        problems += [f"{home}: {problem.key} {problem.values}" for problem in played.problems]
    assert not [problem for problem in problems if "not_kept" not in problem]


class Agreeable(Story):
    """A conversation whose user says yes to everything."""

    def answer(self, question: Question) -> Answer:
        return Answer(choice="go_on" if question.kind == "duck_call" else "yes")


def long_session(top: Path, seed: int) -> Story:
    """Makes a session of six turns with ten random deeds each: files are written, edited, moved, removed, or changed by
    commands."""
    chance, replies = random.Random(seed), list[dict[str, Any]]()
    story = Agreeable(top, [])
    for _ in range(6):
        for number in range(10):
            name = f"d{chance.randrange(3)}/f{chance.randrange(6)}.txt"
            text = "".join(f"{chance.random()}\n" for _ in range(chance.randrange(1, 40)))
            command = chance.choice(
                [f"mkdir -p d1 && echo {number} >> d1/log", f"rm -rf {name}", f"ln -sfn {name} link{number}"]
                + [f"mkdir -p d2 && cp -r d0 d2/copy{number} 2>/dev/null; true", f"printf '\\377\\0' > raw{number}"]
            )
            deed = act("file_ops.write_file", path=name, content=text)
            deed = act("shell.run", command=command) if chance.random() < 0.5 else deed
            replies.append(decide(deed, next_step="continue"))
        replies += [decide(respond("Done."))] * 2
    story.model = Scripted(replies)
    return story


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
async def test_long_sessions_end_in_the_same_files_and_a_changed_record_is_noticed(tmp_path: Path, seed: int) -> None:
    story = long_session(tmp_path, seed)
    while len(story.model.requests) < 72:
        await story.tell(f"Part {story.session.state.turn}.")
    await story.close()
    home = tmp_path / "home"
    undo, journal = Paths(home, home, home).undo_of(story.folder), home / "s.db"
    into = tmp_path / "into"
    played = play(journal, undo, into)
    assert not played.problems and played.actions >= 60, played
    for place in (path for path in story.folder.rglob("*") if path.is_file() and not path.is_symlink()):
        assert (into / place.relative_to(story.folder)).read_bytes() == place.read_bytes(), place
    with closing(JournalReader.open(journal)) as record:
        past = read_past(record.events())
    written = {path: deed for deed in past.deeds for path in deed.result.changed}
    text = next(str(deed.action.args["content"]) for deed in written.values() if "content" in deed.action.args)
    rewrite(journal, text.split("\n")[0], "0.tampered", mended=True)
    assert play(journal, undo, tmp_path / "tampered").problems


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "steps",
    [
        ("ln -s OUT a", "rm a; mkdir a; echo PAYLOAD > a/f"),
        ("mkdir a; echo PAYLOAD > a/f", "rm -r a; ln -s OUT a"),
        ("ln -s OUT/f a", "rm a; echo PAYLOAD > a"),
        ("mkdir d; ln -s OUT d/a", "rm d/a; mkdir d/a; echo PAYLOAD > d/a/f"),
        ("ln -s OUT a; ln -s a/f b", "rm b; echo PAYLOAD > b"),
    ],
)
def test_nothing_is_written_through_a_link_of_the_record(tmp_path: Path, steps: tuple[str, ...]) -> None:
    shell, outside = Shell(tmp_path), tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("orig\n")
    model = ""
    for number, command in enumerate(steps):
        run = decide(act("shell.run", command=command.replace("OUT", str(outside))), next_step="continue")
        model = shell.script(run, *[decide(respond("Done."))] * 2)
        flags = ["-c"] if number else []
        shell.run(*flags, "-m", model, "--mode", "full-auto", "-p", "go")
    paths = Paths(shell.home / "data", shell.home / "config", shell.home / "cache")
    into = tmp_path / "into"
    into.mkdir()
    play(journal_of(shell), paths.undo_of(shell.work), into)
    assert (outside / "f").read_text() == "orig\n"
