"""Castle: lessons of the project, in a plain file that a person can read and edit."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from duckflow.memory.terms import indexed, telling
from duckflow.state.noun import shorten

Kind = Literal["recipe", "failure", "decision", "preference"]
FILE = Path(".duckflow") / "lessons.md"
HEADING = "# Lessons\n\nOne line each; edit or delete them as you like.\n\n"
LESSON_LENGTH = 300
READ_LIMIT = 200_000
_LINE = re.compile(r"^\s*[-*]\s+(?:\[(\w+)\]\s+)?(.+?)\s*$")


@dataclass(frozen=True, slots=True)
class Lesson:
    """One line of the file."""

    kind: str
    text: str

    def line(self) -> str:
        return f"- [{self.kind}] {self.text}"


class Castle:
    """The lessons of one work folder. The file is read anew each time it has changed."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._stamp: tuple[int, int] = (0, 0)
        self._lessons: list[Lesson] = []

    def lessons(self) -> list[Lesson]:
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                with self.path.open(encoding="utf-8", errors="replace") as file:
                    self._lessons = parse(file.read(READ_LIMIT))
                self._stamp = stamp
        except OSError:
            self._lessons, self._stamp = [], (0, 0)
        return self._lessons

    def remember(self, text: str) -> bool:
        """Write a lesson down; a kind may stand before it, as in "failure: …". False when it is there already.

        Raises OSError when the file cannot be written."""
        lesson = lesson_of(text)
        if any(one.text.casefold() == lesson.text.casefold() for one in self.lessons()):
            return False
        self.path.parent.mkdir(exist_ok=True)
        before = self.path.read_text(encoding="utf-8", errors="replace") if self.path.exists() else HEADING
        gap = "" if before.endswith("\n") else "\n"
        self._replace(f"{before}{gap}{lesson.line()}\n")
        return True

    def forget(self, words: str) -> int:
        """Delete the lessons with these words in them. How many there were."""
        if not self.lessons():
            return 0
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        kept = [line for line in lines if not (_LINE.match(line) and words.casefold() in line.casefold())]
        if len(kept) < len(lines):
            self._replace("".join(kept))
        return len(lines) - len(kept)

    def relevant(self, question: str, limit: int) -> list[Lesson]:
        """The preferences, and the lessons that share most with the question; newer ones first among equals."""
        lessons = self.lessons()
        if len(lessons) <= limit:
            return list(lessons)
        asked = _terms(question)

        def value(place: int) -> tuple[float, int]:
            lesson = lessons[place]
            shared = sum(telling(term) for term in asked & _terms(lesson.text))
            return shared + (1.5 if lesson.kind == "preference" else 0.0), place

        best = sorted(range(len(lessons)), key=value, reverse=True)[:limit]
        return [lessons[place] for place in sorted(best)]

    def _replace(self, text: str) -> None:
        """Whole or not at all."""
        beside = self.path.with_name(f"{self.path.name}.new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self.path)


def lesson_of(text: str) -> Lesson:
    """What is said, in one line, and of which kind it is."""
    kind, colon, said = shorten(text, LESSON_LENGTH).partition(":")
    if colon and said.strip() and kind.strip().lower() in get_args(Kind):
        return Lesson(kind.strip().lower(), said.strip())
    return Lesson("recipe", shorten(text, LESSON_LENGTH))


def parse(text: str) -> list[Lesson]:
    """Every list item is a lesson, however a person has written it."""
    lessons: list[Lesson] = []
    for line in text.splitlines():
        if match := _LINE.match(line):
            kind, said = match[1], match[2]
            lessons.append(Lesson(kind, said) if kind in get_args(Kind) else Lesson("recipe", line.strip(" -*\t")))
    return lessons


def _terms(text: str) -> set[str]:
    return set(re.findall(r"\w{2,}", indexed(text).lower()))
