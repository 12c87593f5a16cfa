"""Estimates how many tokens a text has, and shortens texts that have too many."""

import math
import re
from functools import cache

from duckflow.memory.settings import MemorySettings

MESSAGE_OVERHEAD = 4
"""Tokens that a message costs besides its text."""
LEAST_BUDGET = 8000
MOST_OF_WINDOW = 0.8
"""The largest share of the window that history may take. The remaining window is for instructions, state and reply,
whatever the settings say."""


def _class_of(code: int) -> str:
    """Returns a character's class: a lower, A upper, 0 digit, s space, n newline, u underscore, . punctuation."""
    match chr(code):
        case "\r" | "\n":
            return "n"
        case "_":
            return "u"
        case sign if sign <= " ":
            return "s"
        case sign if sign.isascii() and sign.isalnum():
            return "0" if sign.isdigit() else "A" if sign.isupper() else "a"
        case _:
            return "."


_CLASSES = "".join(map(_class_of, range(256))).encode()
# Where the beginnings of words are counted, all kinds of gaps count the same.
_GAPS = bytes.maketrans(b".nu", b"sss")
# Tokens that each shape adds, fitted to a real tokenizer (benchmarks/tokens.py): where a word begins, how long it goes
# on, runs of digits, of spaces, of signs.
_STARTS: tuple[tuple[bytes, float], ...] = ((b"sa", 0.992), (b"sA", 0.802), (b"s0", 2.2))
_SHAPES: tuple[tuple[bytes, float], ...] = (
    (b"aA", 0.802), (b"Aa", 0.338), (b"aaaaaa", 0.178), (b"aaaaaaaaa", 0.292), (b"AAA", 0.289),
    (b"A0", 2.2), (b"000", 0.721), *((change, 1.15) for change in (b"0a", b"a0", b"0A")),
    (b"ss", 0.294), (b"ssssssss", -1.0), (b"n", 0.805), (b"nn", -1.0),
    (b".", 0.519), (b"..", -0.424), (b"....", -1.0), (b"s.", 0.789), (b".n", -0.118), (b"u", 0.276),
)  # fmt: skip
_BEYOND_ASCII = r"[^\x00-\x7f]+"
# Characters of a script, the tokens that each of them adds, and those that each run of them adds.
_SCRIPTS: tuple[tuple[str, float, float], ...] = (
    (r"[\u3041-\u309f]+", 0.617, -0.037),
    (r"[\u30a0-\u30ff\uff66-\uff9f]+", 0.664, 0.476),
    (r"[\u3005\u3400-\u9fff\uf900-\ufaff]+", 0.959, 0.277),
    (r"[\u3000-\u3004\u3006-\u303f\uff01-\uff65]+", 0.706, 0.0),
)
_OTHER_BYTE, _OTHER_RUN = 0.263, -0.926


# Patterns are compiled when a text needs them: a conversation in plain ASCII does not wait for them.
_pattern = cache(re.compile)


def estimate(text: str) -> float:
    """Estimates the tokens of a text, before any correction. All counting is done by C code, so a message takes
    microseconds."""
    if text.isascii():
        return max(_of_ascii(text), 0.0)
    # A run of other scripts separates words like a line end, whose cost is corrected below.
    return max(_of_ascii(_pattern(_BEYOND_ASCII).sub("\n", text)) + _of_scripts(text), 0.0)


def _of_ascii(text: str) -> float:
    letter_classes = b"s" + text.encode().translate(_CLASSES)
    words = letter_classes.translate(_GAPS)
    tokens = sum(words.count(start) * weight for start, weight in _STARTS)
    for pattern, weight in _SHAPES:
        tokens += letter_classes.count(pattern) * weight
    return tokens


def _of_scripts(text: str) -> float:
    runs = _pattern(_BEYOND_ASCII).findall(text)
    remaining_bytes, tokens = len("".join(runs).encode("utf-8", "replace")), len(runs) * _OTHER_RUN
    for pattern, for_character, for_run in _SCRIPTS:
        runs_of_script = _pattern(pattern).findall(text)
        script_text = "".join(runs_of_script)
        remaining_bytes -= len(script_text.encode())
        tokens += len(script_text) * for_character + len(runs_of_script) * for_run
    return tokens + remaining_bytes * _OTHER_BYTE


def count(text: str) -> int:
    """Returns the estimated tokens of a text, for no model in particular."""
    return math.ceil(estimate(text))


def history_budget(settings: MemorySettings, window: int, most: int = 0) -> int:
    """Returns the tokens that history may take with a model of this window. `most` is the number above which the model
    gets confused; 0 means that there is no such number."""
    if settings.budget_tokens is not None:
        return min(settings.budget_tokens, int(window * MOST_OF_WINDOW))
    least_budget = min(LEAST_BUDGET, window // 2)
    budget = max(int(window * settings.window_share), least_budget)
    return min(budget, most) if most else budget


class Tokens:
    """The factor for each model's estimates: the tokens that its provider reports for one estimated token."""

    MEMORY = 0.2
    """The weight of the newest report in a model's factor."""
    LOWEST, HIGHEST = 0.6, 2.5

    def __init__(self) -> None:
        self._factors: dict[str, float] = {}
        self._model = ""

    @property
    def factor(self) -> float:
        return self._factors.get(self._model, 1.0)

    def use(self, model: str) -> None:
        """Chooses the model for which tokens are estimated from now on."""
        self._model = model

    def learn(self, estimated: float, reported: int) -> None:
        """Learns from a request: its estimated tokens, and the number that the provider reported."""
        if estimated <= 0 or reported <= 0:
            return
        ratio = min(max(reported / estimated, self.LOWEST), self.HIGHEST)
        self._factors[self._model] = self.factor + self.MEMORY * (ratio - self.factor)


HEAD_SHARE = 0.6
STEPS = 8


def clip(text: str, tokens: float, size: float | None = None) -> str:
    """Shortens a text to at most `tokens` estimated tokens, and says how much is left out. `size` is the text's
    estimate, if it is known already."""
    size = estimate(text) if size is None else size
    if size <= tokens:
        return text
    length = int(len(text) * tokens / size * 0.95)
    for _ in range(STEPS):
        clipped_text = _ends(text, length)
        if estimate(clipped_text) <= tokens or length <= 0:
            return clipped_text
        length = int(length * 0.85) - 20
    return _ends(text, 0)


def _ends(text: str, keep: int) -> str:
    keep = max(0, keep)
    head_length = int(keep * HEAD_SHARE)
    tail_length = keep - head_length
    tail_text = text[len(text) - tail_length :] if tail_length else ""
    return f"{text[:head_length]}\n… [{len(text) - keep} characters left out] …\n{tail_text}"
