"""One setting: its name, how its value is read from text, and what is wrong with a bad value."""

import contextlib
import difflib
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from duckflow.config.settings import Settings
from duckflow.config.toml_text import Key, write_key, write_value
from duckflow.errors import UsageError

NEAR, NEAR_WORD = 0.6, 0.7


def list_setting_names(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Returns the name of every value that can be set. A table in which users choose the names counts as one value."""
    return [*_walk_names(model, prefix)]


def find_nearest(name: str, names: Sequence[str]) -> str:
    """Returns the name that was probably meant: one with the same last word, or one spelt nearly the same. Returns an
    empty text if there is none."""
    last_part = name.rpartition(".")[2]
    same_last_part = [known_name for known_name in names if known_name.rpartition(".")[2] == last_part]
    close_names = difflib.get_close_matches(name, same_last_part or names, n=1, cutoff=0 if same_last_part else NEAR)
    if not close_names:
        by_last_part = {known_name.rpartition(".")[2]: known_name for known_name in names}
        close_names = [
            by_last_part[match] for match in difflib.get_close_matches(last_part, by_last_part, n=1, cutoff=NEAR_WORD)
        ]
    return close_names[0] if close_names else ""


def _walk_names(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        field_type = field.annotation
        if isinstance(field_type, type) and issubclass(field_type, BaseModel):
            yield from _walk_names(field_type, f"{prefix}{name}.")
        else:
            yield prefix + name


REASONS = {
    "int_parsing": "int",
    "int_type": "int",
    "int_from_float": "int",
    "float_parsing": "float",
    "float_type": "float",
    "finite_number": "float",
    "bool_parsing": "bool",
    "bool_type": "bool",
    "string_type": "str",
    "string_pattern_mismatch": "pattern",
    "tuple_type": "list",
    "dict_type": "table",
    "model_type": "table",
}
SECRET = re.compile(r"key\"?$|token\"?$|secret|password|authorization", re.I)
BOUNDS = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}


def explain_bad_value(problem: ValidationError, origins: Mapping[str, str], section: str = "") -> UsageError:
    """Explains the first error in the settings, with the origin of the bad value."""
    first_error: Any = problem.errors()[0]
    name = ".".join(filter(None, (section, *map(str, first_error["loc"]))))
    origin = origins.get(name) or next(
        (known_origin for known_name, known_origin in origins.items() if known_name.startswith(name)), "?"
    )
    error_type, error_context = str(first_error["type"]), first_error.get("ctx", {})
    if error_type == "extra_forbidden":
        return explain_unknown_setting(name, origin)
    message_values = {"name": name, "origin": origin}
    if error_type in ("literal_error", "enum"):
        choices = str(error_context["expected"]).replace("'", "").replace(" or ", ", ").strip(", ")
        return UsageError("config.choice", known=choices, **message_values)
    if bound_name := BOUNDS.get(error_type):
        return UsageError(f"config.bound.{bound_name}", bound=error_context[bound_name], **message_values)
    if reason := REASONS.get(error_type):
        return UsageError(f"config.kind.{reason}", **message_values)
    return UsageError("config.bad_value", reason=str(first_error["msg"]), **message_values)


def explain_unknown_setting(name: str, origin: str) -> UsageError:
    """Explains an unknown name, with the name that was probably meant. Secret keys are not allowed in files at all."""
    if SECRET.search(name.rpartition(".")[2]):
        return UsageError("config.secret", name=name, origin=origin)
    if nearest_name := find_nearest(name, list_setting_names(Settings)):
        return UsageError("config.near", name=name, origin=origin, near=nearest_name)
    return UsageError("config.unknown", name=name, origin=origin)


CREDENTIALS = re.compile(r"(?<=//)[^/@\s\"]+@|(?<=[?&])[^=&\s\"]*(?:key|token|secret)[^=&\s\"]*=[^&\s\"]+", re.I)
HIDDEN = "***"
NOTHING = "–"


def parse_value(key: Key, text: str, origin: str) -> Any:
    """Returns the value of this setting that a text stands for; full-width digits count as digits. Raises UsageError
    for a text that cannot be its value."""
    problem: UsageError | None = None
    name = ".".join(key)
    for candidate in _readings(text):
        layer: Any = candidate
        for part in reversed(key):
            layer = {part: layer}
        try:
            setting_value: Any = Settings.model_validate(layer).model_dump(mode="json")
        except ValidationError as wrong:
            problem = explain_bad_value(wrong, {name: origin})
            continue
        for part in key:
            setting_value = setting_value[part]
        return setting_value
    assert problem
    raise problem


def list_settings(settings: Settings) -> Iterator[tuple[str, Any]]:
    """Returns every setting with its value."""
    yield from _walk(settings.model_dump(mode="json"), ())


def show_value(name: str, value: Any) -> str:
    """Returns the value as TOML, without anything that may be a secret."""
    is_secret = name.startswith(("shell.set_environment.", "mcp.servers.")) and SECRET.search(name)
    return (
        write_value(HIDDEN) if is_secret else CREDENTIALS.sub(HIDDEN, NOTHING if value is None else write_value(value))
    )


def _walk(table: Mapping[str, Any], prefix: Key) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = (*prefix, name)
        if isinstance(value, Mapping) and value:
            yield from _walk(cast("Mapping[str, Any]", value), key)
        else:
            yield write_key(key), value


def _readings(text: str) -> Iterator[Any]:
    normalized_text = unicodedata.normalize("NFKC", text).strip()
    with contextlib.suppress(tomllib.TOMLDecodeError):
        yield tomllib.loads(f"value = {normalized_text}")["value"]
    yield text
