"""The content of the model's context as the journal stores it: the messages that are still in it, and summaries of
those that left it."""

from collections.abc import Iterable

from pydantic import Field

from duckflow.state.data import FrozenData, MutableData, holds, shorten

SUMMARIES_LIMIT = 6
RECEIPTS_LIMIT = 10
SUMMARY_LENGTH = 500


class PastSummary(FrozenData):
    """The model's summary of messages that were left out, and the range of messages it stands for (counted from 1)."""

    first: int
    last: int
    text: str

    def cited(self) -> str:
        """Returns the summary as it stands in the prompt: with the range of messages it stands for."""
        return f"messages {self.first}–{self.last}: {self.text}"

    def tells_of(self, numbers: Iterable[int]) -> bool:
        return any(self.first <= number + 1 <= self.last for number in numbers)


class Receipt(FrozenData):
    """A record of one pruning of the context."""

    dropped: int
    kept: int
    cut: int = 0
    """The number of messages that stayed but are shown only in part."""
    tokens_before: int
    tokens_after: int
    turn: int = 0


class Context(MutableData):
    """The context as of the last pruning."""

    kept: list[int] = Field(default_factory=list[int])
    cut: dict[int, int] = Field(default_factory=dict[int, int])
    """For each shortened message, the number of tokens that it was cut to."""
    upto: int = 0
    forgotten: list[int] = Field(default_factory=list[int])
    """Numbers of messages that the user wanted forgotten: they appear in no prompt and no search any more."""
    summaries: list[PastSummary] = Field(default_factory=list[PastSummary])
    receipts: list[Receipt] = Field(default_factory=list[Receipt])

    def add_summary(self, summary: PastSummary) -> None:
        """Adds a summary. When there are too many, the two oldest become one."""
        self.summaries.append(summary)
        while len(self.summaries) > SUMMARIES_LIMIT:
            older, old = self.summaries[:2]
            half_length = SUMMARY_LENGTH // 2
            text = f"{shorten(older.text, half_length)} {shorten(old.text, half_length)}"
            self.summaries[:2] = [PastSummary(first=older.first, last=old.last, text=text)]

    def forget(self, numbers: Iterable[int], words: str) -> None:
        """Forgets messages, and drops each summary that contains the words or stands for a forgotten message."""
        forgotten_numbers = sorted({*self.forgotten, *numbers})
        self.forgotten = forgotten_numbers
        self.summaries = [
            summary
            for summary in self.summaries
            if not summary.tells_of(forgotten_numbers) and not (words and holds(summary.text, words))
        ]
