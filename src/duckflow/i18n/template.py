"""Template files: loading, and filling without leaving traces of what is empty."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from duckflow.state.phrase import Phrase

FOLDER = Path(__file__).parent
PLACEHOLDER = re.compile(r"\{(\w+)\}")


@cache
def load(language: str, name: str) -> str:
    return (FOLDER / language / "prompts" / f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def fill(template: str, values: dict[str, str]) -> str:
    """Put the values in. A line whose placeholders are all empty goes, with the label line that stands right before it
    and ends in a colon."""
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
def _notes(language: str) -> dict[str, str]:
    pairs = (line.partition(": ") for line in load(language, "notes").split("\n"))
    return {name: text for name, _, text in pairs}


def notes(language: str, phrases: Iterable[Phrase]) -> str:
    """Notes that others have named, each in a line of its own."""
    return "\n".join(
        note(language, one.key, **{name: str(text) for name, text in one.values.items()}) for one in phrases
    )


def note(language: str, name: str, **values: str) -> str:
    """A sentence for the model, from the template `notes`: one line each, its name before the first colon."""
    return fill(_notes(language)[name], values)
