"""Long-term facts of a project: files made, operations done, the last conversations."""

import json
import logging
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from duckflow.state.noun import Line100, shorten

log = logging.getLogger(__name__)

CONVERSATIONS = 5
FILES = 12
OPERATIONS = 8


class Known(BaseModel):
    """What is kept."""

    model_config = ConfigDict(extra="ignore", defer_build=True)

    conversations: dict[str, Line100] = Field(default_factory=dict)
    """By session, the latest last."""
    count: int = 0
    files: list[str] = Field(default_factory=list[str])
    operations: dict[str, int] = Field(default_factory=dict)


class Facts:
    """Kept in one small file; what other sessions wrote meanwhile is read before it is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: list[str] = []
        self._operations: dict[str, int] = {}

    def saw(self, operation: str, changed: tuple[str, ...]) -> None:
        """An action that succeeded."""
        self._operations[operation] = self._operations.get(operation, 0) + 1
        self._files += changed

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
        self._files, self._operations = [], {}
        self._write(known)

    def read(self) -> Known:
        try:
            held: Any = json.loads(self._path.read_text(encoding="utf-8"))
            return Known.model_validate(held)
        except (OSError, ValueError, ValidationError):
            return Known()

    def text(self, session: str) -> str:
        """For the prompt: nothing while nothing is known. The conversation at hand is not told of itself."""
        known = self.read()
        earlier = [title for one, title in known.conversations.items() if one != session and title]
        often = sorted(known.operations, key=known.operations.__getitem__, reverse=True)[:OPERATIONS]
        lines = [
            f"conversations so far: {known.count}; the last: " + " | ".join(earlier) if earlier else "",
            "files made or changed: " + ", ".join(known.files) if earlier and known.files else "",
            "operations done: " + ", ".join(f"{one} {known.operations[one]}" for one in often)
            if earlier and often
            else "",
        ]
        return "\n".join(filter(None, lines))

    def _write(self, known: Known) -> None:
        beside = self._path.with_name(f"{self._path.name}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(known.model_dump_json(), encoding="utf-8")
            beside.chmod(0o600)
            beside.replace(self._path)
        except OSError as problem:
            log.warning("facts %s cannot be written: %s", self._path, problem)
