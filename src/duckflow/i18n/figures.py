"""Ages, numbers and money as people say them."""

import time

from duckflow.i18n.language import facts_of
from duckflow.i18n.words import Words

MINUTE, HOUR, DAY = 60, 3600, 86_400
SPANS = ((HOUR, MINUTE, "age.minutes"), (DAY, HOUR, "age.hours"), (30 * DAY, DAY, "age.days"))


def age(then: float, now: float, words: Words) -> str:
    """How long ago; after a month, the date."""
    seconds = max(0.0, now - then)
    if seconds < MINUTE:
        return words("age.now")
    for below, unit, key in SPANS:
        if seconds < below:
            return words(key, count=int(seconds // unit))
    return time.strftime(facts_of(words.language).day, time.localtime(then))


def grouped(number: int, words: Words) -> str:
    """With a sign between groups of three digits."""
    return f"{number:,}".replace(",", facts_of(words.language).thousands)


def money(dollars: float) -> str:
    """Nothing when nothing was counted: it was free, or the price is not known."""
    if dollars <= 0:
        return ""
    return f"${dollars:.2f}" if dollars >= 0.005 else "<$0.01"


def turns(count: int, words: Words) -> str:
    return words("sessions.turn" if count == 1 else "sessions.turns", turns=count)
