"""Quoted material: text from outside, between marks that it cannot close."""

import hashlib

from duckflow.i18n.template import render

MARK_LENGTH = 8


def mark_for(text: str) -> str:
    """The same for the same text, so that a cached prefix stays; never part of the text itself."""
    mark = _digest(text)
    while mark in text:
        mark = _digest(mark)
    return mark


def quoted(language: str, source: str, text: str) -> str:
    return render(language, "quoted", source=one_line(source), mark=mark_for(text), text=text)


def one_line(text: str) -> str:
    """A name from outside as part of a line of ours: it cannot begin a line of its own."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:MARK_LENGTH]
