"""Lessons live in a file that a person can edit."""

from pathlib import Path

from duckflow.memory.castle import Castle, ProjectFacts, parse, with_lesson
from duckflow.safety.workspace import Workspace

ROOM = 440


def castle(folder: Path, text: str) -> Castle:
    (folder / ".duckflow").mkdir()
    (folder / ".duckflow/lessons.md").write_text(text, encoding="utf-8")
    return Castle(Workspace(folder))


def test_a_lesson_is_written_once_with_its_kind() -> None:
    text = with_lesson("", "decision: use SQLite")
    assert with_lesson(text, "Decision: use sqlite") == text
    assert with_lesson(text, "run make check").endswith("- [decision] use SQLite\n- [recipe] run make check\n")


def test_lessons_that_a_person_wrote_count_and_stay(tmp_path: Path) -> None:
    written = "# mine\n\n* 深夜に配備しない\nplain text\n- [preference] answer briefly"
    text = with_lesson(written, "failure：TZ matters")
    assert [one.text for one in parse(text)] == ["深夜に配備しない", "answer briefly", "TZ matters"]
    assert text.startswith(written)
    lessons = castle(tmp_path, text)
    assert lessons.forget("配備") == 1 and len(lessons.lessons()) == 2
    assert (tmp_path / ".duckflow/lessons.md").read_text(encoding="utf-8").startswith("# mine\n\nplain text\n")


def test_an_edit_by_hand_counts_at_once(tmp_path: Path) -> None:
    lessons = castle(tmp_path, "- one\n")
    assert len(lessons.lessons()) == 1
    (tmp_path / ".duckflow/lessons.md").write_text("- one\n- and two\n", encoding="utf-8")
    assert len(lessons.lessons()) == 2
    (tmp_path / ".duckflow/lessons.md").unlink()
    assert lessons.lessons() == []


def test_the_most_relevant_lessons_are_chosen(tmp_path: Path) -> None:
    lines = [f"- thing{number} needs tool{number}\n" for number in range(20)]
    lessons = castle(tmp_path, "".join([*lines, "- [preference] short answers\n"]))
    chosen = [one.text for one in lessons.relevant("How do I build thing3?", 2)]
    assert chosen == ["thing3 needs tool3", "short answers"]


def test_facts_name_the_last_five_conversations_and_the_files_made(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    for number in range(8):
        facts = ProjectFacts(path)
        facts.saw("file_ops.write_file", (f"made{number}.py",))
        facts.save(f"session{number}", f"talk {number} " + "長" * 200)
    text = ProjectFacts(path).text("session7", ROOM)
    assert "conversations: 8" in text and "talk 6" in text and "talk 2" not in text
    assert "talk 7" not in text and "made7.py" in text and "file_ops.write_file 8" in text
    for room in (60, 120, 180, ROOM):
        assert len(ProjectFacts(path).text("session7", room).encode()) <= room
    assert ProjectFacts(tmp_path / "none.json").text("s", ROOM) == ""


def test_damaged_facts_begin_empty(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text("{broken", encoding="utf-8")
    assert ProjectFacts(path).text("s", ROOM) == ""
    ProjectFacts(path).save("s", "hello")
    assert ProjectFacts(path).read().conversations == {"s": "hello"}
