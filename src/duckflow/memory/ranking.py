"""How well messages answer a question: the rarer a shared word the better, and neighbours of a hit share in it."""

import math
from collections.abc import Iterable
from typing import NamedTuple

LONG_MESSAGE = 300
LENGTH_SHARE = 0.3
"""How much a long message pays for its length: it holds more words by chance."""
AFTER = (0.8, 0.55, 0.3)
"""What the messages right after a hit get of its weight: the answer stands near the word that was asked with."""
BEFORE = (0.64, 0.44, 0.24)
SPREAD_LENGTH = 400
"""A hit in a message of this length passes on half: what is long speaks for itself."""


class Posting(NamedTuple):
    """A message that holds a word, and how long the message is."""

    number: int
    length: int


class Word(NamedTuple):
    """A word of the question with the messages that hold it."""

    found_in: int
    telling: float
    postings: Iterable[Posting]


def rank(words: Iterable[Word], total: int) -> dict[int, float]:
    """Message numbers with their share of what the question asks for, 0 to about 1.

    Of each word a message counts only its best: its own, or a neighbour's."""
    ranked: dict[int, float] = {}
    possible = 0.0
    for word in words:
        rarity = math.log(1 + (total - word.found_in + 0.5) / (word.found_in + 0.5)) * word.telling
        possible += rarity
        for number, weight in _spread(word.postings, rarity).items():
            ranked[number] = ranked.get(number, 0.0) + weight
    return {number: weight / possible for number, weight in ranked.items()} if possible else {}


def _spread(postings: Iterable[Posting], rarity: float) -> dict[int, float]:
    best: dict[int, float] = {}
    for number, length in postings:
        own = rarity / (1 - LENGTH_SHARE + LENGTH_SHARE * math.sqrt(length / LONG_MESSAGE))
        if own > best.get(number, 0.0):
            best[number] = own
        passed_on = own * SPREAD_LENGTH / (SPREAD_LENGTH + length)
        for distance, (after, before) in enumerate(zip(AFTER, BEFORE, strict=True), 1):
            if passed_on * after > best.get(number + distance, 0.0):
                best[number + distance] = passed_on * after
            if passed_on * before > best.get(number - distance, 0.0):
                best[number - distance] = passed_on * before
    return best
