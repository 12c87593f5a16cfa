"""Duckflow: a coding companion for the terminal. `Duckflow` and `AsyncDuckflow` are for programs (docs/api.md)."""

import importlib

__version__ = "0.1.0"
DEFAULT_LANGUAGE = "en"
"""The language whose texts are used where another language lacks a text."""
API = ("AsyncDuckflow", "Duckflow", "Question", "TurnSummary")


def __getattr__(name: str) -> object:
    """Loads the interface for programs when it is used. `__init__.pyi` declares its types."""
    if name not in API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("duckflow.api"), name)
