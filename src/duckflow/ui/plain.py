"""Text from outside made harmless for a terminal."""

import unicodedata

KEPT = frozenset("\n\t")


def plain(text: str) -> str:
    """Control and direction-changing characters become visible; nothing from outside can steer the terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character
        if character in KEPT or unicodedata.category(character) not in ("Cc", "Cf", "Cs") or character in "\u200d\ufe0f"
        else f"\\x{ord(character):02x}"
        for character in text.replace("\r\n", "\n")
    )
