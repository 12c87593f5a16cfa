"""Finds out which languages there are, and what a language's folder holds. A folder may hold little: the rest is taken
from the default language, piece by piece (docs/languages.md)."""

import json
import os
import re
import string
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from duckflow import DEFAULT_LANGUAGE

FOLDER = Path(__file__).parent
FACTS = "language.json"


class LanguageFacts(NamedTuple):
    """The file that makes a folder a language."""

    name: str
    """The language as its speakers call it."""
    letters: str
    """The signs its words are written with, as inside of a character class."""
    spaces: bool = True
    """Whether words stand apart."""
    thousands: str = ","
    """The sign between groups of three digits."""
    day: str = "%Y-%m-%d"
    """How a date is written."""
    known_bytes: int = 440
    """Room in every prompt for what earlier sessions tell of the project."""
    complete: bool = False
    """Whether the tests want every piece of it to be there."""


@cache
def languages() -> tuple[str, ...]:
    """The default, then those that are complete, then the others."""
    codes = (code for code in os.listdir(FOLDER) if is_language(code))
    return tuple(sorted(codes, key=lambda code: (code != DEFAULT_LANGUAGE, not facts_of(code).complete, code)))


def is_language(code: str) -> bool:
    return code.isidentifier() and (FOLDER / code / FACTS).is_file()


@cache
def facts_of(language: str) -> LanguageFacts:
    """The facts of a language. A journal may name one that is gone: then they are those of the default."""
    return LanguageFacts(**json.loads(read_piece(language, FACTS)))


def language_of(setting: str) -> str:
    """The configured language, else the locale's, else the default."""
    if is_language(setting):
        return setting
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    code = re.split(r"[_.@-]", locale, maxsplit=1)[0]
    return code if is_language(code) else DEFAULT_LANGUAGE


def read_piece(language: str, *path: str) -> str:
    """A file of a language's folder, or the default language's where it has none."""
    return own_piece(language, *path) or own_piece(DEFAULT_LANGUAGE, *path)


def own_piece(language: str, *path: str) -> str:
    """A file of a language's folder; nothing where it has none."""
    try:
        return FOLDER.joinpath(language, *path).read_text(encoding="utf-8")
    except OSError:
        return ""


def text_in(texts: Mapping[str, str], language: str) -> str:
    """One of the texts that somebody brings along by language."""
    return texts.get(language) or texts.get(DEFAULT_LANGUAGE) or next(iter(texts.values()))


def languages_in(text: str, language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """The languages that a text may be in: the default, every one in whose own letters it is written, and the session's
    where that has no letters of its own. So a folder that is added changes nothing for other languages."""
    spoken = [DEFAULT_LANGUAGE]
    if language != DEFAULT_LANGUAGE and _own_letters(language) is None:
        spoken.append(language)
    if not text.isascii():
        spoken += [one for one in languages() if (letters := _own_letters(one)) and letters.search(text)]
    return tuple(spoken)


@cache
def _own_letters(language: str) -> re.Pattern[str] | None:
    """The letters by which a text is known to be in the language; nothing where it shares them with the default's."""
    letters = re.compile(f"[{facts_of(language).letters}]")
    return None if letters.search(string.ascii_lowercase) else letters
