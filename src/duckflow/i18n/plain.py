"""Makes text harmless for a terminal, and shows characters that a terminal would hide."""

import re
import unicodedata
from collections.abc import Iterator

from duckflow.i18n.words import Words

KEPT = frozenset("\n\t")
JOINS = frozenset("\u200d\ufe0f")
"""Characters that hold an emoji together."""
STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Letters and marks that take no room or look like a space. They can hide a part of a name.
UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


class ShownAs(dict[int, str]):
    """A table of the text that is shown for each character. Each entry is computed once."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in KEPT or character in JOINS:
            replacement = character
        elif character in UNSEEN or unicodedata.category(character) in STEERING:
            replacement = f"\\x{code:02x}"
        else:
            replacement = character
        self[code] = replacement
        return replacement


SHOWN = ShownAs()


def plain(text: str) -> str:
    """Makes control and direction-changing characters visible, so that text from outside cannot steer the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(SHOWN)


TAB = 4
LONGEST_SPACE = 24
DEEPEST = 48
"""The most columns by which code may be indented, at the beginning of a line or after the sign of a diff. A tab counts
as four."""
MOST_MARKS = 2
RUNS = re.compile(
    r"(?P<spaces>[ \t\u3000]{7,})"
    r"|(?P<odd>[\u00a0\u1680\u2000-\u200a\u202f\u205f]+)"
    r"|(?P<unseen>[\u200b-\u200f\u2060-\u2065\ufeff\u180b-\u180f\ufe00-\ufe0f\ufff0-\ufff8\U000e0000-\U000e0fff]+)"
)
NEW_LINE = "\n"
EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n){6,}")
EMOJI = ("\ufe0f", "\u200d", "\ufe0f\u200d")


def folded(text: str, words: Words) -> str:
    """Returns a line in which nothing can push other text out of sight, or stay unseen."""
    if not text.isascii():
        text = "".join(_without_stacks(text, words))

    def shown(run: re.Match[str]) -> str:
        characters, character_before = run[0], text[run.start() - 1 : run.start()]
        if run["spaces"]:
            width = len(characters) + characters.count("\t") * (TAB - 1)
            longest_width = DEEPEST if text[: run.start()] in ("", "+", "-") else LONGEST_SPACE
            return characters if width <= longest_width else f"⟨{words('gate.spaces', count=len(characters))}⟩"
        if run["odd"]:
            return plain("".join(f"\\x{ord(character):02x}" for character in characters))
        is_joiner = characters in EMOJI or (len(characters) == 1 and "\U000e0100" <= characters <= "\U000e01ef")
        if is_joiner and character_before and not character_before.isascii():
            return characters
        return f"⟨{words('gate.unseen', count=len(characters))}⟩"

    return RUNS.sub(shown, text)


def readable(text: str, words: Words) -> str:
    """Makes a text from outside readable in a terminal, line by line."""

    def counted(run: re.Match[str]) -> str:
        return f"\n⟨{words('gate.empty_lines', count=run[0].count(NEW_LINE) - 1)}⟩\n"

    text = EMPTY_LINES.sub(counted, plain(text))
    return "\n".join(folded(line, words).expandtabs(TAB) for line in text.split("\n"))


def one_line(text: str, words: Words, longest: int) -> str:
    """Puts the model's own words in one line of at most `longest` characters."""
    line = folded(" ".join(text.split()), words)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _without_stacks(text: str, words: Words) -> Iterator[str]:
    """Replaces many marks above one letter by a note, since they can cover the lines around them."""
    mark_count = 0
    for character in text:
        is_stacked = unicodedata.combining(character) or unicodedata.category(character) == "Me"
        if is_stacked and mark_count >= MOST_MARKS:
            mark_count += 1
            continue
        if mark_count > MOST_MARKS:
            yield f"⟨{words('gate.unseen', count=mark_count - MOST_MARKS)}⟩"
        mark_count = mark_count + 1 if is_stacked else 0
        yield character
    if mark_count > MOST_MARKS:
        yield f"⟨{words('gate.unseen', count=mark_count - MOST_MARKS)}⟩"
