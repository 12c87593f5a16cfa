"""A word of the command line as the value of a setting, and a value as people may see it."""

import contextlib
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import ValidationError

from duckflow.config.problem import SECRET, bad_value
from duckflow.config.settings import Settings
from duckflow.config.toml_text import Key, written, written_key
from duckflow.errors import UsageError

CREDENTIALS = re.compile(r"(?<=//)[^/@\s\"]+@|(?<=[?&])[^=&\s\"]*(?:key|token|secret)[^=&\s\"]*=[^&\s\"]+", re.I)
HIDDEN = "***"
NOTHING = "–"


def value_for(key: Key, text: str, origin: str) -> Any:
    """What the word means for this setting; full-width digits count as digits. UsageError when it cannot have it."""
    problem: UsageError | None = None
    name = ".".join(key)
    for candidate in _readings(text):
        layer: Any = candidate
        for part in reversed(key):
            layer = {part: layer}
        try:
            found: Any = Settings.model_validate(layer).model_dump(mode="json")
        except ValidationError as wrong:
            problem = bad_value(wrong, {name: origin})
            continue
        for part in key:
            found = found[part]
        return found
    assert problem
    raise problem


def rows(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Every setting with its value."""
    yield from _walk(settings.model_dump(mode="json"), ())


def shown(name: str, value: Any) -> str:
    """The value as TOML, without anything that may be a secret."""
    secret = name.startswith("shell.set_environment.") and SECRET.search(name)
    return written(HIDDEN) if secret else CREDENTIALS.sub(HIDDEN, NOTHING if value is None else written(value))


def _walk(table: Mapping[str, Any], prefix: Key) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = (*prefix, name)
        if isinstance(value, Mapping) and value:
            yield from _walk(cast("Mapping[str, Any]", value), key)
        else:
            yield written_key(key), value


def _readings(text: str) -> Iterator[Any]:
    plain = unicodedata.normalize("NFKC", text).strip()
    with contextlib.suppress(tomllib.TOMLDecodeError):
        yield tomllib.loads(f"value = {plain}")["value"]
    yield text
