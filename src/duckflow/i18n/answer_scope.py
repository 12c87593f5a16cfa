"""Takes the words about the scope of a yes (how far it goes) and about how the work is to run out of an answer."""

import re
from typing import Literal, NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.answer_words import agrees_somewhere, yes_or_no
from duckflow.i18n.words import fitting, languages_in, search

Scope = Literal["", "once", "session", "always"]
PLACES = ("foreground", "background")
PARTS = (*PLACES, "exception", "session", "always", "aside", "once")
"""Names of the parts that are taken out of a sentence, in this order."""
PUNCTUATION = " 。、.,!！"
SPLIT = r"(?<=[^\x00-\x7f👍]) (?=[^\x00-\x7f👍])| (?=[,.;])"
"""Matches a space between words of a language that needs none, or before a punctuation mark."""
CLAUSE_END = r"[,.;:!、。]"
LAST_CLAUSE = r"^|[,.;:!]\s|[、。]"
AGREED = " 👍 "
"""A sign that stands in the sentence for words that gave both a yes and its scope."""


class Parts(NamedTuple):
    """A sentence without the parts that were taken out of it (`rest`), and the meaning of those parts."""

    rest: str
    scope: Scope = ""
    about: str = ""
    background: bool = False
    bounded: bool = False


def taken_apart(plain: str, language: str) -> Parts:
    """Takes out words about the scope of a yes and about how the work is to run. The word `once` cancels every wider
    scope, and words about the session limit `always`."""
    sentence, scope_parts, begins_with_scope = plain, dict[str, str](), False
    for part in PARTS:
        for name, replacement in (
            (f"scopes.allows.{part}", AGREED),
            (f"scopes.{part}", " " if part in PLACES else " , "),
        ):
            sentence, matches = without(name, sentence, replacement, language)
            # Words about how the work is to run may stand in the middle of a sentence about something else.
            sentence = re.sub(SPLIT, "", " ".join(sentence.split())) if part in PLACES and matches else sentence
            for match in matches:
                about = (match.groupdict().get("about") or "").strip()
                begins_with_scope |= bool(about) and not match.string[: match.start()].strip(PUNCTUATION + AGREED)
                scope_parts[part] = scope_parts.get(part) or about
    if sentence != plain:
        sentence, _ = without("scopes.joint", sentence, " ", language)
    scope: Scope = "once" if {"once", "exception"} & scope_parts.keys() else "always" if "always" in scope_parts else ""
    if "session" in scope_parts and (not scope or (scope == "always" and search("scopes.bounds", plain, language))):
        scope = "session"
    about = "" if scope == "once" else scope_parts.get("session") or scope_parts.get("always") or ""
    # A sentence that begins with an allowed thing ("all rst files are fine") agrees to just that, unless a yes follows.
    text_after = "".join(re.split(CLAUSE_END, sentence.strip(PUNCTUATION))[1:])
    agrees_after = (
        agrees_somewhere(text_after, language) or yes_or_no(re.split(LAST_CLAUSE, plain)[-1], language) == "yes"
    )
    is_bounded = begins_with_scope and bool(named_in(about, language)) and not agrees_after
    return Parts(
        sentence.strip(), scope, about, "background" in scope_parts and "foreground" not in scope_parts, is_bounded
    )


def without(name: str, text: str, replacement: str, language: str) -> tuple[str, list[re.Match[str]]]:
    """Returns the text with each match of the named patterns replaced by `replacement`, and the matches."""
    matches: list[re.Match[str]] = []
    for code in languages_in(text, language):
        for pattern in fitting(code, name, text):
            offset = 0
            while (match := pattern.search(text, offset)) and match[0]:
                matches.append(match)
                text = text[: match.start()] + replacement + text[match.end() :]
                # The replacement may match again, so the search goes on after it.
                offset = match.start() + len(replacement)
    return text, matches


def named_in(about: str, language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Returns the names of programs, files and folders in the text about a scope. `the test runs` names `test`."""
    remaining_text = about.casefold()
    for name, replacement in (("scopes.tests", " test "), ("scopes.pointing", " ")):
        remaining_text, _ = without(name, remaining_text, replacement, language)
    return tuple(word for word in re.findall(r"[\w.+#/-]+", remaining_text) if word.strip("./"))


def parts_of(about: str, language: str = DEFAULT_LANGUAGE) -> list[str]:
    """Returns the parts of a text about a scope that names several things: `pytest and the docs`. A text that names one
    thing, or none, is one part."""
    parts = re.split(r"[,、]", without("scopes.and", about, ",", language)[0])
    return [part for part in parts if named_in(part, language)] or [about]
