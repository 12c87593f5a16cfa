"""Changes the user's config file, and leaves everything else that a person wrote in it."""

import os
import re
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from duckflow.config.load import read_toml
from duckflow.config.toml_text import Key, Statement, find_comment, find_statements, write_key, write_value
from duckflow.errors import UsageError

PRIVATE = 0o600


def read_text(path: Path) -> str:
    """Returns the file's text, after checking that it is TOML; empty when there is no file."""
    read_toml(path)
    if not path.exists():
        return ""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return file.read()


def write_text(path: Path, text: str) -> None:
    """Writes the whole file or nothing. A link stays a link, and the file keeps its permissions."""
    real_path = path.resolve()
    try:
        real_path.parent.mkdir(parents=True, exist_ok=True)
        mode = real_path.stat().st_mode & 0o777 if real_path.exists() else PRIVATE
        handle, name = tempfile.mkstemp(dir=real_path.parent, prefix=f".{real_path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            Path(name).chmod(mode)
            Path(name).replace(real_path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise UsageError("config.unwritable", path=str(path), reason=problem.strerror or str(problem)) from None


Lines = list[str]


def set_value(text: str, key: Key, value: Any) -> str:
    """Returns the text with the value set. Raises UsageError when the file's layout allows no safe change."""
    expected_table = tomllib.loads(text)
    table: Any = expected_table
    for name in key[:-1]:
        table = cast("dict[str, Any]", table).setdefault(name, {})
        if not isinstance(table, dict):
            raise _uneditable(key, value)
    table[key[-1]] = tomllib.loads(f"value = {write_value(value)}")["value"]
    for edit in (_replace, _add_to_table, _add_table, _add_dotted):
        changed_text = _try(edit, text, key, write_value(value))
        if changed_text is not None and _reads_as(changed_text, expected_table):
            return changed_text
    raise _uneditable(key, value)


def remove_value(text: str, key: Key) -> str:
    """Returns the text without the value."""
    lines = text.splitlines(keepends=True)
    assignment = _find_assignment(lines, key)
    if assignment is None:
        raise UsageError("config.not_set", name=write_key(key))
    del lines[assignment.first : assignment.after]
    return "".join(lines)


def remove_table(text: str, key: Key) -> str:
    """Returns the text without a table and everything in it."""
    lines = text.splitlines(keepends=True)
    statements = [statement for statement in find_statements(lines) if statement.key[: len(key)] == key]
    if not statements:
        raise UsageError("config.not_set", name=write_key(key))
    for statement in reversed(statements):
        del lines[statement.first : statement.after]
    return "".join(lines)


def _try(way: Callable[[Lines, Key, str, str], bool], text: str, key: Key, value: str) -> str | None:
    lines = text.splitlines(keepends=True)
    newline = "\r\n" if "\r\n" in text else "\n"
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    return "".join(lines) if way(lines, key, value, newline) else None


def _replace(lines: Lines, key: Key, value: str, newline: str) -> bool:
    assignment = _find_assignment(lines, key)
    if assignment is None:
        return False
    left_side = lines[assignment.first].partition("=")[0].rstrip()
    comment = find_comment(lines[assignment.first]) if assignment.after == assignment.first + 1 else ""
    lines[assignment.first : assignment.after] = [f"{left_side} = {value}{comment}{newline}"]
    return True


def _add_to_table(lines: Lines, key: Key, value: str, newline: str) -> bool:
    table = key[:-1]
    statements = [statement for statement in find_statements(lines) if statement.table == table]
    if table and not any(statement.header for statement in statements):
        return False
    line_index = statements[-1].after if statements else 0
    end_index = next(
        (statement.first for statement in find_statements(lines) if statement.header and statement.first >= line_index),
        len(lines),
    )
    # A reader looks for the value beside a commented-out line with the same name.
    comment_pattern = re.compile(rf"\s*#\s*{re.escape(key[-1])}\s*=")
    first_line = statements[0].first if statements else 0
    line_index = next(
        (number + 1 for number in range(first_line, end_index) if comment_pattern.match(lines[number])), line_index
    )
    lines.insert(line_index, f"{write_key(key[-1:])} = {value}{newline}")
    return True


def _add_table(lines: Lines, key: Key, value: str, newline: str) -> bool:
    if len(key) == 1:
        return False
    blank_lines = [newline] if lines and lines[-1].strip() else []
    lines += [*blank_lines, f"[{write_key(key[:-1])}]{newline}", f"{write_key(key[-1:])} = {value}{newline}"]
    return True


def _add_dotted(lines: Lines, key: Key, value: str, newline: str) -> bool:
    top_statements = [
        statement for statement in find_statements(lines) if not statement.header and statement.table == ()
    ]
    lines.insert(top_statements[-1].after if top_statements else 0, f"{write_key(key)} = {value}{newline}")
    return True


def _find_assignment(lines: Lines, key: Key) -> Statement | None:
    return next(
        (statement for statement in find_statements(lines) if statement.key == key and not statement.header), None
    )


def _reads_as(text: str, expected: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == expected
    except tomllib.TOMLDecodeError:
        return False


def _uneditable(key: Key, value: Any) -> UsageError:
    return UsageError("config.uneditable", line=f"{write_key(key)} = {write_value(value)}")
