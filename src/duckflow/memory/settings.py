"""Settings of memory."""

from pydantic import Field

from duckflow.state.data import Section


class MemorySettings(Section):
    """Limits on the history in a prompt, and on the past messages that are recalled."""

    budget_tokens: int | None = Field(default=None, ge=0)
    """Tokens that history may take; if unset, a share of the model's window."""
    window_share: float = Field(default=0.5, ge=0, le=1)
    full_at: float = Field(default=0.95, ge=0, le=1)
    """Share of the budget at which the history in the prompt is pruned."""
    prune_to: float = Field(default=0.7, ge=0, le=1)
    compact_to: float = Field(default=0.35, ge=0, le=1)
    """Share of the budget that history still takes after `/compact`."""
    recent_messages: int = Field(default=6, ge=0)
    recent_share: float = Field(default=0.35, ge=0, le=1)
    """Share of the budget within which the latest exchanges are kept as they are."""
    result_tokens: int = Field(default=500, ge=0)
    """Tokens to which a result that is no longer recent is cut; its head and tail stay."""
    past_share: float = Field(default=0.1, ge=0, le=1)
    """Share of the budget for notes on messages that were left out."""
    summaries: bool = True
    """True if the model writes summaries of left-out messages in the background."""
    summary_timeout: float = Field(default=60.0, gt=0)
    evidence_tokens: int = Field(default=500, ge=0)
    """Tokens that quotations from earlier conversations may take in a prompt."""
    evidence_hits: int = Field(default=3, ge=0)
    lessons: int = Field(default=4, ge=0)
    """The largest number of lessons in a prompt."""
    lesson_tokens: int = Field(default=200, ge=0)
    known_bytes: dict[str, int] = Field(default_factory=dict[str, int])
    """Bytes for the facts of earlier sessions in every prompt, by language. For other languages, the language's own
    setting counts."""
