"""Long-term facts of a project: files made, operations done, the last conversations."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from duckflow.state.noun import ELLIPSIS, holds, shorten
from duckflow.whole_file import write_whole

log = logging.getLogger(__name__)

CONVERSATIONS = 5
FILES = 12
OPERATIONS = 4
PLANS = 200
OWN = ".duckflow/"
LEAST_TITLE = 45
"""Bytes below which a title says nothing; then fewer of them are told."""


class Known:
    """What is kept: conversations by session, the latest last; how many there were; files; operations."""

    def __init__(self, held: Any = None) -> None:
        given = cast("dict[str, Any]", held) if isinstance(held, dict) else {}
        self.conversations: dict[str, str] = dict(given.get("conversations") or {})
        self.count = int(given.get("count") or 0)
        self.files = list(map(str, given.get("files") or ()))
        self.operations = {str(name): int(times) for name, times in dict(given.get("operations") or {}).items()}
        self.tasks = {str(status): int(times) for status, times in dict(given.get("tasks") or {}).items()}
        self.plans = {str(plan): str(status) for plan, status in dict(given.get("plans") or {}).items()}


class ProjectFacts:
    """Kept in one small file; what other sessions wrote meanwhile is read before it is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: list[str] = []
        self._operations: dict[str, int] = {}
        self._tasks: dict[str, int] = {}
        self._plans: dict[str, str] = {}

    def saw(self, operation: str, changed: tuple[str, ...]) -> None:
        """An action that succeeded."""
        self._operations[operation] = self._operations.get(operation, 0) + 1
        self._files += [path for path in changed if not path.startswith(OWN)]

    def task_ended(self, status: str) -> None:
        self._tasks[status] = self._tasks.get(status, 0) + 1

    def plan_ended(self, plan_id: str, status: str) -> None:
        """How it ended last: one that failed may be completed later."""
        self._plans[plan_id] = status

    def successes(self) -> dict[str, int]:
        """Plans and tasks of this project so far, and how many of them were completed."""
        known = self.read()
        plans, tasks = known.plans | self._plans, {**known.tasks}
        for status, times in self._tasks.items():
            tasks[status] = tasks.get(status, 0) + times
        done = sum(status == "completed" for status in plans.values())
        return {
            "plans": len(plans),
            "plans_done": done,
            "tasks": sum(tasks.values()),
            "tasks_done": tasks.get("completed", 0),
        }

    def save(self, session: str, title: str) -> None:
        """At the end of a turn."""
        known = self.read()
        known.count += session not in known.conversations
        known.conversations.pop(session, None)
        known.conversations[session] = shorten(title, 100)
        for old in list(known.conversations)[:-CONVERSATIONS]:
            del known.conversations[old]
        for path in self._files:
            known.files = [one for one in known.files if one != path][-FILES + 1 :] + [path]
        for operation, times in self._operations.items():
            known.operations[operation] = known.operations.get(operation, 0) + times
        for status, times in self._tasks.items():
            known.tasks[status] = known.tasks.get(status, 0) + times
        known.plans = dict(list((known.plans | self._plans).items())[-PLANS:])
        self._files, self._operations, self._tasks, self._plans = [], {}, {}, {}
        self._write(known)

    def forget(self, words: str) -> None:
        """Conversations and files whose names say the words."""
        known = self.read()
        known.conversations = {one: "" if holds(title, words) else title for one, title in known.conversations.items()}
        known.files = [path for path in known.files if not holds(path, words)]
        self._files = [path for path in self._files if not holds(path, words)]
        self._write(known)

    def read(self) -> Known:
        try:
            return Known(json.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return Known()

    def text(self, session: str, room: int) -> str:
        """For the prompt: nothing while nothing is known, and never more than so many bytes.

        The conversation at hand is not told of itself."""
        known = self.read()
        earlier = [title for one, title in known.conversations.items() if one != session and title]
        if not earlier:
            return ""
        often = sorted(known.operations, key=known.operations.__getitem__, reverse=True)[:OPERATIONS]
        each = max(room * 0.6 / len(earlier) - 3, LEAST_TITLE)
        lines = [
            f"conversations: {known.count}; the last: {' | '.join(_latest(earlier, each, room * 0.6))}",
            f"files made or changed: {', '.join(_latest(known.files, room, room * 0.25))}" if known.files else "",
            f"done: {', '.join(f'{one} {known.operations[one]}' for one in often)}" if often else "",
        ]
        told: list[str] = []
        for line in filter(None, lines):
            room -= len(line.encode()) + 1
            if room >= 0:
                told.append(line)
        return "\n".join(told)

    def _write(self, known: Known) -> None:
        try:
            write_whole(self._path, json.dumps(vars(known), ensure_ascii=False))
        except OSError as problem:
            log.warning("facts %s cannot be written: %s", self._path, problem)


def _latest(items: Sequence[str], each: float, room: float) -> list[str]:
    """As many of the latest as there is room for, in the order in which they came."""
    chosen: list[str] = []
    for item in reversed(items):
        short = _cut(item, each)
        room -= len(short.encode()) + 3
        if room < 0:
            break
        chosen.append(short)
    return chosen[::-1]


def _cut(text: str, size: float) -> str:
    """At most so many bytes, whole characters."""
    data = text.encode()
    return text if len(data) <= size else data[: max(0, int(size) - 3)].decode("utf-8", "ignore").rstrip() + ELLIPSIS
