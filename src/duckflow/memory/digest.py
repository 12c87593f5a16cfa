"""What messages that are left out were about, computed: files, names, commands, errors, decisions, first lines."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from duckflow.memory.tokens import estimate
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
            for kind, fact in facts(message):
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
            if chosen := _fitting(self._facts[kind], room * share):
                line = f"{kind}: {(', ' if kind in ('files', 'names') else ' | ').join(chosen)}"
                lines.append(line)
                room -= estimate(line) + 1
        return "\n".join(lines)


def _fitting(known: dict[str, int], room: float) -> list[str]:
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


def facts(message: Message) -> Iterator[tuple[str, str]]:
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
