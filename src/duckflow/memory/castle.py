"""Castle: knowledge about the project from earlier sessions. Lessons stand in a plain file that a person can read and
edit. Facts (files made or changed, operations done, the last conversations) are stored when a turn ends."""

import json
import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

from duckflow.errors import ToolError
from duckflow.safety.files import digest
from duckflow.safety.workspace import Workspace
from duckflow.state.data import ELLIPSIS, folded, holds, shorten
from duckflow.whole_file import write_whole

Kind = Literal["recipe", "failure", "decision", "preference"]
FILE = ".duckflow/lessons.md"
LESSON_LENGTH = 300
READ_LIMIT = 200_000
_LINE = r"^\s*[-*]\s+(?:\[(\w+)\]\s+)?(.+?)\s*$"


class Lesson(NamedTuple):
    """One lesson, which is one line of the file of lessons."""

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
            time_and_size = (status.modified, status.size)
            if status.kind != "file" or status.path != FILE:
                self._lessons, self._stamp = [], None
            elif time_and_size != self._stamp:
                self._lessons, self._stamp = parse(self._read().decode("utf-8", "replace")), time_and_size
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
        remaining_lines = [line for line in lines if not (re.match(_LINE, line) and holds(line, words))]
        self._workspace.write_atomic(FILE, "".join(remaining_lines).encode("utf-8", "surrogateescape"), digest(data))
        return len(lines) - len(remaining_lines)

    def relevant(self, question: str, limit: int) -> list[Lesson]:
        """Returns the preferences, and the lessons that share most words with the question; of equal lessons, the newer
        ones come first."""
        lessons = self.lessons()
        if len(lessons) <= limit:
            return list(lessons)
        from duckflow.i18n.terms import telling, terms

        question_terms = terms(question)

        def value(place: int) -> tuple[float, int]:
            lesson = lessons[place]
            shared_weight = sum(telling(term) for term in question_terms & terms(lesson.text))
            return shared_weight + (1.5 if lesson.kind == "preference" else 0.0), place

        best_places = sorted(range(len(lessons)), key=value, reverse=True)[:limit]
        return [lessons[place] for place in sorted(best_places)]

    def _read(self) -> bytes:
        with self._workspace.open(FILE) as open_file:
            return open_file.read(READ_LIMIT)


def with_lesson(before: str, text: str) -> str:
    """Returns the file's text with one more lesson; the same text if it already has the lesson. The lesson may begin
    with its kind, as in "failure: …"."""
    lesson = lesson_of(text)
    if any(folded(known_lesson.text) == folded(lesson.text) for known_lesson in parse(before)):
        return before
    gap = "" if not before or before.endswith("\n") else "\n"
    return f"{before}{gap}{lesson.line()}\n"


def lesson_of(text: str) -> Lesson:
    """Reads a lesson from a text, as one line with its kind."""
    kind, colon, lesson_text = shorten(text.replace("：", ":", 1), LESSON_LENGTH).partition(":")
    if colon and lesson_text.strip() and kind.strip().lower() in get_args(Kind):
        return Lesson(kind.strip().lower(), lesson_text.strip())
    return Lesson("recipe", shorten(text, LESSON_LENGTH))


def parse(text: str) -> list[Lesson]:
    """Reads every list item as a lesson, in whatever style a person has written it."""
    lessons: list[Lesson] = []
    for line in text.splitlines():
        if match := re.match(_LINE, line):
            kind, body = match[1], match[2]
            lessons.append(Lesson(kind, body) if kind in get_args(Kind) else Lesson("recipe", line.strip(" -*\t")))
    return lessons


log = logging.getLogger(__name__)

CONVERSATIONS = 5
FILES = 12
OPERATIONS = 4
PLANS = 200
OWN = ".duckflow/"
LEAST_TITLE = 45
"""The fewest bytes of a title that say something. Titles are not cut further; fewer titles are shown instead."""


class Known:
    """The stored facts: conversations by session (the latest last), the number of conversations, files, operations, and
    how tasks and plans ended."""

    def __init__(self, held: Any = None) -> None:
        fields = cast("dict[str, Any]", held) if isinstance(held, dict) else {}
        self.conversations: dict[str, str] = dict(fields.get("conversations") or {})
        self.count = int(fields.get("count") or 0)
        self.files = list(map(str, fields.get("files") or ()))
        self.operations = {str(name): int(times) for name, times in dict(fields.get("operations") or {}).items()}
        self.tasks = {str(status): int(times) for status, times in dict(fields.get("tasks") or {}).items()}
        self.plans = {str(plan): str(status) for plan, status in dict(fields.get("plans") or {}).items()}


