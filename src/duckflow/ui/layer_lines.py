"""The layers of a request, for people."""

from collections.abc import Iterable

from duckflow.prompts.layers import Layer
from duckflow.ui.i18n.words import Words


def layer_lines(layers: Iterable[Layer], words: Words) -> list[str]:
    """One line a layer, with its tokens and its budget, and their sum."""
    shown: list[str] = []
    total = 0
    for layer in layers:
        total += layer.tokens
        key = "context.budget" if layer.budget else "context.layer"
        shown.append(words(key, name=words(f"context.{layer.name}"), tokens=layer.tokens, budget=layer.budget))
    return [*shown, words("context.sum", tokens=total)]
