"""What is in the context, as the journal keeps it: which messages stayed, and what is said of the others."""

from collections.abc import Iterable

from pydantic import Field

from duckflow.state.noun import Noun, Value, holds, shorten

SUMMARIES_LIMIT = 6
RECEIPTS_LIMIT = 10
SUMMARY_LENGTH = 500


class PastSummary(Value):
    """What the model said of messages that are left out, and which ones it stands for (counted from 1)."""

    first: int
    last: int
    text: str

    def cited(self) -> str:
        """As it stands in the prompt: with the messages it stands for."""
        return f"messages {self.first}–{self.last}: {self.text}"

    def tells_of(self, numbers: Iterable[int]) -> bool:
        return any(self.first <= number + 1 <= self.last for number in numbers)


class Receipt(Value):
    """What one pruning did."""

    dropped: int
    kept: int
    cut: int = 0
    """Of those kept, how many are shown in part."""
    tokens_before: int
    tokens_after: int
    turn: int = 0


class Context(Noun):
    """As of the last pruning."""

    kept: list[int] = Field(default_factory=list[int])
    cut: dict[int, int] = Field(default_factory=dict[int, int])
    """Of those, the tokens to which they were cut."""
    upto: int = 0
    forgotten: list[int] = Field(default_factory=list[int])
    """Numbers of messages that the user wanted forgotten: they are in no prompt and no search any more."""
    summaries: list[PastSummary] = Field(default_factory=list[PastSummary])
    receipts: list[Receipt] = Field(default_factory=list[Receipt])

    def add_summary(self, summary: PastSummary) -> None:
        """Bounded: when there are too many, the two oldest become one."""
        self.summaries.append(summary)
        while len(self.summaries) > SUMMARIES_LIMIT:
            older, old = self.summaries[:2]
            half = SUMMARY_LENGTH // 2
            text = f"{shorten(older.text, half)} {shorten(old.text, half)}"
            self.summaries[:2] = [PastSummary(first=older.first, last=old.last, text=text)]

    def forget(self, numbers: Iterable[int], words: str) -> None:
        """A summary that says the words, or that stands for what is forgotten, goes too."""
        gone = sorted({*self.forgotten, *numbers})
        self.forgotten = gone
        self.summaries = [
            one for one in self.summaries if not one.tells_of(gone) and not (words and holds(one.text, words))
        ]
