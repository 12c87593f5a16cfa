"""Settings of memory."""

from pydantic import Field

from duckflow.state.noun import Section

LEAST_BUDGET = 8000
MOST_OF_WINDOW = 0.8
"""The rest is for instructions, state and reply, whatever the settings say."""


class MemorySettings(Section):
    """How much history a prompt may carry, and what of the past comes with it."""

    budget_tokens: int | None = None
    """What history may take; unset, it is a share of the model's window."""
    window_share: float = 0.5
    full_at: float = 0.95
    """Share of the budget at which it is pruned."""
    prune_to: float = 0.7
    compact_to: float = 0.35
    """What `/compact` leaves."""
    recent_messages: int = 6
    recent_share: float = 0.35
    """The latest exchanges are kept as they are, up to this share of the budget."""
    result_tokens: int = 500
    """A result that is no longer recent keeps its head and tail beyond this."""
    past_share: float = 0.1
    """What may be said of messages that are left out."""
    summaries: bool = True
    """Whether the model writes summaries in the background."""
    summary_timeout: float = 60.0
    evidence_tokens: int = 500
    """What automatic recall may bring into a prompt."""
    evidence_hits: int = 3
    lessons: int = 4
    """Lessons in a prompt."""
    lesson_tokens: int = 200
    known_bytes: dict[str, int] = Field(default_factory=dict[str, int])
    """What earlier sessions tell of the project, in every prompt; by language, where it is not what the language says
    itself."""

    def budget(self, window: int, most: int = 0) -> int:
        """For a model with this window, which gets lost in more than `most`."""
        if self.budget_tokens is not None:
            return min(self.budget_tokens, int(window * MOST_OF_WINDOW))
        least = min(LEAST_BUDGET, window // 2)
        share = max(int(window * self.window_share), least)
        return min(share, most) if most else share
