"""Ranks messages by the words of a question."""

import math
from collections.abc import Iterable
from typing import NamedTuple

LONG_MESSAGE = 300
LENGTH_SHARE = 0.3
"""Says how strongly the length of a message lowers the weight of its hits (0 would mean: not at all). A long message
contains more words by chance."""
AFTER = (0.8, 0.55, 0.3)
"""The shares of a hit's weight that the three messages after it get, because an answer stands near its question."""
BEFORE = (0.64, 0.44, 0.24)
SPREAD_LENGTH = 400
"""A hit in a message of this length passes on half of its weight to the messages around it. A longer message passes on
less, because it speaks for itself."""


class Posting(NamedTuple):
    """A message that contains a word, and the length of that message."""

    number: int
    length: int


class QueryWord(NamedTuple):
    """A word of the question, with the messages that contain this word."""

    found_in: int
    telling: float
    postings: Iterable[Posting]


def rank(words: Iterable[QueryWord], total: int, neighbours: bool = True) -> dict[int, float]:
    """Returns for each message number the share of the question that this message answers, from 0 to about 1. For each
    word, a message counts only the best weight: its own, or a neighbour's."""
    weights: dict[int, float] = {}
    possible_weight = 0.0
    for word in words:
        rarity = math.log(1 + (total - word.found_in + 0.5) / (word.found_in + 0.5)) * word.telling
        possible_weight += rarity
        for number, weight in _spread(word.postings, rarity, neighbours).items():
            weights[number] = weights.get(number, 0.0) + weight
    return {number: weight / possible_weight for number, weight in weights.items()} if possible_weight else {}


def _spread(postings: Iterable[Posting], rarity: float, neighbours: bool) -> dict[int, float]:
    best_weights: dict[int, float] = {}
    for number, length in postings:
        own_weight = rarity / (1 - LENGTH_SHARE + LENGTH_SHARE * math.sqrt(length / LONG_MESSAGE))
        if own_weight > best_weights.get(number, 0.0):
            best_weights[number] = own_weight
        spread_weight = own_weight * SPREAD_LENGTH / (SPREAD_LENGTH + length)
        for distance, (share_after, share_before) in enumerate(
            zip(AFTER, BEFORE, strict=True) if neighbours else (), 1
        ):
            if spread_weight * share_after > best_weights.get(number + distance, 0.0):
                best_weights[number + distance] = spread_weight * share_after
            if spread_weight * share_before > best_weights.get(number - distance, 0.0):
                best_weights[number - distance] = spread_weight * share_before
    return best_weights
