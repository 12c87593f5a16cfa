"""A line as a person can trust it: nothing in it can push the rest out of sight, or lie in it unseen."""

import re
import unicodedata
from collections.abc import Iterator

from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words

TAB = 4
LONGEST_SPACE = 24
DEEPEST = 48
"""As far as code is indented, which begins a line or follows the sign of a diff; a tab counts as four."""
MOST_MARKS = 2
RUNS = re.compile(
    r"(?P<spaces>[ \t\u3000]{7,})"
    r"|(?P<odd>[\u00a0\u1680\u2000-\u200a\u202f\u205f]+)"
    r"|(?P<unseen>[\u200b-\u200f\u2060-\u2064\ufeff\u180b-\u180f\ufe00-\ufe0f\U000e0000-\U000e01ef]+)"
)
EMOJI = ("\ufe0f", "\u200d", "\ufe0f\u200d")


def folded(text: str, words: Words) -> str:
    """One line as it can be read: nothing in it can push the rest out of sight, or lie in it unseen."""
    if not text.isascii():
        text = "".join(_without_stacks(text, words))

    def shown(run: re.Match[str]) -> str:
        found, before = run[0], text[run.start() - 1 : run.start()]
        if run["spaces"]:
            width = len(found) + found.count("\t") * (TAB - 1)
            longest = DEEPEST if text[: run.start()] in ("", "+", "-") else LONGEST_SPACE
            return found if width <= longest else f"⟨{words('gate.spaces', count=len(found))}⟩"
        if run["odd"]:
            return plain("".join(f"\\x{ord(one):02x}" for one in found))
        joins = found in EMOJI or (len(found) == 1 and found >= "\U000e0100")
        if joins and before and not before.isascii():
            return found
        return f"⟨{words('gate.unseen', count=len(found))}⟩"

    return RUNS.sub(shown, text)


def one_line(text: str, words: Words, longest: int) -> str:
    """Words of the model's own: in one line, of a length that cannot crowd out the rest."""
    line = folded(" ".join(text.split()), words)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _without_stacks(text: str, words: Words) -> Iterator[str]:
    """Marks that stand above each other can cover the lines around them."""
    marks = 0
    for character in text:
        stacked = unicodedata.combining(character) or unicodedata.category(character) == "Me"
        if stacked and marks >= MOST_MARKS:
            marks += 1
            continue
        if marks > MOST_MARKS:
            yield f"⟨{words('gate.unseen', count=marks - MOST_MARKS)}⟩"
        marks = marks + 1 if stacked else 0
        yield character
    if marks > MOST_MARKS:
        yield f"⟨{words('gate.unseen', count=marks - MOST_MARKS)}⟩"
