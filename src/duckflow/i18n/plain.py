"""Text from outside made harmless for a terminal."""

import unicodedata

KEPT = frozenset("\n\t")
JOINS = frozenset("\u200d\ufe0f")
"""What holds an emoji together."""
STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Letters and marks that take no room or look like a space: they can hide a part of a name.
UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


class ShownAs(dict[int, str]):
    """What is shown for a character, worked out once."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in KEPT or character in JOINS:
            shown = character
        elif character in UNSEEN or unicodedata.category(character) in STEERING:
            shown = f"\\x{code:02x}"
        else:
            shown = character
        self[code] = shown
        return shown


SHOWN = ShownAs()


def plain(text: str) -> str:
    """Control and direction-changing characters become visible; nothing from outside can steer the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(SHOWN)
