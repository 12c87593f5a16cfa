"""What a model thinks: beside its reply, or in it, between tags, before it says anything."""

from typing import Any

from duckflow.state.noun import tables

OPEN, CLOSE = "<think>", "</think>"
LONGEST_LEAD = 1000
"""Spaces before a reply for which its first word is waited for."""


class Thoughts:
    """Lets a reply through without the thoughts at its beginning."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._over = False
        self.heard = ""
        """What was thought, as far as it has come."""

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
        """What was held back when the reply ended, waiting for a tag that never came."""
        return "" if self._inside or self._over else self._release(self._held)

    def _release(self, text: str) -> str:
        self._over = True
        self._held = ""
        return text


THOUGHTS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
PHASE = "phase"
"""What a text of a reply is: the answer, or a remark on the way."""
GROWING = ("text", "summary", "data")


class ThoughtCollector:
    """Keeps what a model thought under the names it came by: some endpoints want it back with the calls."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}

    def take(self, said: dict[str, Any]) -> str:
        """The text that this piece adds; one that comes under two names is told once."""
        texts = {name: said[name] for name in THOUGHTS if isinstance(said.get(name), str) and said[name]}
        for name, text in texts.items():
            self.fields[name] = self.fields.get(name, "") + text
        if said.get(PHASE):
            self.fields[PHASE] = said[PHASE]
        for piece in tables(said.get(DETAILS)):
            self._detail(piece)
        return next(iter(texts.values()), "")

    def _detail(self, piece: dict[str, Any]) -> None:
        kept: list[dict[str, Any]] = self.fields.setdefault(DETAILS, [])
        same = next((one for one in kept if one.get("index") == piece.get("index") is not None), None)
        if same is None or same.get("type") != piece.get("type"):
            kept.append(dict(piece))
            return
        for name, value in piece.items():
            grows = name in GROWING and isinstance(value, str) and isinstance(same.get(name), str)
            same[name] = same[name] + value if grows else value if value is not None else same.get(name)
