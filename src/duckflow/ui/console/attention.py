"""Calls the user back when something took its time and now waits for them: by the bell, or a note of the desktop."""

import os
import time
from collections.abc import Callable

from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.ui.settings import UiSettings
from duckflow.view.items import Item, QuestionItem, ReportItem, TurnItem

BELL = "\a"


class Attention:
    """Watches the conversation. A person who has waited for a few seconds only is not called."""

    def __init__(self, settings: UiSettings, words: Words, write: Callable[[str], None]) -> None:
        self._settings = settings
        self._words = words
        self._write = write
        self._since = time.monotonic()

    def draw(self, item: Item) -> None:
        match item:
            case TurnItem(outcome=None):
                self._since = time.monotonic()
            case QuestionItem(closed=False, question=question) if question:
                self._call("notify.asks", always=bool(question.job))
            case TurnItem(outcome=outcome) if outcome != "interrupted":
                self._call("notify.done")
            case ReportItem():
                self._call("notify.job", always=True)
            case _:
                pass

    def typed(self) -> None:
        """The user is there."""
        self._since = time.monotonic()

    def _call(self, key: str, always: bool = False) -> None:
        waited = time.monotonic() - self._since
        if self._settings.notify == "off" or (waited < self._settings.notify_seconds and not always):
            return
        self._since = time.monotonic()
        self._write(BELL if self._settings.notify == "bell" else _desktop(self._words(key)))


def _desktop(text: str) -> str:
    """A sequence that terminals show as a note of the desktop, handed on by tmux; others pass over it."""
    told = f"\x1b]9;Duckflow: {plain(text)}\x1b\\"
    return "\x1bPtmux;" + told.replace("\x1b", "\x1b\x1b") + "\x1b\\" if os.environ.get("TMUX") else told
