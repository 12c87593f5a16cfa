"""Text from outside made harmless for a terminal."""

import unicodedata

KEPT = frozenset("\n\t")
JOINS = frozenset("\u200d\ufe0f")
"""What holds an emoji together."""
STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Letters and marks that take no room or look like a space: they can hide a part of a name.
UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def plain(text: str) -> str:
    """Control and direction-changing characters become visible; nothing from outside can steer the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text.replace("\r\n", "\n")))


def _shown(character: str) -> str:
    if character in KEPT or character in JOINS:
        return character
    if character in UNSEEN or unicodedata.category(character) in STEERING:
        return f"\\x{ord(character):02x}"
    return character
