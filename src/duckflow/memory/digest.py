"""Digests: notes on messages that left the context, computed from those messages."""

import re
from collections.abc import Iterable, Iterator

from duckflow.i18n.words import joined
from duckflow.memory.tokens import estimate
from duckflow.state.action import Action
from duckflow.state.data import shorten
from duckflow.state.message import Message

LOOKED_AT = 8000
KEPT = 400
"""The largest number of facts of each kind that are remembered. The prompt takes as many of them as fit."""
LINE = 90

_ENDINGS = "py|js|ts|md|toml|json|ya?ml|c|h|rs|go|java|sh|txt|html|css|sql"
_PATH = rf"(?<![\w/])(?:[~.]{{0,2}}/)?(?:[\w.-]+/)+[\w-]+(?:\.\w{{1,5}})?|(?<![\w/.])[\w-]+\.(?:{_ENDINGS})\b"
_NAME = r"\b(?:_{0,2}[A-Za-z][a-z0-9]*(?:_[A-Za-z0-9]+)+|[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]*)+)\b"
_EXIT = r"exit code:? (-?\d+)|<returncode>(-?\d+)"


class Digest:
    """Facts from messages that were left out, the latest last. Old facts are dropped first."""

    def __init__(self) -> None:
        self.messages = 0
        self._facts: dict[str, dict[str, int]] = {"files": {}, "names": {}, "ran": {}, "errors": {}, "said": {}}

    def take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.messages += 1
            for kind, fact in find_facts(message):
                fact_counts = self._facts[kind]
                fact_counts[fact] = fact_counts.pop(fact, 0) + 1
                if len(fact_counts) > KEPT:
                    del fact_counts[min(list(fact_counts)[: KEPT // 2], key=fact_counts.__getitem__)]

    def text(self, tokens: float) -> str:
        """Returns the digest within a number of tokens, the most important facts first."""
        lines: list[str] = []
        tokens_left = tokens
        for kind, share in (("errors", 0.15), ("ran", 0.15), ("files", 0.25), ("names", 0.8), ("said", 0.1)):
            if chosen_facts := _fit(self._facts[kind], tokens_left * share):
                line = f"{kind}: {(', ' if kind in ('files', 'names') else ' | ').join(chosen_facts)}"
                lines.append(line)
                tokens_left -= estimate(line) + 1
        return "\n".join(lines)


def _fit(known: dict[str, int], room: float) -> list[str]:
    """Chooses facts that fit: first the facts that are named often, then the latest. Returns them in the order in which
    they came."""
    place_by_fact = {fact: index for index, fact in enumerate(known)}
    chosen_facts: list[str] = []
    room -= 4
    for fact in sorted(known, key=lambda fact: (-min(known[fact], 3), -place_by_fact[fact])):
        room -= len(fact.encode()) / 3 + 1
        if room < 0:
            break
        chosen_facts.append(fact)
    return sorted(chosen_facts, key=place_by_fact.__getitem__)


def find_facts(message: Message) -> Iterator[tuple[str, str]]:
    line = gist(message) if message.role in ("user", "assistant") else ""
    # In a Decision, only the arguments of its operations count.
    actions = message.decision.actions if message.decision else []
    argument_texts = [str(value) for action in actions for value in action.args.values()]
    text = ("\n".join(argument_texts) if message.decision else message.text)[:LOOKED_AT]
    yield from (("files", path) for path in dict.fromkeys(re.findall(_PATH, text)))
    yield from (("names", name) for name in dict.fromkeys(re.findall(_NAME, text)))
    if message.role == "tool":
        exit_match = re.search(_EXIT, text)
        code = exit_match[1] or exit_match[2] if exit_match else ""
        if code:
            yield "ran", shorten(f"{message.operation or 'command'} → {code}", LINE)
        # Text that looks like an error in a file that was read is not one.
        if (text.startswith("ERROR") or code not in ("", "0")) and (error := _error_line(text)):
            yield "errors", shorten(error, LINE)
    if line:
        yield "said", shorten(line, LINE)


def _error_line(text: str) -> str:
    error = re.search(rf"(?m)^.*{joined('output.error_line', text)}.*$", text)
    return error[0].strip() if error else ""


def gist(message: Message) -> str:
    """Returns a message in one line. A Decision is described by its actions and words."""
    if message.decision:
        return "; ".join(map(_done, message.decision.actions)) or message.decision.rationale
    return next((line for line in message.text.splitlines() if line.strip()), "")


def _done(action: Action) -> str:
    """Returns the text of an action that says something, else its operation and first argument."""
    return str(action.args.get("text") or f"{action.operation} {next(iter(action.args.values()), '')}")
