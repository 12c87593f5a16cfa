"""Settings of memory."""

from pydantic import BaseModel, ConfigDict


class MemorySettings(BaseModel):
    """How much history a prompt may carry."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    budget_tokens: int = 8000
    window_share: float = 0.5
    """Of a small model's window, history takes at most this share."""
