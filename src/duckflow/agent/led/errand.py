"""Finds the files that a request names, and whether they are to be read or written. It uses rules only, and asks no
model."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.words import has, in_language, joined, languages_in, search

PATH = (
    r"(?<![A-Za-z0-9_./@:\\-])((?:[A-Za-z0-9_.-]+/)*[A-Za-z0-9_-][A-Za-z0-9_.-]*"
    r"\.[A-Za-z][A-Za-z0-9]{0,5})(?![A-Za-z0-9_/])"
)
NOT_FILES = frozenset({"e.g", "i.e", "etc.", "node.js", "next.js", "vue.js", "asp.net", "a.m", "p.m"})

LONGEST_GREETING = 60


class Errand(NamedTuple):
    """The files of a request, in the order in which it names them. Files to be moved or deleted are left out."""

    names: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    only_writes: bool = False
    """True if the request seems to want nothing but these files, so that writing them completes it."""
    only_asks: bool = False
    """True if the request is only a question, so that an answer completes it."""


def greets(request: str, language: str = DEFAULT_LANGUAGE) -> bool:
    """Says whether the request is a greeting or thanks and nothing else."""
    if len(request) >= LONGEST_GREETING:
        return False
    return re.fullmatch(rf"(?i)(?:\W*{joined('requests.greeting', request, language)})+\W*", request) is not None


def errand(request: str, language: str = DEFAULT_LANGUAGE) -> Errand:
    """Returns the files of a request. A file counts as one to write only where that is clear."""
    path_matches = [match for match in re.finditer(PATH, request) if match[1].lower() not in NOT_FILES]
    names, writes = list[str](), list[str]()
    for index, match in enumerate(path_matches):
        end = path_matches[index + 1].start() if index + 1 < len(path_matches) else len(request)
        wish = _wish(request[: match.start()], request[match.end() : end], languages_in(request, language))
        if wish != "other":
            names.append(match[1])
        if wish == "write" and is_file(match[1]):
            writes.append(match[1])
    only_writes = bool(writes) and not search("requests.more", request, language)
    return Errand(tuple(dict.fromkeys(names)), tuple(dict.fromkeys(writes)), only_writes, _only_asks(request, language))


def is_file(name: str) -> bool:
    """Says whether the name can only be a file's, and not that of something else with a dot in it, such as a method."""
    from duckflow.tools.plan.criterion import ENDINGS

    return "/" in name or re.search(rf"(?i)\.{ENDINGS}$", name) is not None


def _only_asks(request: str, language: str) -> bool:
    if not search("requests.asks", request, language):
        return False
    verbs = (pattern for code in reversed(languages_in(request, language)) for pattern in _verbs(code))
    return not any(verb["write"] or verb["other"] for verb in next(verbs).finditer(request))


def _verbs(language: str) -> Iterator[re.Pattern[str]]:
    """Yields the patterns of verbs in this language: first of verbs that follow the file, then of verbs before it."""
    names = ("requests.verb_after", "requests.verb_before")
    return (in_language(language, name) for name in names if has(language, name))


def _wish(before: str, after: str, languages: Sequence[str]) -> str:
    """Returns what the words around a file's name ask to be done with the file: `write`, `read`, `other`, or an empty
    text. The default language is tried last."""
    for language in reversed(languages):
        wish = _wish_after(language, before, after)
        wish = _wish_before(language, before) if wish is None else wish
        if wish is not None:
            return wish
    return ""


def _wish_after(language: str, before: str, after: str) -> str | None:
    """Returns what the verb after the file's name asks for; None if no verb follows."""
    sentence_end = in_language(language, "requests.sentence_end")
    after = sentence_end.split(after, maxsplit=1)[0]
    if in_language(language, "requests.renamed").search(sentence_end.split(before)[-1] + after):
        return "other"
    verb = in_language(language, "requests.verb_after").search(after)
    if verb is None:
        return None
    return "" if in_language(language, "requests.negated_after").match(after[verb.end() :]) else str(verb.lastgroup)


def _wish_before(language: str, before: str) -> str | None:
    """Returns what the last verb before the file's name asks for; None if this language puts no verb there."""
    if not has(language, "requests.verb_before"):
        return None
    before = in_language(language, "requests.sentence_end").split(before)[-1]
    if in_language(language, "requests.material_before").search(before):
        return "read"
    verbs = list(in_language(language, "requests.verb_before").finditer(before))
    if not verbs or verbs[-1]["no"]:
        return ""
    return next(name for name in ("write", "read", "other") if verbs[-1][name])
