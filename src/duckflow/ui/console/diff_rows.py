"""A diff for people: with line numbers, the colours of the language, and changed words marked."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from rich.text import Text

from duckflow.state.changes import HUNK, ReadLine, read_diff
from duckflow.ui.console.code import Code

STYLES = {"+": "green", "-": "red", "@": "cyan"}
MARKED = {"+": "reverse green", "-": "reverse red"}
WORD = re.compile(r"[^\W\u2e80-\uffff]+|\s+|.", re.DOTALL)
COMPARED_WORDS = 200
ALIKE = 0.4


def diff_style(line: str) -> str:
    """Returns the style of a line. File names stand out from added and removed lines."""
    if line.startswith(("+++ ", "--- ")):
        return "bold"
    return STYLES.get(line[:1], "")


def looks_like_diff(text: str) -> bool:
    return any(map(HUNK.match, text.split("\n")))


@dataclass(slots=True)
class DiffRow:
    """One line of a diff. The gutter holds its line number and its sign."""

    text: Text
    gutter: Text = field(default_factory=Text)


@dataclass(slots=True)
class _Block:
    """Removed lines, and the added lines that replace them."""

    removed: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    added: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


class DiffRows:
    """Turns a diff into rows. `fold` makes a line safe to show."""

    def __init__(self, diff: str, fold: Callable[[str], str]) -> None:
        self._lines = list(read_diff(diff))
        self._fold = fold
        self._digits = len(str(max((max(line.old, line.new) for line in self._lines), default=1)))
        self._before, self._after = Code(""), Code("")

    def __iter__(self) -> Iterator[DiffRow]:
        block = _Block()
        for line in self._lines:
            if line.sign == "-":
                if block.added:
                    yield from self._changed(block)
                    block = _Block()
                block.removed.append((line.old, line.text))
            elif line.sign == "+":
                block.added.append((line.new, line.text))
            else:
                yield from self._changed(block)
                block = _Block()
                yield self._other(line)
        yield from self._changed(block)

    def _other(self, line: ReadLine) -> DiffRow:
        text = self._fold(line.text)
        if line.sign == " ":
            self._before.line(text)
            return DiffRow(self._after.line(text), Text(f"{line.new:>{self._digits}}  ", style="dim"))
        if line.text.startswith("+++ "):
            self._before, self._after = Code.of_file(line.path), Code.of_file(line.path)
        return DiffRow(Text(text, style=diff_style(line.text)))

    def _changed(self, block: _Block) -> Iterator[DiffRow]:
        removed_rows = [self._row("-", number, self._before.line(self._fold(text))) for number, text in block.removed]
        added_rows = [self._row("+", number, self._after.line(self._fold(text))) for number, text in block.added]
        if len(removed_rows) == len(added_rows):
            for removed_row, added_row in zip(removed_rows, added_rows, strict=True):
                _mark(removed_row.text, added_row.text)
        yield from removed_rows
        yield from added_rows

    def _row(self, sign: str, number: int, text: Text) -> DiffRow:
        return DiffRow(text, Text(f"{number:>{self._digits}} {sign}", style=STYLES[sign]))


def _mark(old: Text, new: Text) -> None:
    """Marks the words that differ, if the lines are so similar that marks help."""
    words_before, words_after = WORD.findall(old.plain), WORD.findall(new.plain)
    if max(len(words_before), len(words_after)) > COMPARED_WORDS:
        return
    matcher = SequenceMatcher(None, words_before, words_after, autojunk=False)
    if matcher.ratio() < ALIKE:
        return
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if kind != "equal":
            _stylize(old, words_before, old_from, old_to, MARKED["-"])
            _stylize(new, words_after, new_from, new_to, MARKED["+"])


def _stylize(text: Text, words: list[str], start: int, end: int, style: str) -> None:
    offset = len("".join(words[:start]))
    text.stylize(style, offset, offset + len("".join(words[start:end])))
