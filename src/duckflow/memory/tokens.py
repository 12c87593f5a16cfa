"""How many tokens a text is: estimated by script classes, and corrected by what the provider reports."""

import math
import re
from operator import mul

MESSAGE_OVERHEAD = 4
"""What a message costs besides its text."""


def _class_of(code: int) -> str:
    """a lower, A upper, 0 digit, s space, n newline, u underscore, . punctuation."""
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
# What each shape adds, fitted to a real tokenizer (benchmarks/tokens.py): where a word begins, how long it goes on,
# runs of digits, of spaces, of signs.
_SHAPES: tuple[tuple[bytes, float], ...] = (
    *((start, 0.992) for start in (b"sa", b".a", b"na", b"ua")),
    *((start, 0.802) for start in (b"sA", b".A", b"nA", b"uA", b"aA")),
    (b"Aa", 0.338), (b"aaaaaa", 0.178), (b"aaaaaaaaa", 0.292), (b"AAA", 0.289),
    *((start, 2.2) for start in (b"s0", b".0", b"n0", b"u0", b"A0")), (b"000", 0.721),
    *((change, 1.15) for change in (b"0a", b"a0", b"0A")),
    (b"ss", 0.294), (b"ssssssss", -1.0), (b"n", 0.805), (b"nn", -1.0),
    (b".", 0.519), (b"..", -0.424), (b"....", -1.0), (b"s.", 0.789), (b".n", -0.118), (b"u", 0.276),
)  # fmt: skip
_PATTERNS, _WEIGHTS = tuple(zip(*_SHAPES, strict=True))
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
# Characters of a script, and what each adds, and each run of them.
_SCRIPTS: tuple[tuple[re.Pattern[str], float, float], ...] = (
    (re.compile(r"[\u3041-\u309f]+"), 0.617, -0.037),
    (re.compile(r"[\u30a0-\u30ff\uff66-\uff9f]+"), 0.664, 0.476),
    (re.compile(r"[\u3005\u3400-\u9fff\uf900-\ufaff]+"), 0.959, 0.277),
    (re.compile(r"[\u3000-\u3004\u3006-\u303f\uff01-\uff65]+"), 0.706, 0.0),
)
_OTHER_BYTE, _OTHER_RUN = 0.263, -0.926


def estimate(text: str) -> float:
    """Tokens of a text, before any correction. All counting is done by C code: a message costs microseconds."""
    if text.isascii():
        return max(_of_ascii(text), 0.0)
    # A run of other scripts stands between words like a line end, which is paid for below.
    return max(_of_ascii(_BEYOND_ASCII.sub("\n", text)) + _of_scripts(text), 0.0)


def _of_ascii(text: str) -> float:
    shape = b"s" + text.encode().translate(_CLASSES)
    return sum(map(mul, map(shape.count, _PATTERNS), _WEIGHTS))


def _of_scripts(text: str) -> float:
    runs = _BEYOND_ASCII.findall(text)
    left, total = len("".join(runs).encode("utf-8", "replace")), len(runs) * _OTHER_RUN
    for pattern, for_character, for_run in _SCRIPTS:
        found = pattern.findall(text)
        together = "".join(found)
        left -= len(together.encode())
        total += len(together) * for_character + len(found) * for_run
    return total + left * _OTHER_BYTE


def count(text: str) -> int:
    """Tokens of a text for any model."""
    return math.ceil(estimate(text))


class Tokens:
    """Counts for one model: the estimate times what its provider has been seen to report for an estimated token."""

    MEMORY = 0.2
    """Weight of the newest report."""
    LOWEST, HIGHEST = 0.6, 2.5

    def __init__(self) -> None:
        self._factors: dict[str, float] = {}
        self._model = ""

    @property
    def factor(self) -> float:
        return self._factors.get(self._model, 1.0)

    def use(self, model: str) -> None:
        """Count for this model from now on."""
        self._model = model

    def learn(self, estimated: float, reported: int) -> None:
        """A request of so many estimated tokens was so many in truth."""
        if estimated <= 0 or reported <= 0:
            return
        ratio = min(max(reported / estimated, self.LOWEST), self.HIGHEST)
        self._factors[self._model] = self.factor + self.MEMORY * (ratio - self.factor)

    def count(self, text: str) -> int:
        return round(estimate(text) * self.factor) + MESSAGE_OVERHEAD
