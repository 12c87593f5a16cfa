"""What is in the context, as the journal keeps it: which messages stayed, and what is said of the others."""

from pydantic import Field

from duckflow.state.noun import Noun, Value, shorten

SUMMARIES_LIMIT = 6
RECEIPTS_LIMIT = 10
SUMMARY_LENGTH = 500


class PastSummary(Value):
    """What the model said of messages that are left out, and which ones it stands for."""

    first: int
    last: int
    text: str


class Receipt(Value):
    """What one pruning did."""

    dropped: int
    kept: int
    tokens_before: int
    tokens_after: int
    turn: int = 0


class Context(Noun):
    """As of the last pruning."""

    kept: list[int] = Field(default_factory=list[int])
    upto: int = 0
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
