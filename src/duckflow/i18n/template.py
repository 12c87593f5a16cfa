"""Texts for the model: template files, notes, and quotations between marks that the quoted text cannot contain."""

import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.words import FOLDER, own_piece, read_piece
from duckflow.state.data import Phrase

PLACEHOLDER = re.compile(r"\{(\w+)\}")


@cache
def load(language: str, name: str) -> str:
    return read_piece(language, "prompts", f"{name}.md").rstrip("\n")


def fill(template: str, values: dict[str, str]) -> str:
    """Puts the values into the template. A line whose placeholders are all empty is left out, with the label line that
    stands right before it and ends in a colon."""
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
    """Returns the language's own texts for the model about the built-in tools, by operation. Texts of the default
    language are left out."""
    texts: dict[str, str] = json.loads(own_piece(language, "tools.json") or "{}")
    return texts


@cache
def own_texts(language: str) -> str:
    """Returns all texts for the model in the language and in the default one, without a name or an order."""
    folders = [FOLDER / code / "prompts" for code in dict.fromkeys((DEFAULT_LANGUAGE, language))]
    templates = [path.read_text(encoding="utf-8") for folder in folders for path in sorted(folder.glob("*.md"))]
    return "\n".join([*templates, *own_tool_texts(DEFAULT_LANGUAGE).values(), *own_tool_texts(language).values()])


def tool_text(language: str, name: str) -> str:
    """Returns the text about a tool in the language, else in the default; an empty text if there is none."""
    return own_tool_texts(language).get(name) or own_tool_texts(DEFAULT_LANGUAGE).get(name, "")


@cache
def own_notes(language: str) -> dict[str, str]:
    """Returns the language's own notes (sentences for the model), by name. Notes of the default language are left
    out."""
    note_parts = (line.partition(": ") for line in own_piece(language, "prompts", "notes.md").rstrip("\n").split("\n"))
    return {name: text for name, _, text in note_parts}


def notes(language: str, phrases: Iterable[Phrase]) -> str:
    """Returns the notes that the phrases name, one a line."""
    return "\n".join(
        note(language, phrase.key, **{name: str(text) for name, text in phrase.values.items()}) for phrase in phrases
    )


def note(language: str, name: str, **values: str) -> str:
    """Returns a sentence for the model from `notes.md`, where each line has a name before its first colon."""
    return fill(own_notes(language).get(name) or own_notes(DEFAULT_LANGUAGE)[name], values)


MARK_LENGTH = 8


def mark_for(text: str) -> str:
    """Returns a mark that is not part of the text. The same text gets the same mark, so that the cached beginning of a
    prompt stays valid."""
    mark = _digest(text)
    while mark in text:
        mark = _digest(mark)
    return mark


def quoted(language: str, source: str, text: str) -> str:
    return render(language, "quoted", source=one_line(source), mark=mark_for(text), text=text)


def one_line(text: str) -> str:
    """Puts a name from outside in one line, so that no part of it begins a new line."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:MARK_LENGTH]
