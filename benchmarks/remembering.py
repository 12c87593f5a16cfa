"""Drives the product's Bubble and Gravel over recorded conversations, for the reference scorer."""

from pathlib import Path
from typing import cast

from duckflow.memory.bubble import Bubble
from duckflow.memory.gravel import Gravel
from duckflow.memory.settings import MemorySettings
from duckflow.state.message import Message, Role

SESSION = "recorded"


class BenchMemory:
    """Default settings, no model: what is left out is told by the computed digest."""

    def __init__(self, budget: int, folder: Path) -> None:
        self._budget = budget
        self._bubble = Bubble(MemorySettings(budget_tokens=budget))
        self._gravel = Gravel(folder / "archive.db")

    def add(self, message_id: str, role: str, text: str) -> None:
        message = Message(message_id=message_id, role=cast("Role", role), text=text)
        self._gravel.add(SESSION, message)
        self._bubble.add(message)
        self._bubble.fit(self._budget)

    def context(self) -> list[tuple[str | None, str]]:
        """Every message of the prompt; one that was cut, or that tells of others, has no id."""
        whole = {entry.message.message_id for entry in self._bubble.entries if entry.cut is None}
        shown = self._bubble.view(self._budget)
        return [(one.message_id if one.message_id in whole else None, one.text) for one in shown]

    def recall(self, question: str, limit: int) -> list[str]:
        in_context = {entry.message.message_id for entry in self._bubble.entries if entry.cut is None}
        return [found.message_id for found in self._gravel.search(question, limit, leave_out=in_context)]
