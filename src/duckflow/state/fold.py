"""Whether a text holds some words, however they are written: large or small, full or half width."""

import unicodedata


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def holds(text: str, words: str) -> bool:
    return folded(words) in folded(text)
