"""Where a slash command is given."""

from dataclasses import dataclass

from duckflow.events.ports import Ask
from duckflow.ui.desk import Desk
from duckflow.ui.i18n.words import Words


@dataclass(frozen=True, slots=True)
class Counter:
    """The conversation, the words, and a way to ask back."""

    desk: Desk
    words: Words
    ask: Ask