class ProjectFacts:
    """The facts in one small file. Before the file is written, the changes of other sessions are read from it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: list[str] = []
        self._operations: dict[str, int] = {}
        self._tasks: dict[str, int] = {}
        self._plans: dict[str, str] = {}

    def saw(self, operation: str, changed: tuple[str, ...]) -> None:
        """Notes an operation that succeeded, and the files that it changed."""
        self._operations[operation] = self._operations.get(operation, 0) + 1
        self._files += [path for path in changed if not path.startswith(OWN)]

    def task_ended(self, status: str) -> None:
        self._tasks[status] = self._tasks.get(status, 0) + 1

    def plan_ended(self, plan_id: str, status: str) -> None:
        """Notes how a plan ended. Only the last end counts, because a plan that failed may be completed later."""
        self._plans[plan_id] = status

    def successes(self) -> dict[str, int]:
        """Returns the number of plans and tasks of this project so far, and how many of them were completed."""
        facts = self.read()
        plans, tasks = facts.plans | self._plans, {**facts.tasks}
        for status, times in self._tasks.items():
            tasks[status] = tasks.get(status, 0) + times
        plans_done = sum(status == "completed" for status in plans.values())
        return {
            "plans": len(plans),
            "plans_done": plans_done,
            "tasks": sum(tasks.values()),
            "tasks_done": tasks.get("completed", 0),
        }

    def save(self, session: str, title: str) -> None:
        """Stores the facts at the end of a turn."""
        facts = self.read()
        facts.count += session not in facts.conversations
        facts.conversations.pop(session, None)
        facts.conversations[session] = shorten(title, 100)
        for old_session in list(facts.conversations)[:-CONVERSATIONS]:
            del facts.conversations[old_session]
        for path in self._files:
            facts.files = [other_path for other_path in facts.files if other_path != path][-FILES + 1 :] + [path]
        for operation, times in self._operations.items():
            facts.operations[operation] = facts.operations.get(operation, 0) + times
        for status, times in self._tasks.items():
            facts.tasks[status] = facts.tasks.get(status, 0) + times
        facts.plans = dict(list((facts.plans | self._plans).items())[-PLANS:])
        self._files, self._operations, self._tasks, self._plans = [], {}, {}, {}
        self._write(facts)

    def forget(self, words: str) -> None:
        """Forgets conversations and files whose names contain the words."""
        facts = self.read()
        facts.conversations = {
            session: "" if holds(title, words) else title for session, title in facts.conversations.items()
        }
        facts.files = [path for path in facts.files if not holds(path, words)]
        self._files = [path for path in self._files if not holds(path, words)]
        self._write(facts)

    def read(self) -> Known:
        try:
            return Known(json.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return Known()

    def text(self, session: str, room: int) -> str:
        """Returns the facts for the prompt, in at most `room` bytes; empty while no facts are known. The present
        conversation is left out."""
        facts = self.read()
        earlier_titles = [
            title for other_session, title in facts.conversations.items() if other_session != session and title
        ]
        if not earlier_titles:
            return ""
        frequent_operations = sorted(facts.operations, key=facts.operations.__getitem__, reverse=True)[:OPERATIONS]
        title_room = max(room * 0.6 / len(earlier_titles) - 3, LEAST_TITLE)
        lines = [
            f"conversations: {facts.count}; the last: {' | '.join(_latest(earlier_titles, title_room, room * 0.6))}",
            f"files made or changed: {', '.join(_latest(facts.files, room, room * 0.25))}" if facts.files else "",
            f"done: {', '.join(f'{operation} {facts.operations[operation]}' for operation in frequent_operations)}"
            if frequent_operations
            else "",
        ]
        chosen_lines: list[str] = []
        for line in filter(None, lines):
            room -= len(line.encode()) + 1
            if room >= 0:
                chosen_lines.append(line)
        return "\n".join(chosen_lines)

    def _write(self, known: Known) -> None:
        try:
            write_whole(self._path, json.dumps(vars(known), ensure_ascii=False))
        except OSError as problem:
            log.warning("facts %s cannot be written: %s", self._path, problem)


def _latest(items: Sequence[str], each: float, room: float) -> list[str]:
    """Returns as many of the latest items as there is room for, in the order in which they came."""
    chosen_items: list[str] = []
    for item in reversed(items):
        short_item = _cut(item, each)
        room -= len(short_item.encode()) + 3
        if room < 0:
            break
        chosen_items.append(short_item)
    return chosen_items[::-1]


def _cut(text: str, size: float) -> str:
    """Cuts a text to at most `size` bytes, in whole characters."""
    data = text.encode()
    return text if len(data) <= size else data[: max(0, int(size) - 3)].decode("utf-8", "ignore").rstrip() + ELLIPSIS
