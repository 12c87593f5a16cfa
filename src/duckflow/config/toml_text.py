"""TOML as text: writes keys and values, and finds the statements of a file with their lines."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

Key = tuple[str, ...]
BARE = re.compile(r"[A-Za-z0-9_-]+")
LEFT = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""", re.ASCII)
ELSEWHERE: Key = ("[[]]",)
"""The name for entries of an array of tables. No setting has this name, so these entries count as no settings."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A header or an assignment in a TOML file; `key` is the full name of the table or of the value."""

    first: int
    after: int
    """The number of the line after the statement's last line."""
    key: Key
    table: Key
    header: bool


def write_key(key: Key) -> str:
    return ".".join(part if BARE.fullmatch(part) else _text(part) for part in key)


def read_key(name: str) -> Key:
    """Splits `a."b.c"` into its parts; an empty tuple if the text is not a name."""
    try:
        return _path(tomllib.loads(f"{name} = 0"))
    except tomllib.TOMLDecodeError:
        return ()


def write_value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case Mapping():
            # TOML cannot express None.
            known_values = {name: part for name, part in cast("Mapping[str, Any]", value).items() if part is not None}
            pairs_text = ", ".join(f"{write_key((name,))} = {write_value(part)}" for name, part in known_values.items())
            return f"{{ {pairs_text} }}" if pairs_text else "{}"
        case list() | tuple():
            return f"[{', '.join(write_value(part) for part in cast('Sequence[Any]', value))}]"
        case _:
            return str(value)


def find_statements(lines: Sequence[str]) -> Iterator[Statement]:
    """Yields every statement of a TOML file. A statement ends where the lines since its beginning are valid TOML."""
    table: Key = ()
    number = 0
    while number < len(lines):
        first_line = number
        number += 1
        if not lines[first_line].strip() or lines[first_line].lstrip().startswith("#"):
            continue
        while (content := _read("".join(lines[first_line:number]))) is None and number < len(lines):
            number += 1
        if lines[first_line].lstrip().startswith("["):
            table = ELSEWHERE if lines[first_line].lstrip().startswith("[[") else _path(content or {})
            yield Statement(first_line, number, table, table, header=True)
        elif assignment := LEFT.match(lines[first_line]):
            yield Statement(first_line, number, (*table, *read_key(assignment[1])), table, header=False)


def find_comment(line: str) -> str:
    """Returns the comment after an assignment on one line, with the blanks before the comment."""
    for hash_match in re.finditer(r"\s*#", line):
        if _read(line[: hash_match.start()] + "\n"):
            return line[hash_match.start() :].rstrip("\r\n")
    return ""


def _read(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _path(table: Mapping[str, Any]) -> Key:
    """Follows the first entry of each table down to a value that is no table, or to an empty table. Returns the names
    of the entries on this way."""
    names: list[str] = []
    inner_table: Any = table
    while isinstance(inner_table, Mapping) and inner_table:
        name, inner_table = next(iter(cast("Mapping[str, Any]", inner_table).items()))
        names.append(name)
    return tuple(names)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
