"""Sessions as rows of a list."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from duckflow.events.views import SessionSummary
from duckflow.i18n.plain import plain
from duckflow.i18n.width import cells, fitted, padded
from duckflow.i18n.words import Words, age, money, turns

TITLE_WIDTH = 20


@dataclass(frozen=True, slots=True)
class SessionRow:
    """The row of one session. `folder` is empty for sessions of the current folder."""

    number: int
    session_id: str
    title: str
    asked: str
    folder: str
    facts: tuple[str, str, str]

    def matches(self, wanted: str) -> bool:
        """Says whether every word occurs somewhere in the row."""
        text = f"{self.title} {self.asked} {self.folder} {self.session_id}".casefold()
        return all(word in text for word in wanted.casefold().split())


def session_rows(entries: Sequence[SessionSummary], words: Words, now: float) -> list[SessionRow]:
    return [_row(number, summary, words, now) for number, summary in enumerate(entries, 1)]


def _row(number: int, entry: SessionSummary, words: Words, now: float) -> SessionRow:
    facts = (age(entry.updated, now, words), turns(entry.turns, words), money(entry.cost_usd))
    folder = "" if entry.here else plain(short_folder(entry.folder)) or "?"
    return SessionRow(number, entry.session_id, _line(entry.title), _line(entry.asked), folder, facts)


def session_lines(rows: Sequence[SessionRow], width: int, with_id: bool = True) -> list[str]:
    """Returns one line for each row, at most `width` cells wide, and a heading for every other folder."""
    widths = [max((cells(row.facts[column]) for row in rows), default=0) for column in range(3)]
    digits = len(str(max((row.number for row in rows), default=0)))
    id_width = max((len(row.session_id) for row in rows), default=0) if with_id else 0
    title_width = max(TITLE_WIDTH, width - digits - 2 - sum(widths) - 6 - (id_width + 2 if id_width else 0))
    title_width = min(title_width, max((cells(row.title) for row in rows), default=0))
    lines: list[str] = []
    folder = ""
    for row in rows:
        if row.folder != folder:
            folder = row.folder
            lines.append(folder)
        facts = "  ".join(" " * (size - cells(text)) + text for text, size in zip(row.facts, widths, strict=True))
        line = f"{row.number:>{digits}}. {padded(fitted(row.title, title_width), title_width)}  {facts}"
        lines.append(f"{line}  {row.session_id}" if with_id else line)
    return lines


def short_folder(folder: str) -> str:
    home = str(Path.home())
    return "~" + folder.removeprefix(home) if folder == home or folder.startswith(home + os.sep) else folder


def _line(text: str) -> str:
    return plain(" ".join(text.split()))
