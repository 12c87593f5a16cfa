"""Phrases in the user's language, and figures as people say them."""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from duckflow import DEFAULT_LANGUAGE
from duckflow.errors import DuckflowError
from duckflow.i18n.language import own_piece, text_in

if TYPE_CHECKING:
    from duckflow.state.phrase import Phrase
import time

from duckflow.i18n.language import facts_of


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Returns the texts that a language has itself. Only the language in use is loaded."""
    texts: dict[str, str] = json.loads(own_piece(language, "words.json") or "{}")
    return texts


ENDING = r"\{\w+:"


class _Counted:
    """A value that chooses between the singular and the plural ending: `Zeile{lines:|n}`. Where the singular has no
    ending, as in `line{lines:s}`, only the plural's is written. The page's words.js does the same."""

    def __init__(self, value: str | int | float) -> None:
        self._value = value

    def __format__(self, wanted: str) -> str:
        singular, _, plural = wanted.rpartition("|")
        return (singular if str(self._value) == "1" else plural) if wanted else str(self._value)


class Words:
    """Speaks one language, which can change while it runs."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.emoji = True
        """Without emoji, a text that has one is said in words: by the entry whose key ends in `.words`."""

    def __call__(self, key: str, **values: str | int | float) -> str:
        text = self._text(key)
        if text is None:
            # An old journal may hold phrases that this version has no words for: a rough line is better than none.
            return " ".join([key, *map(str, values.values())])
        shown_values: dict[str, object] = dict(values)
        if "{install:" in text:
            from duckflow.installation import InstallCommands

            shown_values["install"] = InstallCommands()
        elif re.search(ENDING, text):
            shown_values = {name: _Counted(value) for name, value in values.items()}
        return text.format_map(shown_values)

    def _text(self, key: str) -> str | None:
        """Returns the text in this language, else in the default one."""
        for texts in map(catalogue, (self.language, DEFAULT_LANGUAGE)):
            text = texts.get(key) if self.emoji else texts.get(f"{key}.words") or texts.get(key)
            if text is not None:
                return text
        return None

    def phrase(self, phrase: "Phrase") -> str:
        if phrase.texts:
            return text_in(phrase.texts, self.language).format_map(phrase.values)
        return self(phrase.key, **phrase.values)

    def error(self, error: DuckflowError) -> str:
        return self(error.key, **error.values)


MINUTE, HOUR, DAY = 60, 3600, 86_400
SPANS = ((HOUR, MINUTE, "age.minutes"), (DAY, HOUR, "age.hours"), (30 * DAY, DAY, "age.days"))


def age(then: float, now: float, words: Words) -> str:
    """Says how long ago it was; after a month, the date."""
    seconds = max(0.0, now - then)
    if seconds < MINUTE:
        return words("age.now")
    for upper_bound, unit, key in SPANS:
        if seconds < upper_bound:
            return words(key, count=int(seconds // unit))
    return time.strftime(facts_of(words.language).day, time.localtime(then))


def grouped(number: int, words: Words) -> str:
    """Writes a number with a sign between groups of three digits."""
    return f"{number:,}".replace(",", facts_of(words.language).thousands)


def money(dollars: float) -> str:
    """Writes an amount. It is empty when nothing was counted: it was free, or the price is not known."""
    if dollars <= 0:
        return ""
    return f"${dollars:.2f}" if dollars >= 0.005 else "<$0.01"


def turns(count: int, words: Words) -> str:
    return words("sessions.turn" if count == 1 else "sessions.turns", turns=count)
