"""Calls the user back when something took its time and now waits for them: by the bell, or a note of the desktop."""

import os
import time
from collections.abc import Callable

from duckflow.events.types import Event, JobEnded, QuestionAsked, TurnBegan, TurnEnded
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words
from duckflow.ui.settings import UiSettings

BELL = "\a"


class Attention:
    """Hears the conversation; who sits there and waits for a few seconds is not called."""

    def __init__(self, settings: UiSettings, words: Words, write: Callable[[str], None]) -> None:
        self._settings = settings
        self._words = words
        self._write = write
        self._since = time.monotonic()

    def hear(self, event: Event) -> None:
        match event:
            case TurnBegan():
                self._since = time.monotonic()
            case QuestionAsked():
                self._call("notify.asks", always=bool(event.question.job))
            case TurnEnded() if event.outcome != "interrupted":
                self._call("notify.done")
            case JobEnded():
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
