"""A journal damaged anywhere, in any way, is opened up to the damage; the user hears of it, and the file is kept."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from duckflow.agent.session import Session, begin, reopen
from duckflow.errors import JournalDamaged
from duckflow.events.types import JournalSalvaged, MessageAdded, TurnBegan, TurnEnded
from duckflow.state.message import Message
from duckflow.store.journal import Journal
from duckflow.store.salvage import salvage
from duckflow.store.sessions import Sessions, read_headline

PAGE = 4096
Rows = list[tuple[str, str]]
Damage = Callable[[Path, random.Random], None]


def tell(session: Session, turns: range) -> None:
    """Adds short and long messages to the session."""
    for turn in turns:
        session.emit(TurnBegan(turn=turn))
        session.emit(MessageAdded(message=Message(role="user", text=f"question {turn} 質問", turn=turn)))
        answer = f"line {turn} of an answer\n" * (400 if turn % 7 == 0 else 3)
        session.emit(MessageAdded(message=Message(role="tool", text=answer, turn=turn)))
        session.emit(TurnEnded(turn=turn, outcome="done"))


def make_session(path: Path, crash: bool) -> Rows:
    """Makes a session and returns its rows. A crash leaves a log with the messages since it was opened again."""
    session = begin(path, path.stem, path.parent, "en")
    tell(session, range(1, 30))
    session.close()
    if crash:
        session = reopen(path).session
        tell(session, range(30, 45))
        copy(path, path.with_name("crashed"))
        session.close()
        copy(path.with_name("crashed"), path)
    rows = rows_of(path)
    if crash:
        copy(path.with_name("crashed"), path)
    return rows


def copy(source: Path, target: Path) -> None:
    for suffix in ("", "-wal"):
        if (part := source.with_name(source.name + suffix)).exists():
            shutil.copy(part, target.with_name(target.name + suffix))


def rows_of(path: Path) -> Rows:
    with closing(Journal(path)) as journal:
        return [(row.kind, row.body) for row in journal.rows()]


def change(path: Path, chance: random.Random, start: int, length: int, what: str) -> None:
    data = bytearray(path.read_bytes())
    end = min(start + length, len(data))
    match what:
        case "zeros":
            data[start:end] = bytes(end - start)
        case "noise":
            data[start:end] = chance.randbytes(end - start)
        case _:
            for place in range(start, end):
                data[place] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def any_page(what: str) -> Damage:
    def damage(path: Path, chance: random.Random) -> None:
        page = chance.randrange(path.stat().st_size // PAGE)
        change(path, chance, page * PAGE, PAGE * chance.choice((1, 1, 3)), what)

    return damage


def few_bytes(path: Path, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 2, 8))):
        change(path, chance, chance.randrange(path.stat().st_size), chance.choice((1, 1, 4)), "flip")


def header(path: Path, chance: random.Random) -> None:
    change(path, chance, chance.randrange(100), chance.choice((1, 4, 30)), chance.choice(("flip", "zeros", "noise")))


def page_of(*names: str) -> Damage:
    """Damages the root page of one of these tables or indexes."""

    def damage(path: Path, chance: random.Random) -> None:
        with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as db:
            roots = dict(db.execute("SELECT name, rootpage FROM sqlite_master").fetchall())
        start = (roots[chance.choice(names)] - 1) * PAGE
        length = chance.choice((1, 8, 100, PAGE))
        change(path, chance, start + chance.choice((0, 0, 3, 8)), length, chance.choice(("flip", "zeros", "noise")))

    return damage


def no_utf8(path: Path, chance: random.Random) -> None:
    with closing(sqlite3.connect(path)) as db:
        column = chance.choice(("kind", "body"))
        value = chance.choice((b"\xff\xfe{", b"\x80", b"\xed\xa0\x80"))
        row = chance.choice((1, 2, 50, 100))
        kind = chance.choice(("TEXT", "BLOB", "INTEGER"))
        db.execute(f"UPDATE events SET {column} = CAST(? AS {kind}) WHERE seq = ?", (value, row))
        db.execute("UPDATE headline SET body = CAST(? AS TEXT)", (value,))
        db.commit()


def row_gone(path: Path, chance: random.Random) -> None:
    with closing(sqlite3.connect(path)) as db:
        if chance.random() < 0.5:
            db.execute("DELETE FROM events WHERE seq = ?", (chance.randrange(1, 100),))
        else:
            db.execute("UPDATE events SET seq = seq + 100000 WHERE seq = ?", (chance.randrange(1, 100),))
        db.commit()


def cut(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.choice((0, 1, 99, PAGE, chance.randrange(path.stat().st_size))))


def foreign(path: Path, chance: random.Random) -> None:
    match chance.randrange(4):
        case 0:
            path.write_bytes(chance.randbytes(chance.choice((1, 5000, 20000))))
        case 1:
            path.write_text("これはデータベースではありません\n" * 500, "utf-8")
        case 2:
            path.write_bytes(b"SQLite format 3\0" + chance.randbytes(8000))
        case _:
            path.unlink()
            with closing(sqlite3.connect(path)) as db:
                db.execute(chance.choice(("CREATE TABLE other (a)", "CREATE TABLE events (seq, what)")))
                db.commit()


def log(path: Path, chance: random.Random) -> None:
    ahead = path.with_name(f"{path.name}-wal")
    size = ahead.stat().st_size
    match chance.randrange(4):
        case 0:
            change(ahead, chance, 0, chance.choice((4, 32)), chance.choice(("flip", "noise", "zeros")))
        case 1:
            change(ahead, chance, chance.randrange(32, size), chance.choice((1, 24, PAGE)), "flip")
        case 2:
            change(ahead, chance, chance.randrange(size // 2), PAGE * 2, "zeros")
        case _:
            few_bytes(ahead, chance)


DAMAGES: dict[str, Damage] = {
    "flipped bits": few_bytes,
    "a page of zeros": any_page("zeros"),
    "a page of noise": any_page("noise"),
    "the header": header,
    "the index": page_of("messages"),
    "the headline": page_of("headline"),
    "a root": page_of("events", "snapshots"),
    "no UTF-8": no_utf8,
    "a row gone": row_gone,
    "cut off": cut,
    "a foreign file": foreign,
    "the log": log,
}


@pytest.mark.parametrize("crash", (False, True), ids=("closed", "crashed"))
@pytest.mark.parametrize("tries", [pytest.param(2, id="quick"), pytest.param(25, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_journal_is_opened_up_to_the_damage(name: str, tries: int, crash: bool, tmp_path: Path) -> None:
    whole = tmp_path / "whole" / "s.db"
    whole.parent.mkdir()
    # Only a crash leaves a log that can be damaged.
    written = make_session(whole, crash or name == "the log")
    for seed in range(tries):
        path = tmp_path / f"{seed}.db"
        copy(whole, path)
        DAMAGES[name](path, random.Random(f"{name} {seed} {crash}"))
        check_opened(path, written)


def check_opened(path: Path, written: Rows) -> None:
    listed = [entry.session_id for entry in Sessions(path.parent).here()]
    assert path.stem in listed, "it can be found in the list"
    opened = reopen(path)
    opened.session.emit(TurnBegan(turn=999))
    opened.session.emit(TurnEnded(turn=999, outcome="done"))
    opened.session.close()
    now = rows_of(path)[:-2]
    if opened.salvaged is None:
        assert now == written, "nothing is missing unless it is said"
    else:
        assert opened.salvaged.aside.exists() and opened.salvaged.aside.parent == path.parent
        assert now.pop()[0] == JournalSalvaged.kind and len(now) == opened.salvaged.kept
        assert in_order(now, written), "what is kept is what was written"
    again = reopen(path)
    again.session.close()
    assert again.salvaged is None
    headline = read_headline(path)
    assert headline and headline.title != "?"


def in_order(some: Rows, rows: Rows) -> bool:
    remaining = iter(rows)
    return all(row in remaining for row in some)


def test_a_damaged_page_of_the_index_loses_no_entry(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    written = make_session(path, crash=False)
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as db:
        [(root,)] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'messages'").fetchall()
    change(path, random.Random(1), (root - 1) * PAGE, PAGE, "noise")
    opened = reopen(path)
    opened.session.close()
    assert opened.salvaged and opened.salvaged.kept == len(written)


def test_entries_after_a_damaged_frame_of_the_log_are_not_silently_lost(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    written = make_session(path, crash=True)
    ahead = path.with_name("s.db-wal")
    change(ahead, random.Random(1), ahead.stat().st_size // 4, 1, "flip")
    opened = reopen(path)
    opened.session.close()
    assert opened.salvaged and opened.salvaged.kept == len(written), "other images of the page have what it held"


def test_two_damages_in_one_second_keep_both_files(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    places = set[Path]()
    for content in (b"one", b"two"):
        path.write_bytes(content * 1000)
        with pytest.raises(JournalDamaged):
            Journal(path)
        places.add(salvage(path).aside)
    assert {place.read_bytes()[:3] for place in places} == {b"one", b"two"}
