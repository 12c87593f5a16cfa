"""A model's thinking: in fields beside the reply, or between tags at the beginning of its text."""

from typing import Any

from duckflow.state.data import tables

OPEN, CLOSE = "<think>", "</think>"
LONGEST_LEAD = 1000
"""Characters of leading space that may be held back while waiting for the first word of a reply."""


class Thoughts:
    """Filters the thoughts between tags out of the beginning of a reply."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._over = False
        self.heard = ""
        """The thoughts that have come so far."""

    def pass_on(self, text: str) -> str:
        if self._over:
            return text
        self._held += text
        if not self._inside:
            start = self._held.lstrip()
            if not start.startswith(OPEN):
                waits = OPEN.startswith(start) and len(self._held) < LONGEST_LEAD
                return "" if waits else self._release(self._held)
            self._inside = True
            self._held = start.removeprefix(OPEN)
        thought, closed, reply = self._held.partition(CLOSE)
        if closed:
            self.heard += thought
            return self._release(reply.lstrip())
        self.heard += thought[: -len(CLOSE)]
        self._held = thought[-len(CLOSE) :]
        return ""

    def rest(self) -> str:
        """Returns the text that was held back for a tag that never came; called when the reply has ended."""
        return "" if self._inside or self._over else self._release(self._held)

    def _release(self, text: str) -> str:
        self._over = True
        self._held = ""
        return text


THOUGHTS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
PHASE = "phase"
"""Field that says whether a text of a reply is the answer or a remark on the way to it."""
GROWING = ("text", "summary", "data")


class ThoughtCollector:
    """Collects a model's thoughts under the field names they came by: some endpoints want them back with the calls."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}

    def take(self, message: dict[str, Any]) -> str:
        """Returns the text that this piece adds. A text that comes under two names is returned once."""
        texts = {name: message[name] for name in THOUGHTS if isinstance(message.get(name), str) and message[name]}
        for name, text in texts.items():
            self.fields[name] = self.fields.get(name, "") + text
        if message.get(PHASE):
            self.fields[PHASE] = message[PHASE]
        for piece in tables(message.get(DETAILS)):
            self._detail(piece)
        return next(iter(texts.values()), "")

    def _detail(self, piece: dict[str, Any]) -> None:
        details: list[dict[str, Any]] = self.fields.setdefault(DETAILS, [])
        same = next((detail for detail in details if detail.get("index") == piece.get("index") is not None), None)
        if same is None or same.get("type") != piece.get("type"):
            details.append(dict(piece))
            return
        for name, value in piece.items():
            grows = name in GROWING and isinstance(value, str) and isinstance(same.get(name), str)
            same[name] = same[name] + value if grows else value if value is not None else same.get(name)
