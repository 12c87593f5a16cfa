"""Reads the texts and facts of each language, and writes phrases and figures in the user's language."""

import json
import os
import re
import string
import time
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.errors import DuckflowError

if TYPE_CHECKING:
    from duckflow.state.data import Phrase


FOLDER = Path(__file__).parent
FACTS = "language.json"


class LanguageFacts(NamedTuple):
    """The facts about a language, from the file that makes its folder a language."""

    name: str
    """The language's name, as its speakers call it."""
    letters: str
    """The characters of the language's words, as inside a regular expression's character class."""
    spaces: bool = True
    """True if spaces separate the language's words."""
    thousands: str = ","
    """The sign between groups of three digits."""
    day: str = "%Y-%m-%d"
    """The form of a date, as `strftime` takes it."""
    known_bytes: int = 440
    """The most bytes in every prompt for facts about the project from earlier sessions."""
    complete: bool = False
    """True if the language has every text. It is then listed first, and the page may choose it because the browser
    prefers it."""


@cache
def languages() -> tuple[str, ...]:
    """Returns the languages: the default, then complete languages, then all others."""
    codes = (code for code in os.listdir(FOLDER) if is_language(code))
    return tuple(sorted(codes, key=lambda code: (code != DEFAULT_LANGUAGE, not facts_of(code).complete, code)))


def is_language(code: str) -> bool:
    return code.isidentifier() and (FOLDER / code / FACTS).is_file()


@cache
def facts_of(language: str) -> LanguageFacts:
    """Returns the facts of a language, or the default's for a language that is gone but that a journal still names."""
    return LanguageFacts(**json.loads(read_piece(language, FACTS)))


def language_of(setting: str) -> str:
    """Returns the configured language, else the locale's, else the default."""
    if is_language(setting):
        return setting
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    code = re.split(r"[_.@-]", locale, maxsplit=1)[0]
    return code if is_language(code) else DEFAULT_LANGUAGE


def read_piece(language: str, *path: str) -> str:
    """Reads a file of a language's folder; if it is missing there, the default language's file."""
    return own_piece(language, *path) or own_piece(DEFAULT_LANGUAGE, *path)


def own_piece(language: str, *path: str) -> str:
    """Reads a file of a language's folder; returns an empty text if it is missing."""
    try:
        return FOLDER.joinpath(language, *path).read_text(encoding="utf-8")
    except OSError:
        return ""


def text_in(texts: Mapping[str, str], language: str) -> str:
    """Chooses the text in a language from texts in several languages, such as those of a plugin."""
    return texts.get(language) or texts.get(DEFAULT_LANGUAGE) or next(iter(texts.values()))


def languages_in(text: str, language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Returns the languages that a text may be in: the default, each language whose own letters the text has, and the
    session's language if it has no letters of its own. So adding a language changes nothing for other languages."""
    codes = [DEFAULT_LANGUAGE]
    if language != DEFAULT_LANGUAGE and _own_letters(language) is None:
        codes.append(language)
    if not text.isascii():
        codes += [code for code in languages() if (letters := _own_letters(code)) and letters.search(text)]
    return tuple(codes)


@cache
def _own_letters(language: str) -> re.Pattern[str] | None:
    """Returns a pattern of the letters that prove that a text is in the language; None if the default has them too."""
    letters = re.compile(f"[{facts_of(language).letters}]")
    return None if letters.search(string.ascii_lowercase) else letters


NEVER = "(?!)"
PART = r"\{([a-z_]+)\}"


class Rule:
    """A regular expression that ignores case."""

    def __init__(self, source: str, words: tuple[str, ...]) -> None:
        self.source = source
        self._words = words

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source, re.IGNORECASE)

    @cached_property
    def listed(self) -> tuple[str, ...]:
        """Returns the words of a rule that is a plain list of words."""
        return tuple(filter(None, self.source.split("|")))

    def may_fit(self, lowered: str) -> bool:
        return bool(self.source) and (not self._words or any(word in lowered for word in self._words))


@cache
def entries(language: str, topic: str) -> tuple[tuple[str, Rule], ...]:
    """Reads the rules in a language's own file in order, each with its name. A line that begins with a space continues
    the line before; `{name}` stands for another pattern of the file."""
    lines: list[str] = []
    for line in own_piece(language, "patterns", f"{topic}.txt").splitlines():
        if line.startswith(" "):
            lines[-1] += line.strip()
        elif line and not line.startswith("#"):
            lines.append(line)
    sources: dict[str, str] = {}
    named_rules: list[tuple[str, Rule]] = []
    for line in lines:
        name_part, _, source = line.partition(":")
        name, _, words = name_part.partition(" [")
        source = re.sub(PART, lambda part: sources[part[1]], source.strip()) if "{" in source else source.strip()
        sources[name] = f"(?:{source})"
        named_rules.append((name, Rule(source, tuple(words.removesuffix("]").split("|")) if words else ())))
    return tuple(named_rules)


@cache
def rules(language: str, name: str) -> tuple[Rule, ...]:
    topic, _, wanted_name = name.partition(".")
    return tuple(rule for rule_name, rule in entries(language, topic) if rule_name == wanted_name)


def has(language: str, name: str) -> bool:
    return any(rule.source for rule in rules(language, name))


