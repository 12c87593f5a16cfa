"""The journal keeps every event, and saves what it can after damage."""

import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from duckflow.agent.session import begin, reopen, replay
from duckflow.errors import JournalDamaged, JournalError, JournalInUse
from duckflow.events.types import MessageAdded, TextStreamed, TurnBegan, TurnEnded
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState
from duckflow.state.message import Message
from duckflow.store.journal import Journal
from duckflow.store.sessions import Sessions


def talk(path: Path, turns: int) -> None:
    session = begin(path, path.stem, Path("/somewhere"), "en")
    for turn in range(1, turns + 1):
        session.emit(TurnBegan(turn=turn))
        session.emit(MessageAdded(message=Message(role="user", text=f"question {turn}", turn=turn)))
        session.emit(TextStreamed(text="live only"))
        session.emit(TurnEnded(turn=turn, outcome="done"))
    session.close()


def test_a_resumed_session_equals_the_replay_of_all_its_events(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    talk(path, 400)
    opened = reopen(path)
    assert opened.salvaged is None
    assert opened.session.state.turn == 400
    assert len(opened.session.state.messages) == 400
    opened.session.close()
    with closing(Journal(path)) as journal:
        assert journal.last_snapshot() is not None
        assert replay(journal) == replay(journal, from_snapshot=False) == opened.session.state


def test_live_events_are_not_kept(tmp_path: Path) -> None:
    talk(tmp_path / "s.db", 1)
    with closing(Journal(tmp_path / "s.db")) as journal:
        assert [event.kind for _, event in journal.events()] == [
            "session_opened", "turn_began", "message_added", "turn_ended",
        ]  # fmt: skip


def test_a_journal_is_read_up_to_an_altered_entry_and_the_file_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    talk(path, 10)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE events SET body = replace(body, 'question', 'answer') WHERE seq = 21")
        db.commit()
    opened = reopen(path)
    assert opened.salvaged is not None
    assert opened.salvaged.kept == 20
    assert opened.salvaged.aside.exists()
    opened.session.emit(TurnBegan(turn=7))
    assert opened.session.state.turn == 7
    opened.session.close()
    again = reopen(path)
    again.session.close()
    assert again.salvaged is None


def test_a_file_whose_pages_are_overwritten_is_opened_up_to_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    talk(path, 300)
    raw = bytearray(path.read_bytes())
    middle = len(raw) // 2
    raw[middle : middle + 8192] = b"\xff" * 8192
    path.write_bytes(raw)
    opened = reopen(path)
    assert opened.salvaged is not None
    opened.session.close()
    assert opened.session.state.event_count == opened.salvaged.kept + 1, "the damage is on the record"
    assert opened.salvaged.kept < 901


def test_a_file_that_is_not_a_journal_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"this is not a database, " * 100)
    opened = reopen(path)
    opened.session.close()
    assert opened.salvaged is not None and opened.salvaged.kept == 0
    assert opened.salvaged.aside.read_bytes().startswith(b"this is not")


def test_a_session_that_is_open_elsewhere_is_not_opened_twice(tmp_path: Path) -> None:
    with closing(Journal(tmp_path / "s.db")), pytest.raises(JournalInUse):
        Journal(tmp_path / "s.db")


@pytest.mark.slow
def test_a_file_in_use_by_another_program_is_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    talk(path, 3)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(JournalInUse):
            reopen(path)
    with closing(reopen(path).session) as session:
        assert session.state.turn == 3
    assert [one.name for one in tmp_path.iterdir() if "damaged" in one.name] == []


def test_a_file_that_may_not_grow_is_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    talk(path, 3)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(JournalError), closing(reopen(path).session) as session:
            session.emit(TurnBegan(turn=4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    opened = reopen(path)
    opened.session.close()
    assert opened.salvaged is None and opened.session.state.turn == 3


def test_a_fork_does_not_change_its_origin(tmp_path: Path) -> None:
    talk(tmp_path / "a.db", 3)
    fork = reopen(Sessions(tmp_path).fork(tmp_path / "a.db")).session
    assert fork.state.forked_from == "a" and fork.state.session_id != "a"
    fork.emit(TurnBegan(turn=4))
    fork.close()
    with closing(reopen(tmp_path / "a.db").session) as first:
        assert first.state.turn == 3


def test_events_of_a_newer_duckflow_are_kept_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    talk(path, 2)
    with closing(Journal(path)) as journal:
        journal.append_row("moon_rose", '{"at": 1.0, "phase": "full"}')
        journal.append_row("turn_began", '{"at": 1.0, "turn": 3, "mood": "calm"}')
        journal.append_row("turn_ended", '{"at": 1.0, "turn": 3, "outcome": "postponed to the new moon"}')
    opened = reopen(path)
    assert opened.salvaged is None
    assert opened.session.state.turn == 3, "a field that is not known takes nothing from the others"
    opened.session.emit(TurnBegan(turn=4))
    opened.session.close()
    fork = Sessions(tmp_path).fork(path)
    for journal_path in (path, fork):
        again = reopen(journal_path)
        assert again.salvaged is None and again.session.state.turn == 4
        again.session.close()
        with closing(Journal(journal_path)) as journal:
            rows = [(row.kind, row.body) for row in journal.rows() if row.kind != "session_titled"][-4:]
        assert [kind for kind, _ in rows] == ["moon_rose", "turn_began", "turn_ended", "turn_began"]
        assert rows[0][1] == '{"at": 1.0, "phase": "full"}' and "calm" in rows[1][1]


def test_unknown_events_are_saved_from_a_damaged_journal(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    talk(path, 1)
    with closing(Journal(path)) as journal:
        journal.append_row("moon_rose", "{}")
        journal.append(TurnBegan(turn=2))
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE events SET crc = 0 WHERE seq = 6")
        db.commit()
    opened = reopen(path)
    assert opened.salvaged is not None and opened.salvaged.kept == 5
    opened.session.close()
    with closing(Journal(path)) as journal:
        assert [row.kind for row in journal.rows()][-2:] == ["moon_rose", "journal_salvaged"]


@pytest.mark.parametrize(("language", "says"), [("en", "Update Duckflow"), ("ja", "更新")])
def test_a_journal_of_a_newer_version_is_left_alone_and_says_what_to_do(
    tmp_path: Path, language: str, says: str
) -> None:
    path = tmp_path / "s.db"
    talk(path, 1)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        db.execute("PRAGMA user_version=3")
        db.commit()
    before = path.read_bytes()
    for opening in (reopen, Sessions(tmp_path).fork, reopen):
        with pytest.raises(JournalError) as problem:
            opening(path)
        assert not isinstance(problem.value, JournalDamaged)
        assert says in Words(language)(problem.value.key, **problem.value.values)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.glob("*.db")] == ["s.db"]


def test_entries_before_and_after_a_zeroed_page_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    talk(path, 120)
    whole = path.read_bytes()
    total = len(reopened(path, whole).messages)
    assert total
    # A row that spans several pages is lost as a whole.
    for page in range(len(whole) // 4096):
        damaged = whole[: page * 4096] + bytes(4096) + whole[(page + 1) * 4096 :]
        kept = reopened(path, damaged)
        assert len(kept.messages) >= total * 0.7, f"page {page + 1}"


def reopened(path: Path, data: bytes) -> AgentState:
    """Opens the file as after a crash of the machine: without its log."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(data)
    session = reopen(path).session
    try:
        session.emit(TurnBegan(turn=999))
        return session.state
    finally:
        session.close()
