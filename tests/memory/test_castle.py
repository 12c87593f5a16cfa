"""Lessons live in a file that a person can edit."""

from pathlib import Path

from duckflow.memory.castle import Castle
from duckflow.memory.facts import Facts


def test_a_lesson_is_written_once_with_its_kind(tmp_path: Path) -> None:
    castle = Castle(tmp_path)
    assert castle.remember("decision: use SQLite")
    assert not castle.remember("Decision: use sqlite")
    assert castle.remember("run make check before a commit")
    text = castle.path.read_text(encoding="utf-8")
    assert "- [decision] use SQLite\n" in text and "- [recipe] run make check" in text


def test_what_a_person_wrote_counts_and_stays(tmp_path: Path) -> None:
    castle = Castle(tmp_path)
    castle.path.parent.mkdir()
    castle.path.write_text("# mine\n\n* 深夜に配備しない\nplain text\n- [preference] answer briefly", encoding="utf-8")
    castle.remember("failure: TZ matters")
    assert [one.text for one in castle.lessons()] == ["深夜に配備しない", "answer briefly", "TZ matters"]
    assert castle.path.read_text(encoding="utf-8").startswith("# mine\n")
    assert castle.forget("配備") == 1 and len(castle.lessons()) == 2


def test_the_most_relevant_few_are_chosen(tmp_path: Path) -> None:
    castle = Castle(tmp_path)
    for number in range(20):
        castle.remember(f"recipe: thing{number} needs tool{number}")
    castle.remember("preference: short answers")
    chosen = [one.text for one in castle.relevant("How do I build thing3?", 2)]
    assert chosen == ["thing3 needs tool3", "short answers"]


def test_facts_tell_of_the_last_five_conversations_and_what_was_made(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    for number in range(8):
        facts = Facts(path)
        facts.saw("file_ops.write_file", (f"made{number}.py",))
        facts.save(f"session{number}", f"conversation {number} " + "x" * 200)
    text = Facts(path).text("session7")
    assert "conversations so far: 8" in text and "conversation 6" in text and "conversation 2" not in text
    assert "conversation 7" not in text and "made7.py" in text and "file_ops.write_file 8" in text
    assert Facts(tmp_path / "none.json").text("s") == ""


def test_facts_that_are_damaged_are_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text("{broken", encoding="utf-8")
    assert Facts(path).text("s") == ""
    Facts(path).save("s", "hello")
    assert Facts(path).read().conversations == {"s": "hello"}
