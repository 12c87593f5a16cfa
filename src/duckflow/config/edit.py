"""Changes the user's config file, and keeps what a person wrote in it."""

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
    """Writes the file wholly or not at all. A link stays a link, and the file keeps its permissions."""
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else PRIVATE
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            Path(name).chmod(mode)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise UsageError("config.unwritable", path=str(path), reason=problem.strerror or str(problem)) from None


Lines = list[str]


def set_value(text: str, key: Key, value: Any) -> str:
    """Returns the text with the value set. Raises UsageError when the layout leaves no safe way to do that."""
    expected = tomllib.loads(text)
    place: Any = expected
    for name in key[:-1]:
        place = cast("dict[str, Any]", place).setdefault(name, {})
        if not isinstance(place, dict):
            raise _uneditable(key, value)
    place[key[-1]] = tomllib.loads(f"value = {write_value(value)}")["value"]
    for way in (_replace, _add_to_table, _add_table, _add_dotted):
        changed = _try(way, text, key, write_value(value))
        if changed is not None and _reads_as(changed, expected):
            return changed
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
    inside = [statement for statement in find_statements(lines) if statement.key[: len(key)] == key]
    if not inside:
        raise UsageError("config.not_set", name=write_key(key))
    for statement in reversed(inside):
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
    left = lines[assignment.first].partition("=")[0].rstrip()
    comment = find_comment(lines[assignment.first]) if assignment.after == assignment.first + 1 else ""
    lines[assignment.first : assignment.after] = [f"{left} = {value}{comment}{newline}"]
    return True


def _add_to_table(lines: Lines, key: Key, value: str, newline: str) -> bool:
    table = key[:-1]
    inside = [statement for statement in find_statements(lines) if statement.table == table]
    if table and not any(statement.header for statement in inside):
        return False
    place = inside[-1].after if inside else 0
    end = next(
        (statement.first for statement in find_statements(lines) if statement.header and statement.first >= place),
        len(lines),
    )
    # A reader looks for the value at a commented-out line with the same name.
    hint = re.compile(rf"\s*#\s*{re.escape(key[-1])}\s*=")
    begin = inside[0].first if inside else 0
    place = next((number + 1 for number in range(begin, end) if hint.match(lines[number])), place)
    lines.insert(place, f"{write_key(key[-1:])} = {value}{newline}")
    return True


def _add_table(lines: Lines, key: Key, value: str, newline: str) -> bool:
    if len(key) == 1:
        return False
    gap = [newline] if lines and lines[-1].strip() else []
    lines += [*gap, f"[{write_key(key[:-1])}]{newline}", f"{write_key(key[-1:])} = {value}{newline}"]
    return True


def _add_dotted(lines: Lines, key: Key, value: str, newline: str) -> bool:
    top = [statement for statement in find_statements(lines) if not statement.header and statement.table == ()]
    lines.insert(top[-1].after if top else 0, f"{write_key(key)} = {value}{newline}")
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
