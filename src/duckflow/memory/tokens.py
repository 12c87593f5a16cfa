"""How many tokens a text is, estimated."""

from functools import lru_cache

MESSAGE_OVERHEAD = 4


@lru_cache(maxsize=4096)
def count(text: str) -> int:
    """About four ASCII characters a token, about one token for every other character; never below the truth by much."""
    ascii_characters = sum(character < "\x80" for character in text) if not text.isascii() else len(text)
    return ascii_characters // 3 + (len(text) - ascii_characters) + MESSAGE_OVERHEAD
