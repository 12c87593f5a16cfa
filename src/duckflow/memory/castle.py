"""Castle: lessons of the project, in a plain file that a person can read and edit."""

import os
import re
from typing import Literal, NamedTuple, get_args

from duckflow.errors import ToolError
from duckflow.safety.files import digest
from duckflow.safety.workspace import Workspace
from duckflow.state.data import folded, holds, shorten

Kind = Literal["recipe", "failure", "decision", "preference"]
FILE = ".duckflow/lessons.md"
LESSON_LENGTH = 300
READ_LIMIT = 200_000
_LINE = r"^\s*[-*]\s+(?:\[(\w+)\]\s+)?(.+?)\s*$"


class Lesson(NamedTuple):
    """One lesson: a line of the file."""

    kind: str
    text: str

    def line(self) -> str:
        return f"- [{self.kind}] {self.text}"


class Castle:
    """The lessons of one work folder. The file is read again whenever it has changed; a link in its place is
    ignored."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._stamp: tuple[float, int] | None = None
        self._lessons: list[Lesson] = []

    def lessons(self) -> list[Lesson]:
        if not os.path.lexists(self._workspace.root / FILE):
            # Most folders have no lessons; for those, the code that makes paths safe is not loaded.
            self._lessons, self._stamp = [], None
            return self._lessons
        try:
            status = self._workspace.stat(FILE, follow=False)
            stamp = (status.modified, status.size)
            if status.kind != "file" or status.path != FILE:
                self._lessons, self._stamp = [], None
            elif stamp != self._stamp:
                self._lessons, self._stamp = parse(self._read().decode("utf-8", "replace")), stamp
        except (OSError, ToolError):
            self._lessons, self._stamp = [], None
        return self._lessons

    def holding(self, words: str) -> list[Lesson]:
        return [lesson for lesson in self.lessons() if holds(lesson.line(), words)]

    def forget(self, words: str) -> int:
        """Deletes the lessons that contain these words, and returns their number.

        Raises OSError or ToolError when the file cannot be written, or was changed meanwhile."""
        if not self.holding(words):
            return 0
        data = self._read()
        lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
        remaining = [line for line in lines if not (re.match(_LINE, line) and holds(line, words))]
        self._workspace.write_atomic(FILE, "".join(remaining).encode("utf-8", "surrogateescape"), digest(data))
        return len(lines) - len(remaining)

    def relevant(self, question: str, limit: int) -> list[Lesson]:
        """Returns the preferences, and the lessons that have most in common with the question; among equals the newer
        ones."""
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


def with_lesson(before: str, text: str) -> str:
    """Returns the file's text with one more lesson; the same text when it is there already.

    The lesson may begin with its kind, as in "failure: …"."""
    lesson = lesson_of(text)
    if any(folded(known.text) == folded(lesson.text) for known in parse(before)):
        return before
    gap = "" if not before or before.endswith("\n") else "\n"
    return f"{before}{gap}{lesson.line()}\n"


def lesson_of(text: str) -> Lesson:
    """Returns the lesson in one line, with its kind."""
    kind, colon, body = shorten(text.replace("：", ":", 1), LESSON_LENGTH).partition(":")
    if colon and body.strip() and kind.strip().lower() in get_args(Kind):
        return Lesson(kind.strip().lower(), body.strip())
    return Lesson("recipe", shorten(text, LESSON_LENGTH))


def parse(text: str) -> list[Lesson]:
    """Reads every list item as a lesson, however a person has written it."""
    lessons: list[Lesson] = []
    for line in text.splitlines():
        if match := re.match(_LINE, line):
            kind, body = match[1], match[2]
            lessons.append(Lesson(kind, body) if kind in get_args(Kind) else Lesson("recipe", line.strip(" -*\t")))
    return lessons
