"""Finds out which languages there are, and what a language's folder holds. A folder may hold little: the rest is taken
from the default language, piece by piece (docs/languages.md)."""

import json
import os
import re
import string
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from duckflow import DEFAULT_LANGUAGE

FOLDER = Path(__file__).parent
FACTS = "language.json"


class LanguageFacts(NamedTuple):
    """The facts in the file that makes a folder a language."""

    name: str
    """The language as its speakers call it."""
    letters: str
    """The characters that its words are written with, as inside a character class."""
    spaces: bool = True
    """Words are separated by spaces."""
    thousands: str = ","
    """The sign between groups of three digits."""
    day: str = "%Y-%m-%d"
    """The form of a date."""
    known_bytes: int = 440
    """Bytes in every prompt for what earlier sessions tell of the project."""
    complete: bool = False
    """True if the language has every text: it is then listed first, and the page may choose it by the browser."""


@cache
def languages() -> tuple[str, ...]:
    """Returns the languages: the default, then those that are complete, then the others."""
    codes = (code for code in os.listdir(FOLDER) if is_language(code))
    return tuple(sorted(codes, key=lambda code: (code != DEFAULT_LANGUAGE, not facts_of(code).complete, code)))


def is_language(code: str) -> bool:
    return code.isidentifier() and (FOLDER / code / FACTS).is_file()


@cache
def facts_of(language: str) -> LanguageFacts:
    """Returns the facts of a language. A journal may name a language that is gone; then it is the default's."""
    return LanguageFacts(**json.loads(read_piece(language, FACTS)))


def language_of(setting: str) -> str:
    """Returns the configured language, else the locale's, else the default."""
    if is_language(setting):
        return setting
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    code = re.split(r"[_.@-]", locale, maxsplit=1)[0]
    return code if is_language(code) else DEFAULT_LANGUAGE


def read_piece(language: str, *path: str) -> str:
    """Reads a file of a language's folder, or the default language's where it has none."""
    return own_piece(language, *path) or own_piece(DEFAULT_LANGUAGE, *path)


def own_piece(language: str, *path: str) -> str:
    """Reads a file of a language's folder; returns nothing where it has none."""
    try:
        return FOLDER.joinpath(language, *path).read_text(encoding="utf-8")
    except OSError:
        return ""


def text_in(texts: Mapping[str, str], language: str) -> str:
    """Chooses one of the texts that somebody brings along by language."""
    return texts.get(language) or texts.get(DEFAULT_LANGUAGE) or next(iter(texts.values()))


def languages_in(text: str, language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Returns the languages that a text may be in: the default, each one in whose own letters it is written, and the
    session's where that has no letters of its own. So a new folder changes nothing for other languages."""
    codes = [DEFAULT_LANGUAGE]
    if language != DEFAULT_LANGUAGE and _own_letters(language) is None:
        codes.append(language)
    if not text.isascii():
        codes += [code for code in languages() if (letters := _own_letters(code)) and letters.search(text)]
    return tuple(codes)


@cache
def _own_letters(language: str) -> re.Pattern[str] | None:
    """Returns the letters by which a text is known to be in the language, or nothing where the default has them too."""
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
        """Returns the words of a rule that is a plain list."""
        return tuple(filter(None, self.source.split("|")))

    def may_fit(self, lowered: str) -> bool:
        return bool(self.source) and (not self._words or any(word in lowered for word in self._words))


@cache
def entries(language: str, topic: str) -> tuple[tuple[str, Rule], ...]:
    """Reads the rules in a language's own file, with the names of their patterns, in order. A line that begins with a
    space continues the one before; `{name}` stands for another pattern of the file."""
    lines: list[str] = []
    for line in own_piece(language, "patterns", f"{topic}.txt").splitlines():
        if line.startswith(" "):
            lines[-1] += line.strip()
        elif line and not line.startswith("#"):
            lines.append(line)
    parts: dict[str, str] = {}
    named_rules: list[tuple[str, Rule]] = []
    for line in lines:
        head, _, source = line.partition(":")
        name, _, words = head.partition(" [")
        source = re.sub(PART, lambda part: parts[part[1]], source.strip()) if "{" in source else source.strip()
        parts[name] = f"(?:{source})"
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
    """Returns all rules that a language has under a name as one pattern. It never matches where there are none."""
    sources = filter(None, (rule.source for rule in rules(language, name)))
    return re.compile("|".join(sources) or NEVER, re.IGNORECASE)


def fitting(language: str, name: str, text: str) -> Iterator[re.Pattern[str]]:
    """Yields the patterns of one language that may be found in the text."""
    lowered_text = text.lower()
    return (rule.pattern for rule in rules(language, name) if rule.may_fit(lowered_text))


def search(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> re.Match[str] | None:
    """Searches with the patterns of all languages that the text may be in, and returns the first match."""
    return next((match for pattern in _patterns(name, text, language) if (match := pattern.search(text))), None)


def begins(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> re.Match[str] | None:
    """Works like `search`, at the beginning of the text."""
    return next((match for pattern in _patterns(name, text, language) if (match := pattern.match(text))), None)


def fullmatch(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> re.Match[str] | None:
    """Works like `search`, for the whole text."""
    return next((match for pattern in _patterns(name, text, language) if (match := pattern.fullmatch(text))), None)


def _patterns(name: str, text: str, language: str) -> Iterator[re.Pattern[str]]:
    return (pattern for code in languages_in(text, language) for pattern in fitting(code, name, text))


def may_find(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether it is worth searching. Nothing is compiled for this."""
    lowered_text, codes = text.lower(), languages_in(text, language)
    return any(rule.may_fit(lowered_text) for code in codes for rule in rules(code, name))


def contains(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether one of the words of a plain list stands anywhere in the text."""
    lowered_text, codes = text.lower(), languages_in(text, language)
    return any(word in lowered_text for code in codes for rule in rules(code, name) for word in rule.listed)


def joined(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """Returns the patterns of all languages that the text may be in, as one group of alternatives."""
    sources = (rule.source for code in languages_in(text, language) for rule in rules(code, name))
    return f"(?:{'|'.join(filter(None, sources)) or NEVER})"


@cache
def words_of(name: str) -> tuple[str, ...]:
    """Returns a list of words in all languages, since programs print in any of them."""
    return tuple(word for language in languages() for rule in rules(language, name) for word in rule.listed)
