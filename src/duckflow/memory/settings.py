"""Settings of memory."""

from pydantic import Field

from duckflow.state.noun import Section

LEAST_BUDGET = 8000
MOST_OF_WINDOW = 0.8
"""The rest is for instructions, state and reply, whatever the settings say."""


class MemorySettings(Section):
    """How much history a prompt may carry, and what of the past comes with it."""

    budget_tokens: int | None = Field(default=None, ge=0)
    """What history may take; unset, it is a share of the model's window."""
    window_share: float = Field(default=0.5, ge=0, le=1)
    full_at: float = Field(default=0.95, ge=0, le=1)
    """Share of the budget at which it is pruned."""
    prune_to: float = Field(default=0.7, ge=0, le=1)
    compact_to: float = Field(default=0.35, ge=0, le=1)
    """What `/compact` leaves."""
    recent_messages: int = Field(default=6, ge=0)
    recent_share: float = Field(default=0.35, ge=0, le=1)
    """The latest exchanges are kept as they are, up to this share of the budget."""
    result_tokens: int = Field(default=500, ge=0)
    """A result that is no longer recent keeps its head and tail beyond this."""
    past_share: float = Field(default=0.1, ge=0, le=1)
    """What may be said of messages that are left out."""
    summaries: bool = True
    """Whether the model writes summaries in the background."""
    summary_timeout: float = Field(default=60.0, gt=0)
    evidence_tokens: int = Field(default=500, ge=0)
    """What automatic recall may bring into a prompt."""
    evidence_hits: int = Field(default=3, ge=0)
    lessons: int = Field(default=4, ge=0)
    """Lessons in a prompt."""
    lesson_tokens: int = Field(default=200, ge=0)
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
