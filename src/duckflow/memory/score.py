"""What a message is worth."""

import math
import re
from collections.abc import Iterable

from duckflow.i18n.patterns import contains, search
from duckflow.memory.terms import terms
from duckflow.state.message import Message, Role

ROLE, CONTENT = 0.3, 0.4
ROLES: dict[Role, float] = {"user": 1.0, "assistant": 0.5, "tool": 0.5, "system": 0.3}
LOOKED_AT = 4000
SHORT = 12
KNOWN_LIMIT = 50_000
SUCCESS = 0.1
"""What a result is worth more that is no error."""
FAILED = "error:"

_WORD = r"[a-z0-9_]{3,}|[\u3400-\u9fff]{2}|[\u30a1-\u30fe]{2,}"
_READ = r".+ \(lines \d+-\d+ of .*"


class Scores:
    """Looks at each message once, in their order: which words are new depends on what was said before."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}
        self._read: set[str] = set()

    def score(self, message: Message, tokens: float) -> tuple[float, int]:
        """What role and content are worth, and how many words are new; they are known from now on."""
        text = message.whole[:LOOKED_AT].lower()
        words = dict.fromkeys(re.findall(_WORD, text))
        new = sum(word not in self._known for word in words)
        if message.role == "tool" and (head := re.match(_READ, message.text)):
            # What is read once more had been cut, and is needed.
            new = len(words) if head[0] in self._read else new
            self._read.add(head[0])
        self._known |= words
        if len(self._known) > KNOWN_LIMIT:
            self._known = dict.fromkeys(list(self._known)[KNOWN_LIMIT // 2 :])
        content = rate_content(text, tokens)
        if message.role == "tool" and not text.startswith(FAILED):
            content = min(1.0, content + SUCCESS)
        return ROLE * ROLES[message.role] + CONTENT * content, new


def rate_content(text: str, tokens: float) -> float:
    """0 to 1: instructions, decisions and errors up; questions and very short ones down."""
    value = 0.5
    if search("memory.instructs", text):
        value += 0.25
    if contains("memory.problem", text):
        value += 0.25
    if text.rstrip().endswith(("?", "？")):
        value -= 0.25
    if tokens < SHORT:
        value -= 0.25
    return min(1.0, value)


RECENCY = 0.3
RECENT = 60
"""Messages after which recency has fallen to a third."""


def compute_worth(base: float, new_words: float, tokens: float, age: int) -> float:
    """Per token, so that two short facts win against one long tale; by the root, so that length is no fault."""
    return (base + RECENCY * math.exp(-age / RECENT)) * (new_words + 0.1) / math.sqrt(max(tokens, 1.0))


class Focus:
    """Weighs what stays by how much it has to do with the words; without any, all the same."""

    def __init__(self, text: str) -> None:
        self._words = terms(text) if text.strip() else set[str]()

    def weight(self, texts: Iterable[str]) -> float:
        if not self._words:
            return 1.0
        return 1.0 + 4 * len(self._words & terms(" ".join(texts))) / len(self._words)
