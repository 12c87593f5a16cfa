"""The names of all settings, such as `llm.model`."""

import difflib
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

NEAR = 0.6


def setting_names(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Every value that can be set; a table with names of the user's own counts as one."""
    return [*_walk(model, prefix)]


def nearest(name: str, names: Sequence[str]) -> str:
    """The one that was probably meant: by its last word, or nearly spelt the same; else nothing."""
    last = name.rpartition(".")[2]
    same = [one for one in names if one.rpartition(".")[2] == last]
    close = difflib.get_close_matches(name, same or names, n=1, cutoff=0 if same else NEAR)
    if not close:
        by_last = {one.rpartition(".")[2]: one for one in names}
        close = [by_last[one] for one in difflib.get_close_matches(last, by_last, n=1, cutoff=NEAR)]
    return close[0] if close else ""


def _walk(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _walk(kind, f"{prefix}{name}.")
        else:
            yield prefix + name
