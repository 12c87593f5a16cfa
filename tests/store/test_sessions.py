"""Sessions are listed, found, renamed and removed."""

from contextlib import closing
from pathlib import Path

import pytest

from duckflow.agent.session import begin, reopen
from duckflow.errors import JournalInUse, UsageError
from duckflow.events.types import MessageAdded, PlanChanged, TurnBegan, TurnEnded, UsageReported
from duckflow.state.message import Message, Usage
from duckflow.state.plan import Plan
from duckflow.store.journal import Journal
from duckflow.store.sessions import Sessions


def talk(folder: Path, session_id: str, asked: str, plan: str = "", ends: bool = True) -> None:
    session = begin(folder / f"{session_id}.db", session_id, Path("/work") / folder.name, "en")
    session.emit(TurnBegan(turn=1))
    session.emit(MessageAdded(message=Message(role="user", text=asked, turn=1)))
    session.emit(UsageReported(model="m", usage=Usage(prompt_tokens=7, completion_tokens=3, cost_usd=0.25, calls=1)))
    if plan:
        session.emit(PlanChanged(plan=Plan(name=plan, goal="a goal")))
    if ends:
        session.emit(TurnEnded(turn=1, outcome="done"))
    session.close()


def test_sessions_of_this_folder_come_first_each_newest_first(tmp_path: Path) -> None:
    talk(tmp_path / "here", "20260101-aaa", "the first question")
    talk(tmp_path / "there", "20260103-ccc", "elsewhere")
    talk(tmp_path / "here", "20260102-bbb", "the second question", plan="Snake game")
    begin(tmp_path / "here/20260104-empty.db", "20260104-empty", Path("/x"), "en").close()
    sessions = Sessions(tmp_path / "here")
    entries = sessions.all()
    assert [entry.session_id for entry in entries] == ["20260102-bbb", "20260101-aaa", "20260103-ccc"]
    assert [entry.here for entry in entries] == [True, True, False]
    head = entries[0].headline
    assert (head.title, head.asked, head.folder) == ("Snake game", "the second question", "/work/here")
    assert (head.turns, head.cost_usd, head.tokens) == (1, 0.25, 10)
    assert entries[1].headline.title == "the first question"
    assert sessions.latest() == sessions.find("1") == sessions.find("20260102")
    assert sessions.find("3") == sessions.find("20260103-c")
    for wanted in ("nothing", "2026", "", "*", "4"):
        with pytest.raises(UsageError):
            sessions.find(wanted)


def test_a_session_whose_first_turn_was_cut_off_is_still_listed(tmp_path: Path) -> None:
    talk(tmp_path / "here", "20260101-aaa", "a question without an answer", ends=False)
    head = Sessions(tmp_path / "here").latest().headline
    assert (head.title, head.turns, head.cost_usd) == ("a question without an answer", 1, 0.25)


def test_a_journal_that_cannot_be_read_is_listed_so_that_it_can_be_saved(tmp_path: Path) -> None:
    (tmp_path / "20260101-aaa.db").write_bytes(b"this is no database")
    assert Sessions(tmp_path).latest().headline.title == "?"


def test_a_session_keeps_the_name_that_the_user_gave_it(tmp_path: Path) -> None:
    talk(tmp_path, "20260101-aaa", "hi")
    sessions = Sessions(tmp_path)
    sessions.rename(sessions.latest(), "The parser")
    assert sessions.latest().headline.title == "The parser"
    session = reopen(sessions.latest().path).session
    session.emit(TurnBegan(turn=2))
    session.emit(TurnEnded(turn=2, outcome="done"))
    session.close()
    head = sessions.latest().headline
    assert (head.title, head.asked, head.turns) == ("The parser", "hi", 2)


def test_a_session_is_removed_unless_it_is_open(tmp_path: Path) -> None:
    talk(tmp_path, "20260101-aaa", "hi")
    sessions = Sessions(tmp_path)
    entry = sessions.latest()
    with closing(Journal(entry.path)), pytest.raises(JournalInUse):
        sessions.remove(entry)
    sessions.remove(entry)
    assert sessions.here() == [] and list(tmp_path.iterdir()) == []
