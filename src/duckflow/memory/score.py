"""What a message is worth in the context: recency, role and content, times what it brought that was new."""

import math
import re

from duckflow.state.message import Message, Role

RECENCY, ROLE, CONTENT = 0.3, 0.3, 0.4
ROLES: dict[Role, float] = {"user": 1.0, "assistant": 0.5, "tool": 0.5, "system": 0.3}
RECENT = 60
"""Messages after which recency has fallen to a third."""
LOOKED_AT = 4000
SHORT = 12
KNOWN_LIMIT = 50_000

_WORD = re.compile(r"[a-z0-9_]{3,}|[\u3400-\u9fff]{2}|[\u30a1-\u30fe]{2,}")
_INSTRUCTION = re.compile(
    r"\b(?:decid|must|should|never|always|instead|remember|prefer|important|approv|agree)"
    r"|決め|決定|必ず|しないで|してください|禁止|覚えて|方針|重要|承認|合意"
)
_PROBLEM = re.compile(r"error|exception|traceback|failed|failure|エラー|例外|失敗")


class Novelty:
    """Which words the conversation has had already."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}

    def take(self, text: str) -> int:
        """How many words are new; they are known from now on."""
        words = dict.fromkeys(_WORD.findall(text[:LOOKED_AT].lower()))
        new = sum(word not in self._known for word in words)
        self._known |= words
        if len(self._known) > KNOWN_LIMIT:
            self._known = dict.fromkeys(list(self._known)[KNOWN_LIMIT // 2 :])
        return new


def content(message: Message, tokens: float) -> float:
    """0 to 1: instructions, decisions and errors up; questions and very short ones down."""
    text = message.text[:LOOKED_AT].lower()
    value = 0.5
    if _INSTRUCTION.search(text):
        value += 0.25
    if _PROBLEM.search(text):
        value += 0.25
    if text.rstrip().endswith(("?", "？")):
        value -= 0.25
    if tokens < SHORT:
        value -= 0.25
    return min(1.0, value)


def base_score(message: Message, tokens: float) -> float:
    """The part of the score that never changes: role and content."""
    return ROLE * ROLES[message.role] + CONTENT * content(message, tokens)


def worth(base: float, new_words: int, tokens: float, age: int) -> float:
    """Per token, so that two short facts win against one long tale; by the root, so that length is no fault."""
    return (base + RECENCY * math.exp(-age / RECENT)) * (new_words + 0.1) / math.sqrt(max(tokens, 1.0))
