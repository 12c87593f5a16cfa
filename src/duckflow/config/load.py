"""Loads settings from their layers: defaults, user, project, environment, flags."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, ValidationError

from duckflow.config.settings import Settings
from duckflow.errors import UsageError

Layer = dict[str, Any]
LARGEST_FILE = 1_000_000
PROJECT_FILE = Path(".duckflow/config.toml")

# A project's file comes with the project, perhaps from a stranger. It may set only these values. All others decide
# where prompts are sent, what runs, what is read or remembered and how much of it, or what people see before a yes.
PROJECT_MAY_SET = ("language", "ui.ascii", "ui.emoji")

FROM_ENVIRONMENT = {
    "DUCKFLOW_MODEL": "llm.model",
    "DUCKFLOW_MODE": "safety.mode",
    "DUCKFLOW_LANG": "language",
}


class Loaded(NamedTuple):
    """The settings, and the origin of each value that is not a default."""

    settings: Settings
    origins: dict[str, str]


def load(user_file: Path, folder: Path, flags: Mapping[str, Any]) -> Loaded:
    """Merges the layers value by value; later layers win. `flags` maps dotted names to values; None means not given."""
    environment = {name: value for variable, name in FROM_ENVIRONMENT.items() if (value := os.environ.get(variable))}
    layers: list[tuple[str, Layer]] = [
        (str(user_file), read_toml(user_file)),
        (str(folder / PROJECT_FILE), read_project_file(folder / PROJECT_FILE)),
        ("environment", nest(environment)),
        ("command line", nest({name: value for name, value in flags.items() if value is not None})),
    ]
    merged_layer: Layer = {}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        merge(merged_layer, layer)
        origins |= dict.fromkeys(dict(_walk_leaves(layer)), origin)
    return Loaded(_checked(merged_layer, origins), origins)


def _checked(merged: Layer, origins: Mapping[str, str]) -> Settings:
    """Checks the merged values, but only in sections in which a value is set. To build the checks of all sections would
    take 10 ms of every start."""
    sections: dict[str, Any] = {}
    name = ""
    try:
        for name, value in merged.items():
            field = Settings.model_fields.get(name)
            field_type = field.annotation if field else None
            if not (isinstance(field_type, type) and issubclass(field_type, BaseModel)):
                name = ""
                return Settings.model_validate(merged)
            sections[name] = field_type.model_validate(value)
        return Settings.model_construct(**sections)
    except ValidationError as problem:
        from duckflow.config.value import explain_bad_value

        raise explain_bad_value(problem, origins, section=name) from None


def nest(flat: Mapping[str, Any]) -> Layer:
    """Turns `{"llm.model": x}` into `{"llm": {"model": x}}`."""
    layer: Layer = {}
    for name, value in flat.items():
        *parents, last_name = name.split(".")
        inner_layer = layer
        for parent in parents:
            inner_layer = inner_layer.setdefault(parent, {})
        inner_layer[last_name] = value
    return layer


def merge(into: Layer, layer: Layer) -> None:
    for name, value in layer.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            merge(into[name], cast("Layer", value))
        else:
            into[name] = value


def _walk_leaves(layer: Layer, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in layer.items():
        if isinstance(value, dict):
            yield from _walk_leaves(cast("Layer", value), f"{prefix}{name}.")
        else:
            yield prefix + name, value


def read_toml(path: Path) -> Layer:
    """Reads the file of one layer; empty when there is no such file."""
    if not path.exists():
        return {}
    import tomllib

    from duckflow.safety.files import read_plain

    try:
        return tomllib.loads(read_plain(path, LARGEST_FILE).decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise UsageError("config.not_utf8", path=str(path)) from None
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise UsageError("config.unreadable", path=str(path), reason=reason) from None
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise UsageError("config.unreadable", path=str(path), reason=str(problem)) from None


def read_project_file(path: Path) -> Layer:
    """Returns the few values that a project's file may set. A table without values sets nothing."""
    value_by_name = dict(_walk_leaves(read_toml(path)))
    require_project_may(value_by_name, path)
    return nest(value_by_name)


def require_project_may(names: Iterable[str], path: Path) -> None:
    if forbidden_names := sorted(set(names) - {*PROJECT_MAY_SET}):
        raise UsageError(
            "config.project_forbidden",
            path=str(path),
            names=", ".join(forbidden_names),
            allowed=", ".join(PROJECT_MAY_SET),
        )
