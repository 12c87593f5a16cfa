"""The archive finds Japanese, English and code again, across sessions, and survives damage."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from duckflow.memory.gravel import Gravel
from duckflow.state.message import Message

SAID = [
    "本番の配備は毎週木曜の深夜に行う",
    "The migrations were failing because of a missing index",
    "see getUserName in src/api/users.py",
    "the retry limit is max_retry_count = 7",
    "ログの保存期間は三十日",
    "nothing of interest here",
    "山に登った",
]


@pytest.fixture
def gravel(tmp_path: Path) -> Iterator[Gravel]:
    gravel = Gravel(tmp_path / "archive.db")
    for text in SAID:
        gravel.add("one", Message(role="user", text=text))
    yield gravel
    gravel.close()


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("木曜", 0),
        ("配備", 0),
        ("why did the migration fail?", 1),
        ("get_user_name", 2),
        ("where is users.py", 2),
        ("maxRetryCount", 3),
        ("ＬＯＧ ログ 期間", 4),
        ("山", 6),
    ],
)
def test_a_word_in_another_form_finds_the_message(gravel: Gravel, question: str, place: int) -> None:
    assert gravel.search(question, 1)[0].text == SAID[place]


def test_messages_in_the_context_are_left_out(gravel: Gravel) -> None:
    found = gravel.search("木曜の配備", 1)[0]
    assert found.message_id not in [one.message_id for one in gravel.search("木曜の配備", 5, {found.message_id})]


def test_another_session_of_the_project_finds_it_too(tmp_path: Path, gravel: Gravel) -> None:
    gravel.close()
    later = Gravel(tmp_path / "archive.db")
    assert later.search("retry limit", 1)[0].session == "one"


def test_two_sessions_write_at_the_same_time(tmp_path: Path, gravel: Gravel) -> None:
    other = Gravel(tmp_path / "archive.db")
    for number in range(80):
        gravel.add("one", Message(role="user", text=f"left{number}"))
        other.add("two", Message(role="user", text=f"right{number}"))
    assert gravel.search("right79", 1)[0].session == "two"
    assert other.search("left79", 1)[0].session == "one"


def test_forgotten_messages_are_not_found(gravel: Gravel) -> None:
    (found,) = gravel.holding("木曜")
    gravel.forget([found.number])
    assert not [one for one in gravel.search("木曜の配備", 5) if "木曜" in one.text]
    said = Message(message_id=found.message_id, role="user", text=found.text, at=found.at)
    assert gravel.catch_up("one", [said]) == {found.message_id}, "the session is told, and does not bring it back"
    assert gravel.holding("木曜") == [] and gravel.count() == len(SAID) - 1


def test_a_session_from_before_the_archive_is_taken_in_once(tmp_path: Path) -> None:
    gravel = Gravel(tmp_path / "archive.db")
    messages = [Message(role="user", text=f"old word{number}") for number in range(5)]
    gravel.catch_up("s", messages)
    gravel.catch_up("s", messages)
    assert gravel.count() == 5


def test_a_damaged_archive_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    path.write_bytes(b"this is no database" * 100)
    gravel = Gravel(path)
    gravel.add("s", Message(role="user", text="fresh start"))
    assert gravel.search("fresh", 1) and (tmp_path / "archive.damaged").exists()


def test_odd_questions_find_nothing_and_break_nothing(gravel: Gravel) -> None:
    for question in ("", '"', "* OR NEAR(", "\x00", "💥", "\ud800", "a" * 100_000):
        gravel.search(question, 5)
        gravel.add("one", Message(role="user", text=question))
    assert gravel.search("木曜", 1)
