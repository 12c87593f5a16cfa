"""The layout of `--help`: titles in the user's language, lines broken where wide characters end."""

import argparse
import unicodedata
from collections.abc import Iterable
from typing import Any

from duckflow.ui.i18n.words import Words


def columns(text: str) -> int:
    """How wide it is on a terminal."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns, broken at spaces, or between wide characters, which need none."""
    lines, line = [""], ""
    for word in _breakable(" ".join(text.split())):
        if line.strip() and columns(line + word.rstrip()) > width:
            lines.append("")
            word = word.lstrip()
        lines[-1] += word
        line = lines[-1]
    return [line.rstrip() for line in lines]


def _breakable(text: str) -> Iterable[str]:
    """Pieces after each of which a line may end."""
    piece = ""
    for place, character in enumerate(text):
        piece += character
        following = text[place + 1 : place + 2]
        # A line must not begin with what closes the one before.
        wide = columns(character) == 2 and following not in tuple("、。，．」』）：；")
        if character == " " or (wide and character not in "「『（"):
            yield piece
            piece = ""
    yield piece


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
