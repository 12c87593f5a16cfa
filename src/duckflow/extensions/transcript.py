"""A conversation as other assistants write theirs down: what hooks find where they are told to look."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from duckflow.state.message import Message
from duckflow.store.paths import make_private

AS_OTHERS: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":")}
"""Some hooks look for words in it as others write them: without spaces."""


class HookTranscript:
    """Written on as far as it goes before a hook is told of it; only this session's messages since it began."""

    def __init__(self, path: Path, session_id: str, folder: str) -> None:
        self.path = path
        self._about = {"sessionId": session_id, "cwd": folder}
        self._written: int | None = None

    def write(self, messages: Sequence[Message]) -> str:
        """Where it is; nothing where it cannot be written."""
        try:
            if self._written is None:
                self.path.unlink(missing_ok=True)
                make_private(self.path)
                self._written = 0
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                for message in messages[self._written :]:
                    file.write(json.dumps({**self._about, **_entry(message)}, **AS_OTHERS) + "\n")
        except OSError:
            return ""
        self._written = len(messages)
        return str(self.path)


def said_by(message: Message) -> str:
    """What the model has said to the user in it, or why it acted."""
    return message.text or (message.decision.rationale if message.decision else "")


def _entry(message: Message) -> dict[str, Any]:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(message.at))
    if message.role == "assistant":
        content: list[dict[str, Any]] = [{"type": "text", "text": said_by(message)}]
    elif message.role == "tool":
        content = [{"type": "tool_result", "tool_use_id": message.answers, "content": message.text}]
    else:
        content = [{"type": "text", "text": message.text}]
    role = "assistant" if message.role == "assistant" else "user"
    kind = "system" if message.role == "system" else role
    return {"type": kind, "timestamp": when, "uuid": message.message_id, "message": {"role": role, "content": content}}
