"""The layout of `--help`: titles in the user's language, lines broken where wide characters end."""

import argparse
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from duckflow.ui.i18n.words import Words


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many columns."""
    from duckflow.ui.wrapping import line_ends

    text = " ".join(text.split())
    ends = [0, *line_ends(text, width), len(text)]
    return [text[begin:end].strip() for begin, end in pairwise(ends)]


def help_text(words: Words) -> type[argparse.HelpFormatter]:
    """The formatter that speaks the language of `words`."""

    class HelpText(argparse.HelpFormatter):
        def add_usage(
            self,
            usage: str | None,
            actions: Iterable[argparse.Action],
            groups: Iterable[Any],
            prefix: str | None = None,
        ) -> None:
            super().add_usage(usage, actions, groups, prefix or words("cli.usage"))

        def _split_lines(self, text: str, width: int) -> list[str]:
            return wrapped(text, width)

        def _fill_text(self, text: str, width: int, indent: str) -> str:
            return "\n".join(indent + line for part in text.split("\n") for line in wrapped(part, width))

    return HelpText
