"""Texts for the model: template files, notes, and quotations between marks that they cannot close."""

import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.language import own_piece, read_piece
from duckflow.state.phrase import Phrase

PLACEHOLDER = re.compile(r"\{(\w+)\}")


@cache
def load(language: str, name: str) -> str:
    return read_piece(language, "prompts", f"{name}.md").rstrip("\n")


def fill(template: str, values: dict[str, str]) -> str:
    """Puts the values in. A line whose placeholders are all empty is left out, with the label line that stands right
    before it and ends in a colon."""
    lines: list[str] = []
    for line in template.split("\n"):
        names = PLACEHOLDER.findall(line)
        if names and not any(values[name] for name in names):
            if line == f"{{{names[0]}}}" and lines and lines[-1].endswith(":"):
                lines.pop()
            continue
        lines.append(PLACEHOLDER.sub(lambda match: values[match[1]], line))
    return "\n".join(lines)


def render(language: str, name: str, **values: str) -> str:
    return fill(load(language, name), values)


@cache
def own_tool_texts(language: str) -> dict[str, str]:
    """Returns the texts about our tools for the model that a language has itself, by operation."""
    texts: dict[str, str] = json.loads(own_piece(language, "tools.json") or "{}")
    return texts


def tool_text(language: str, name: str) -> str:
    """Returns the text about a tool, or nothing where no language has one."""
    return own_tool_texts(language).get(name) or own_tool_texts(DEFAULT_LANGUAGE).get(name, "")


@cache
def own_notes(language: str) -> dict[str, str]:
    """Returns the notes that a language has itself."""
    pairs = (line.partition(": ") for line in own_piece(language, "prompts", "notes.md").rstrip("\n").split("\n"))
    return {name: text for name, _, text in pairs}


def notes(language: str, phrases: Iterable[Phrase]) -> str:
    """Returns the notes that others have named, each in a line of its own."""
    return "\n".join(
        note(language, phrase.key, **{name: str(text) for name, text in phrase.values.items()}) for phrase in phrases
    )


def note(language: str, name: str, **values: str) -> str:
    """Returns a sentence for the model, from the template `notes`: one line each, its name before the first colon."""
    return fill(own_notes(language).get(name) or own_notes(DEFAULT_LANGUAGE)[name], values)


MARK_LENGTH = 8


def mark_for(text: str) -> str:
    """Returns a mark that is not part of the text. It is the same for the same text, so that a cached prefix stays."""
    mark = _digest(text)
    while mark in text:
        mark = _digest(mark)
    return mark


def quoted(language: str, source: str, text: str) -> str:
    return render(language, "quoted", source=one_line(source), mark=mark_for(text), text=text)


def one_line(text: str) -> str:
    """Puts a name from outside in one line, so that it cannot begin a line of its own."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:MARK_LENGTH]
