"""What is told of messages that left the context: a digest computed from them, and the model's summaries."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from duckflow.memory.clip import clip
from duckflow.memory.tokens import MESSAGE_OVERHEAD, estimate
from duckflow.state.message import Message
from duckflow.state.noun import shorten

LOOKED_AT = 8000
KEPT = 400
"""Facts of a kind that are remembered; the prompt takes as many as fit."""
LINE = 90

_ENDINGS = "py|js|ts|md|toml|json|ya?ml|c|h|rs|go|java|sh|txt|html|css|sql"
_PATH = re.compile(
    rf"(?<![\w/])(?:[~.]{{0,2}}/)?(?:[\w.-]+/)+[\w-]+(?:\.\w{{1,5}})?|(?<![\w/.])[\w-]+\.(?:{_ENDINGS})\b"
)
_NAME = re.compile(r"\b(?:_{0,2}[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+)+|[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]*)+)\b")
_ERROR = re.compile(r"^.*(?:\b\w*(?:Error|Exception)\b|ERROR|FAILED|エラー|失敗).*$", re.MULTILINE)
_EXIT = re.compile(r"exit code:? (-?\d+)|<returncode>(-?\d+)")


class Digest:
    """Facts of what was left out, the latest last. Old ones give way."""

    def __init__(self) -> None:
        self.messages = 0
        self._facts: dict[str, dict[str, int]] = {"files": {}, "names": {}, "ran": {}, "errors": {}, "said": {}}

    def take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.messages += 1
            for kind, fact in find_facts(message):
                known = self._facts[kind]
                known[fact] = known.pop(fact, 0) + 1
                if len(known) > KEPT:
                    del known[min(list(known)[: KEPT // 2], key=known.__getitem__)]

    def forget(self, words: str) -> None:
        for known in self._facts.values():
            for fact in [one for one in known if words.casefold() in one.casefold()]:
                del known[fact]

    def text(self, tokens: float) -> str:
        """The digest, the most telling first, within a number of tokens."""
        lines: list[str] = []
        room = tokens
        for kind, share in (("errors", 0.15), ("ran", 0.15), ("files", 0.25), ("names", 0.8), ("said", 0.1)):
            if chosen := _fit(self._facts[kind], room * share):
                line = f"{kind}: {(', ' if kind in ('files', 'names') else ' | ').join(chosen)}"
                lines.append(line)
                room -= estimate(line) + 1
        return "\n".join(lines)


def _fit(known: dict[str, int], room: float) -> list[str]:
    """Often named first, then the latest; in the order in which they came."""
    order = {fact: place for place, fact in enumerate(known)}
    chosen: list[str] = []
    room -= 4
    for fact in sorted(known, key=lambda fact: (-min(known[fact], 3), -order[fact])):
        room -= len(fact.encode()) / 3 + 1
        if room < 0:
            break
        chosen.append(fact)
    return sorted(chosen, key=order.__getitem__)


def find_facts(message: Message) -> Iterator[tuple[str, str]]:
    text = message.text[:LOOKED_AT]
    yield from (("files", path) for path in dict.fromkeys(_PATH.findall(text)))
    yield from (("names", name) for name in dict.fromkeys(_NAME.findall(text)))
    if message.role == "tool" and (code := _EXIT.search(text)):
        yield "ran", shorten(f"{message.operation or 'command'} → {code[1] or code[2]}", LINE)
    if message.role == "tool" and (error := _ERROR.search(text)):
        yield "errors", shorten(error[0], LINE)
    if message.role in ("user", "assistant") and (line := gist(message)):
        yield "said", shorten(line, LINE)


def gist(message: Message) -> str:
    """A message in one line. A Decision is told by what was done and said."""
    if message.role == "assistant" and message.text.startswith("{"):
        try:
            decision: Any = json.loads(message.text)
            return _told(cast("dict[str, Any]", decision))
        except (ValueError, TypeError, AttributeError):
            pass
    return next((line for line in message.text.splitlines() if line.strip()), "")


def _told(decision: dict[str, Any]) -> str:
    actions = cast("list[dict[str, Any]]", decision.get("actions") or [])
    return "; ".join(map(_done, actions)) or str(decision.get("rationale", ""))


def _done(action: dict[str, Any]) -> str:
    """What an action said, else what it did to what."""
    args = cast("dict[str, Any]", action.get("args") or {})
    first = next(iter(args.values()), "")
    return str(args.get("text") or f"{action.get('operation', '')} {first}")


class Past:
    """The model's summaries and the computed digest, put into words only when a prompt is built."""

    def __init__(self) -> None:
        self.text = ""
        self.tokens = 0.0
        self._digest: Digest | None = None
        self._leaving: list[Message] = []
        self._summaries: Sequence[str] = ()
        self._room = -1.0

    def take(self, messages: Iterable[Message]) -> None:
        """These leave the context."""
        self._leaving += messages

    def tell_anew(self, messages: Iterable[Message], left_out: int) -> None:
        """Of these only; `left_out` is how many there are in all."""
        self._digest = None
        told = self._told_of(messages)
        told.messages = left_out
        self._leaving, self._room = [], -1.0

    def summarise(self, summaries: Sequence[str]) -> None:
        """What the model says of them."""
        self._summaries, self._room = tuple(summaries), -1.0

    def describe(self, room: float) -> None:
        """Put it into words, within so many tokens. Taking a message in never waits for it."""
        if not self._leaving and self._room == room:
            return
        if self._leaving or self._digest:
            digest = self._told_of(self._leaving)
            self.text = self._told(digest, room - MESSAGE_OVERHEAD) if digest.messages else ""
            self.tokens = estimate(self.text) + MESSAGE_OVERHEAD if self.text else 0.0
        self._leaving, self._room = [], room

    def message(self) -> Message:
        return Message(message_id="past", role="system", text=self.text, at=0.0)

    def _told_of(self, messages: Iterable[Message]) -> "Digest":
        """The digest, with these in it; made with the first message that leaves."""
        if self._digest is None:
            self._digest = Digest()
        self._digest.take(messages)
        return self._digest

    def _told(self, digest: "Digest", room: float) -> str:
        told = [f"[{digest.messages} earlier messages are left out here]"]
        if self._summaries:
            told.append(clip("\n".join(self._summaries), room / 2))
        told.append(digest.text(room - sum(map(estimate, told)) - len(told)))
        return "\n".join(filter(None, told))
