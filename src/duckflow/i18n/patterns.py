"""Patterns by which texts of people, models and programs are read, each language's own (docs/languages.md).

The name of a pattern is that of its file and of its line in it, such as `asking.leave`. It may have several rules. A
rule is compiled when it is first tried, and tried only where one of the words before it occurs: most texts need few."""

import re
from collections.abc import Iterator
from functools import cache, cached_property

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.language import languages, languages_in, own_piece

NEVER = "(?!)"
PART = r"\{([a-z_]+)\}"


class Rule:
    """A regular expression that does not mind capitals."""

    def __init__(self, source: str, words: tuple[str, ...]) -> None:
        self.source = source
        self._words = words

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source, re.IGNORECASE)

    @cached_property
    def listed(self) -> tuple[str, ...]:
        """The words of a rule that is a plain list."""
        return tuple(filter(None, self.source.split("|")))

    def may_fit(self, lowered: str) -> bool:
        return bool(self.source) and (not self._words or any(word in lowered for word in self._words))


@cache
def entries(language: str, topic: str) -> tuple[tuple[str, Rule], ...]:
    """The rules in a language's own file, with the names of their patterns, in order. A line that begins with a space
    goes on with the one before; `{name}` stands for another pattern of the file."""
    lines: list[str] = []
    for line in own_piece(language, "patterns", f"{topic}.txt").splitlines():
        if line.startswith(" "):
            lines[-1] += line.strip()
        elif line and not line.startswith("#"):
            lines.append(line)
    parts: dict[str, str] = {}
    found: list[tuple[str, Rule]] = []
    for line in lines:
        head, _, source = line.partition(":")
        name, _, words = head.partition(" [")
        source = re.sub(PART, lambda part: parts[part[1]], source.strip()) if "{" in source else source.strip()
        parts[name] = f"(?:{source})"
        found.append((name, Rule(source, tuple(words.removesuffix("]").split("|")) if words else ())))
    return tuple(found)


@cache
def rules(language: str, name: str) -> tuple[Rule, ...]:
    topic, _, own = name.partition(".")
    return tuple(rule for called, rule in entries(language, topic) if called == own)


def has(language: str, name: str) -> bool:
    return any(rule.source for rule in rules(language, name))


@cache
def in_language(language: str, name: str) -> re.Pattern[str]:
    """All rules that one language has under a name; where it has none, a pattern that is never found."""
    sources = filter(None, (rule.source for rule in rules(language, name)))
    return re.compile("|".join(sources) or NEVER, re.IGNORECASE)


def fitting(language: str, name: str, text: str) -> Iterator[re.Pattern[str]]:
    """The patterns of one language that may be found in the text."""
    lowered = text.lower()
    return (rule.pattern for rule in rules(language, name) if rule.may_fit(lowered))


def search(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> re.Match[str] | None:
    """What is found first in the languages that the text may be in."""
    return next((found for one in _patterns(name, text, language) if (found := one.search(text))), None)


def begins(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> re.Match[str] | None:
    """As `search`, at the beginning of the text."""
    return next((found for one in _patterns(name, text, language) if (found := one.match(text))), None)


def fullmatch(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> re.Match[str] | None:
    """As `search`, for the whole text."""
    return next((found for one in _patterns(name, text, language) if (found := one.fullmatch(text))), None)


def _patterns(name: str, text: str, language: str) -> Iterator[re.Pattern[str]]:
    return (pattern for spoken in languages_in(text, language) for pattern in fitting(spoken, name, text))


def may_find(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Whether it is worth searching. Nothing is compiled for this."""
    lowered, spoken = text.lower(), languages_in(text, language)
    return any(rule.may_fit(lowered) for one in spoken for rule in rules(one, name))


def contains(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Whether one of the words of a plain list stands anywhere in the text."""
    lowered, spoken = text.lower(), languages_in(text, language)
    return any(word in lowered for one in spoken for rule in rules(one, name) for word in rule.listed)


def joined(name: str, text: str, language: str = DEFAULT_LANGUAGE) -> str:
    """The patterns of all languages that the text may be in, as one group of alternatives."""
    sources = (rule.source for spoken in languages_in(text, language) for rule in rules(spoken, name))
    return f"(?:{'|'.join(filter(None, sources)) or NEVER})"


@cache
def words_of(name: str) -> tuple[str, ...]:
    """A list of words in all languages there are: programs speak whichever they like."""
    return tuple(word for language in languages() for rule in rules(language, name) for word in rule.listed)
