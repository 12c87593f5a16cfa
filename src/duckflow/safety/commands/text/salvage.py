"""Calls in a text that could not be read: crude, and only used to find harm, never to find a text harmless."""

import re

from duckflow.safety.commands.text.braces import expand
from duckflow.safety.commands.text.words import Word

BETWEEN = re.compile(r"[;\n|&()<>]+")
QUOTES = re.compile(r"[\"'`\\]")
MOST = 40


def salvage(text: str) -> list[tuple[Word, ...]]:
    """The text cut at every separator, quotes ignored."""
    calls = list[tuple[Word, ...]]()
    for piece in BETWEEN.split(text)[:MOST]:
        spelled = [word for part in piece.split() for word in expand(QUOTES.sub("", part)) if word not in ("{", "}")]
        if spelled:
            calls.append(tuple(Word(word, plain=False) for word in spelled))
    return calls
