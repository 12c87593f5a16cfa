"""Castle: lessons of the project, in a plain file that a person can read and edit."""

import os
import re
from typing import Literal, NamedTuple, get_args

from duckflow.errors import ToolError
from duckflow.safety.files import digest
from duckflow.safety.workspace import Workspace
from duckflow.state.noun import folded, holds, shorten

Kind = Literal["recipe", "failure", "decision", "preference"]
FILE = ".duckflow/lessons.md"
LESSON_LENGTH = 300
READ_LIMIT = 200_000
_LINE = r"^\s*[-*]\s+(?:\[(\w+)\]\s+)?(.+?)\s*$"


class Lesson(NamedTuple):
    """One line of the file."""

    kind: str
    text: str

    def line(self) -> str:
        return f"- [{self.kind}] {self.text}"


class Castle:
    """The lessons of one work folder. The file is read anew each time it has changed; a link in its place is not."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._stamp: tuple[float, int] | None = None
        self._lessons: list[Lesson] = []

    def lessons(self) -> list[Lesson]:
        if not os.path.lexists(self._workspace.root / FILE):
            # Most folders have none; what makes paths safe is not loaded for that.
            self._lessons, self._stamp = [], None
            return self._lessons
        try:
            found = self._workspace.stat(FILE, follow=False)
            stamp = (found.modified, found.size)
            if found.kind != "file" or found.path != FILE:
                self._lessons, self._stamp = [], None
            elif stamp != self._stamp:
                self._lessons, self._stamp = parse(self._read().decode("utf-8", "replace")), stamp
        except (OSError, ToolError):
            self._lessons, self._stamp = [], None
        return self._lessons

    def holding(self, words: str) -> list[Lesson]:
        return [one for one in self.lessons() if holds(one.line(), words)]

    def forget(self, words: str) -> int:
        """Delete the lessons with these words in them. How many there were.

        Raises OSError or ToolError when the file cannot be written, or was changed meanwhile."""
        if not self.holding(words):
            return 0
        data = self._read()
        lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
        kept = [line for line in lines if not (re.match(_LINE, line) and holds(line, words))]
        self._workspace.write_atomic(FILE, "".join(kept).encode("utf-8", "surrogateescape"), digest(data))
        return len(lines) - len(kept)

    def relevant(self, question: str, limit: int) -> list[Lesson]:
        """The preferences, and the lessons that share most with the question; newer ones first among equals."""
        lessons = self.lessons()
        if len(lessons) <= limit:
            return list(lessons)
        from duckflow.memory.terms import telling, terms

        asked = terms(question)

        def value(place: int) -> tuple[float, int]:
            lesson = lessons[place]
            shared = sum(telling(term) for term in asked & terms(lesson.text))
            return shared + (1.5 if lesson.kind == "preference" else 0.0), place

        best = sorted(range(len(lessons)), key=value, reverse=True)[:limit]
        return [lessons[place] for place in sorted(best)]

    def _read(self) -> bytes:
        with self._workspace.open(FILE) as file:
            return file.read(READ_LIMIT)


def with_lesson(before: str, said: str) -> str:
    """The file's text with one lesson more; the same text when it is there already.

    A kind may stand before it, as in "failure: …"."""
    lesson = lesson_of(said)
    if any(folded(one.text) == folded(lesson.text) for one in parse(before)):
        return before
    gap = "" if not before or before.endswith("\n") else "\n"
    return f"{before}{gap}{lesson.line()}\n"


def lesson_of(text: str) -> Lesson:
    """What is said, in one line, and of which kind it is."""
    kind, colon, said = shorten(text.replace("：", ":", 1), LESSON_LENGTH).partition(":")
    if colon and said.strip() and kind.strip().lower() in get_args(Kind):
        return Lesson(kind.strip().lower(), said.strip())
    return Lesson("recipe", shorten(text, LESSON_LENGTH))


def parse(text: str) -> list[Lesson]:
    """Every list item is a lesson, however a person has written it."""
    lessons: list[Lesson] = []
    for line in text.splitlines():
        if match := re.match(_LINE, line):
            kind, said = match[1], match[2]
            lessons.append(Lesson(kind, said) if kind in get_args(Kind) else Lesson("recipe", line.strip(" -*\t")))
    return lessons
