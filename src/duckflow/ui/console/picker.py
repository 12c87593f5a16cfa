"""A picker for one session among many: arrows or a number choose, typing filters, Esc leaves."""

import os
import shutil
import unicodedata
from collections.abc import Sequence

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import BeforeInput

from duckflow.commands.session_rows import SessionRow, session_lines
from duckflow.i18n.words import Words

SHOWN = 12
ESCAPE_SECONDS = 0.05
DUMB = ("dumb", "unknown", "")


def can_pick() -> bool:
    """Says whether the terminal can redraw a list. If not, a numbered list is printed instead."""
    return os.environ.get("TERM", "").lower() not in DUMB


async def pick(rows: Sequence[SessionRow], words: Words) -> SessionRow | None:
    """Returns the chosen row; None when the user leaves. The picker works in the middle of a chat, too."""
    async with in_terminal():
        return await Picker(rows, words).run()


class Picker:
    """The list, the line for typing a filter, and the marked row."""

    def __init__(self, rows: Sequence[SessionRow], words: Words) -> None:
        self._rows = rows
        self._words = words
        self._marked = 0
        self._filter = Buffer(multiline=False, on_text_changed=self._typed)
        filter_window = Window(BufferControl(self._filter, [BeforeInput("› ", style="bold")]), height=1)
        list_window = Window(FormattedTextControl(self._listed), dont_extend_height=True, wrap_lines=False)
        hint_window = Window(FormattedTextControl(lambda: words("picker.keys")), height=1, style="class:bottom-toolbar")
        self._app: Application[SessionRow | None] = Application(
            Layout(HSplit([list_window, filter_window, hint_window]), focused_element=filter_window),
            key_bindings=self._keys(),
            erase_when_done=True,
        )
        self._app.ttimeoutlen = self._app.timeoutlen = ESCAPE_SECONDS

    async def run(self) -> SessionRow | None:
        return await self._app.run_async(handle_sigint=False)

    def found(self) -> Sequence[SessionRow]:
        """Returns the rows that fit the typed text. A number, even a full-width one, brings its row to the top."""
        filter_text = unicodedata.normalize("NFKC", self._filter.text).strip()
        if not filter_text:
            return self._rows
        fitting_rows = [row for row in self._rows if row.matches(filter_text)]
        if filter_text.isdecimal() and 1 <= int(filter_text) <= len(self._rows):
            numbered_row = self._rows[int(filter_text) - 1]
            return [numbered_row, *(row for row in fitting_rows if row is not numbered_row)]
        return fitting_rows

    def _typed(self, _: Buffer) -> None:
        self._marked = 0

    def _move(self, by: int) -> None:
        self._marked = max(0, min(self._marked + by, len(self.found()) - 1))

    def _listed(self) -> FormattedText:
        matches = self.found()
        if not matches:
            return FormattedText([("", self._words("picker.none"))])
        first_index = max(0, min(self._marked - SHOWN // 2, len(matches) - SHOWN))
        columns = shutil.get_terminal_size().columns
        shown_rows = matches[first_index : first_index + SHOWN]
        fragments: list[tuple[str, str]] = []
        lines = iter(session_lines(shown_rows, columns - 3, with_id=False))
        folder = ""
        for index, row in enumerate(shown_rows, first_index):
            if row.folder != folder:
                folder = row.folder
                fragments.append(("class:folder", f"  {next(lines)}\n"))
            is_selected = index == self._marked
            fragments.append(("reverse" if is_selected else "", f"{'▸' if is_selected else ' '} {next(lines)}"))
            fragments.append(("", "\n"))
        return FormattedText(fragments[:-1])

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        def moving(by: int, *names: str) -> None:
            def move(_: KeyPressEvent) -> None:
                self._move(by)

            for name in names:
                keys.add(name)(move)

        moving(-1, "up", "c-p")
        moving(1, "down", "c-n", "tab")
        moving(-SHOWN, "pageup")
        moving(SHOWN, "pagedown")

        def choose(event: KeyPressEvent) -> None:
            if matches := self.found():
                event.app.exit(result=matches[self._marked])

        def leave(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        keys.add("enter")(choose)
        for name in ("escape", "c-c", "c-d"):
            keys.add(name)(leave)
        return keys
