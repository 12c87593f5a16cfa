"""What is wrong with a value, in words that are not the library's."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from duckflow.config.names import nearest, setting_names
from duckflow.config.settings import Settings
from duckflow.errors import UsageError

REASONS = {
    "int_parsing": "int",
    "int_type": "int",
    "int_from_float": "int",
    "float_parsing": "float",
    "float_type": "float",
    "bool_parsing": "bool",
    "bool_type": "bool",
    "string_type": "str",
    "string_pattern_mismatch": "pattern",
    "tuple_type": "list",
    "dict_type": "table",
    "model_type": "table",
}
SECRET = re.compile(r"key$|token$|secret|password", re.I)
BOUNDS = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt", "less_than_equal": "le"}


def bad_value(problem: ValidationError, origins: Mapping[str, str]) -> UsageError:
    """The first thing that is wrong, with the place it came from."""
    first: Any = problem.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    origin = origins.get(name) or next((at for one, at in origins.items() if one.startswith(name)), "?")
    kind, context = str(first["type"]), first.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown_setting(name, origin)
    values = {"name": name, "origin": origin}
    if kind in ("literal_error", "enum"):
        known = str(context["expected"]).replace("'", "").replace(" or ", ", ").strip(", ")
        return UsageError("config.choice", known=known, **values)
    if bound := BOUNDS.get(kind):
        return UsageError(f"config.bound.{bound}", bound=context[bound], **values)
    if reason := REASONS.get(kind):
        return UsageError(f"config.kind.{reason}", **values)
    return UsageError("config.bad_value", reason=str(first["msg"]), **values)


def unknown_setting(name: str, origin: str) -> UsageError:
    """A name that is none of ours, with the one that was probably meant; keys are not kept in files at all."""
    if SECRET.search(name.rpartition(".")[2]):
        return UsageError("config.secret", name=name, origin=origin)
    if near := nearest(name, setting_names(Settings)):
        return UsageError("config.near", name=name, origin=origin, near=near)
    return UsageError("config.unknown", name=name, origin=origin)
