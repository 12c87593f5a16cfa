"""Calls in a text that could not be read: crude, and only used to find harm, never to find a text harmless."""

import re
from collections.abc import Iterator

from duckflow.safety.commands.text.braces import expand
from duckflow.safety.commands.text.words import Word

BETWEEN = re.compile(r"[;\n|&()<>`]+")
QUOTES = re.compile(r"[\"'\\]")
MOST_PIECES = 30
MOST_BEGINNINGS = 6


def salvage(text: str) -> Iterator[tuple[Word, ...]]:
    """The text cut at every separator, quotes ignored; a call may begin at any of the first words."""
    for piece in BETWEEN.split(text)[:MOST_PIECES]:
        spelled = [word for part in piece.split() for word in expand(QUOTES.sub("", part)) if word not in ("{", "}")]
        words = tuple(Word(word, plain=False) for word in spelled)
        for start in range(min(len(words), MOST_BEGINNINGS)):
            yield words[start:]
