"""Finds the input line again after the terminal has wrapped it anew.

Many terminals wrap the lines on the screen again when their window gets narrower. The line editor does not know that:
it goes up as many rows as it has drawn, and the rows above them would stay on the screen."""

import sys
from collections.abc import Mapping, Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output

WRAPS_ANEW = frozenset(
    ("TMUX", "VTE_VERSION", "TERM_PROGRAM", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "ALACRITTY_WINDOW_ID")
)
"""Variables that are set by terminals that wrap lines anew. Other terminals may cut lines off."""

ERASE_DOWN = "\x1b[K\x1b7\x1b[B\x1b[J\x1b8"


class ReflowedOutput(Vt100_Output):
    """An output that remembers the rows it has drawn down to the cursor, by the widths of their characters."""

    _drawn: Sequence[Sequence[int]] = ()

    def remember(self, app: Application[str]) -> None:
        """Remembers the rows on the screen. This method is called after each drawing."""
        screen = app.renderer.last_rendered_screen
        if screen is None:
            return
        cursor = screen.get_cursor_position(app.layout.current_window)
        rows = [screen.data_buffer[number] for number in range(cursor.y + 1)]
        row_ends = [max((column + 1 for column, sign in row.items() if sign.char.strip()), default=0) for row in rows]
        row_ends[-1] = cursor.x
        # A wide character is followed by an empty cell.
        self._drawn = [
            [row[column].width for column in range(row_end) if row[column].char]
            for row, row_end in zip(rows, row_ends, strict=True)
        ]

    def cursor_up(self, amount: int) -> None:
        if amount == len(self._drawn) - 1:
            columns = self.get_size().columns
            amount = sum(_rows(widths, columns) for widths in self._drawn) - 1
        super().cursor_up(amount)

    def erase_down(self) -> None:
        """Erases the row and then everything below it. If a screen is erased from its first character on, tmux keeps
        the text and scrolls it up."""
        self._drawn = ()
        self.write_raw(ERASE_DOWN)


def _rows(widths: Sequence[int], columns: int) -> int:
    """Returns the number of rows that the characters of one line take."""
    rows, used_columns = 1, 0
    for width in widths:
        if used_columns + width > columns:
            rows, used_columns = rows + 1, 0
        used_columns += width
    return rows


def output_for(environment: Mapping[str, str]) -> Output | None:
    """Returns an output for terminals that wrap lines anew; None if the line editor's own output is good enough."""
    if not WRAPS_ANEW & environment.keys() or not sys.stdout.isatty():
        return None
    return ReflowedOutput.from_pty(sys.stdout, term=environment.get("TERM"))