@cache
def in_language(language: str, name: str) -> re.Pattern[str]:
    """Returns all rules that a language has under a name as one pattern, which never matches where there are none."""
    sources = filter(None, (rule.source for rule in rules(language, name)))
    return re.compile("|".join(sources) or NEVER, re.IGNORECASE)


def fitting(language: str, name: str, text: str) -> Iterator[re.Pattern[str]]:
    """Yields the patterns of one language that may be found in the text."""
    lowered_text = text.lower()
    return (rule.pattern for rule in rules(language, name) if rule.may_fit(lowered_text))


def search(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> re.Match[str] | None:
    """Searches with the patterns of all languages that the text may be in, and returns the first match."""
    return next((match for pattern in patterns(name, text, language) if (match := pattern.search(text))), None)


def begins(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> re.Match[str] | None:
    """Works like `search`, but matches only at the beginning of the text."""
    return next((match for pattern in patterns(name, text, language) if (match := pattern.match(text))), None)


def fullmatch(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> re.Match[str] | None:
    """Works like `search`, but matches only the whole text."""
    return next((match for pattern in patterns(name, text, language) if (match := pattern.fullmatch(text))), None)


def patterns(name: str, text: str, language: str) -> Iterator[re.Pattern[str]]:
    """Yields the patterns with this name of all languages that the text may be in."""
    return (pattern for code in languages_in(text, language) for pattern in fitting(code, name, text))


def may_find(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether a search may find something. This check compiles no pattern."""
    lowered_text, codes = text.lower(), languages_in(text, language)
    return any(rule.may_fit(lowered_text) for code in codes for rule in rules(code, name))


def contains(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether one of the words of a plain list occurs anywhere in the text."""
    lowered_text, codes = text.lower(), languages_in(text, language)
    return any(word in lowered_text for code in codes for rule in rules(code, name) for word in rule.listed)


def joined(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """Returns the patterns of all languages that the text may be in, as one group of alternatives."""
    sources = (rule.source for code in languages_in(text, language) for rule in rules(code, name))
    return f"(?:{'|'.join(filter(None, sources)) or NEVER})"


@cache
def words_of(name: str) -> tuple[str, ...]:
    """Returns the list of words with this name in all languages, since programs print in any language."""
    return tuple(word for language in languages() for rule in rules(language, name) for word in rule.listed)


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Returns the language's own texts. Only the language in use is loaded."""
    texts: dict[str, str] = json.loads(own_piece(language, "words.json") or "{}")
    return texts


SYSTEM_VALUES = frozenset({"reason", "detail"})
"""The names of values that may be the operating system's own words for an error."""


@cache
def system_messages(language: str) -> Mapping[str, str]:
    """Returns the operating system's own words for errors, which are English, in a language."""
    messages: dict[str, str] = json.loads(own_piece(language, "system.json") or "{}")
    return messages


ENDING = r"\{\w+:"


class _Counted:
    """A value that chooses between the singular and the plural ending: `Zeile{lines:|n}`. Where the singular has no
    ending, only the plural's is written: `line{lines:s}`. The page's words.js does the same."""

    def __init__(self, value: str | int | float) -> None:
        self._value = value

    def __format__(self, wanted: str) -> str:
        singular, _, plural = wanted.rpartition("|")
        return (singular if str(self._value) == "1" else plural) if wanted else str(self._value)


class Words:
    """Turns keys and phrases into texts of one language. The language can be changed."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.emoji = True
        """If False, a text with an emoji is replaced by the text whose key ends in `.words`."""

    def __call__(self, key: str, **values: str | int | float) -> str:
        text = self._text(key)
        if text is None:
            # An old journal may hold phrases that this version has no words for. A rough line is better than none.
            return " ".join([key, *map(str, values.values())])
        system = system_messages(self.language)
        values |= {name: system.get(str(values[name]), values[name]) for name in SYSTEM_VALUES & values.keys()}
        shown_values: dict[str, object] = dict(values)
        if "{install:" in text:
            from duckflow.installation import InstallCommands

            shown_values["install"] = InstallCommands()
        elif re.search(ENDING, text):
            shown_values = {name: _Counted(value) for name, value in values.items()}
        return text.format_map(shown_values)

    def _text(self, key: str) -> str | None:
        """Returns the text in this language, else in the default language; None if there is none."""
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
    """Returns the age of the time `then` in words; after a month, the date."""
    seconds = max(0.0, now - then)
    if seconds < MINUTE:
        return words("age.now")
    for upper_bound, unit, key in SPANS:
        if seconds < upper_bound:
            return words(key, count=int(seconds // unit))
    return time.strftime(facts_of(words.language).day, time.localtime(then))


def grouped(number: int, words: Words) -> str:
    """Writes a number with the language's sign between groups of three digits."""
    return f"{number:,}".replace(",", facts_of(words.language).thousands)


def money(dollars: float) -> str:
    """Writes an amount. The text is empty for 0: the work was free, or its price is not known."""
    if dollars <= 0:
        return ""
    return f"${dollars:.2f}" if dollars >= 0.005 else "<$0.01"


def turns(count: int, words: Words) -> str:
    return words("sessions.turn" if count == 1 else "sessions.turns", turns=count)
