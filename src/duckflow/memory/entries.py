"""Messages in the context: the value of each, and the groups that stay or go together."""

import math
import re
from collections.abc import Iterable, Sequence

from duckflow.i18n.terms import terms
from duckflow.i18n.words import contains, search
from duckflow.memory.tokens import MESSAGE_OVERHEAD, clip, estimate
from duckflow.state.data import shorten
from duckflow.state.message import Message, Role

ROLE, CONTENT = 0.3, 0.4
ROLES: dict[Role, float] = {"user": 1.0, "assistant": 0.5, "tool": 0.5, "system": 0.3}
LOOKED_AT = 4000
SHORT = 12
KNOWN_LIMIT = 50_000
SUCCESS = 0.1
"""The extra value of a result that is not an error."""
FAILED = "error:"

_WORD = r"[a-z0-9_]{3,}|[\u3400-\u9fff]{2}|[\u30a1-\u30fe]{2,}"
_READ = r".+ \(lines \d+-\d+ of .*"


class Scores:
    """Scores each message once, in order: the words that count as new depend on the earlier messages."""

    def __init__(self) -> None:
        self._known: dict[str, None] = {}
        self._read: set[str] = set()

    def score(self, message: Message, tokens: float) -> tuple[float, int]:
        """Returns the value of a message by its role and content, and the number of words that no earlier message
        had."""
        text = message.whole[:LOOKED_AT].lower()
        words = dict.fromkeys(re.findall(_WORD, text))
        new_count = sum(word not in self._known for word in words)
        if message.role == "tool" and (read_header := re.match(_READ, message.text)):
            # A part of a file that is read again had been cut, so it is needed.
            new_count = len(words) if read_header[0] in self._read else new_count
            self._read.add(read_header[0])
        self._known |= words
        if len(self._known) > KNOWN_LIMIT:
            self._known = dict.fromkeys(list(self._known)[KNOWN_LIMIT // 2 :])
        content = rate_content(text, tokens)
        if message.role == "tool" and not text.startswith(FAILED):
            content = min(1.0, content + SUCCESS)
        return ROLE * ROLES[message.role] + CONTENT * content, new_count


def rate_content(text: str, tokens: float) -> float:
    """Rates a text from 0 to 1: instructions, decisions and errors higher; questions and very short texts lower."""
    rating = 0.5
    if search("memory.instructs", text):
        rating += 0.25
    if contains("memory.problem", text):
        rating += 0.25
    if text.rstrip().endswith(("?", "？")):
        rating -= 0.25
    if tokens < SHORT:
        rating -= 0.25
    return min(1.0, rating)


RECENCY = 0.3
RECENT = 60
"""The number of messages after which the bonus for recent messages has fallen to a third."""


def compute_worth(base: float, new_words: float, tokens: float, age: int) -> float:
    """Returns the value per token, so that two short facts win against one long story. The square root of the tokens
    lowers the disadvantage of long messages."""
    return (base + RECENCY * math.exp(-age / RECENT)) * (new_words + 0.1) / math.sqrt(max(tokens, 1.0))


class Focus:
    """Weighs messages by the words that they share with a text; without a text, all messages weigh the same."""

    def __init__(self, text: str) -> None:
        self._words = terms(text) if text.strip() else set[str]()

    def weight(self, texts: Iterable[str]) -> float:
        if not self._words:
            return 1.0
        return 1.0 + 4 * len(self._words & terms(" ".join(texts))) / len(self._words)


LINE = 40
"""A message that is cut to this many tokens or fewer keeps only its first line, because its head and tail would say
nothing."""
NAMED = 100


class HistoryEntry:
    """A message in the context, whose tokens are counted once."""

    def __init__(self, number: int, message: Message) -> None:
        self.number = number
        self.original = message
        self.message = message
        pictures = sum(picture.tokens for picture in message.pictures)
        self.tokens = estimate(_as_sent(message)) + MESSAGE_OVERHEAD + pictures
        self.size = self.tokens
        """The tokens of the message before it was cut."""
        self.base = 0.0
        self.new_words = 0
        self.cut: int | None = None
        """The number of tokens that the message was cut to; None if it is whole."""

    @property
    def result(self) -> bool:
        return self.original.role == "tool"

    def cut_to(self, tokens: float) -> float:
        """Cuts the message to its head and tail, or its first line, and returns the saved tokens. A message that was
        cut never gets longer. Pictures are dropped first."""
        if tokens + MESSAGE_OVERHEAD >= self.tokens or (self.cut is not None and self.cut <= tokens):
            return 0.0
        text = self.original.whole
        keeps_ends = tokens > LINE and not self.original.pictures
        short_text = clip(text, tokens, self.size) if keeps_ends else _named(text)
        saved_tokens = self.tokens - estimate(short_text) - MESSAGE_OVERHEAD
        if saved_tokens <= 0:
            return 0.0
        self.message = self.original.model_copy(
            update={"text": short_text, "pictures": (), "decision": None, "wire": None}
        )
        self.tokens -= saved_tokens
        self.cut = int(tokens)
        return saved_tokens

    def worth(self, latest: int) -> float:
        """Returns the message's value. A shortened message has a value in proportion to the text that is left."""
        return compute_worth(self.base, self.new_words * self.tokens / self.size, self.tokens, latest - self.number)


def _as_sent(message: Message) -> str:
    """Returns the text that takes room in a request: a Decision that came as JSON is sent back as JSON."""
    if message.decision is None or message.wire is not None:
        return message.whole
    from duckflow.forms.json_form import as_written

    return as_written(message.decision)


def _named(text: str) -> str:
    first_line = text.partition("\n")[0]
    return f"[left out: {shorten(first_line, NAMED)} … {len(text)} characters]"


class Unit:
    """Messages that stay together: a call with its results, or a single message."""

    def __init__(self, entry: HistoryEntry) -> None:
        self.entries = [entry]

    @property
    def tokens(self) -> float:
        return sum(entry.tokens for entry in self.entries)

    def several(self) -> list[HistoryEntry]:
        """Returns the results of the call if there is more than one; else an empty list."""
        results = [entry for entry in self.entries if entry.result]
        return results if len(results) > 1 else []

    def texts(self) -> list[str]:
        return [entry.original.whole for entry in self.entries]

    def worth(self, latest: int) -> float:
        """Returns the mean value of the unit's messages, weighted by length."""
        return sum(entry.worth(latest) * entry.tokens for entry in self.entries) / self.tokens


def group_entries(entries: Iterable[HistoryEntry]) -> list[Unit]:
    """Groups each result with the call before it, even if a message of Duckflow itself stands in between. Units with
    the latest messages come last."""
    units: list[Unit] = []
    for entry in entries:
        index = len(units) - 1
        while entry.result and index >= 0 and units[index].entries[0].message.role == "system":
            index -= 1
        if entry.result and index >= 0:
            units.append(units.pop(index))
            units[-1].entries.append(entry)
        else:
            units.append(Unit(entry))
    return units


def lower_to(sizes: Sequence[float], excess: float) -> float:
    """Returns the size to which all larger sizes must shrink to save `excess`; 0 if even that does not save enough."""
    sum_so_far = 0.0
    descending_sizes = sorted(sizes, reverse=True)
    for count, size in enumerate(descending_sizes, 1):
        sum_so_far += size
        lowered_size = (sum_so_far - excess) / count
        if lowered_size >= (descending_sizes[count] if count < len(descending_sizes) else 0.0):
            return lowered_size
    return 0.0
