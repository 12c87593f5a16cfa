"""Tokens and money."""

from duckflow.state.noun import Value


class Usage(Value):
    """What one model call, or a whole session, consumed."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0
    calls: int = 0
    seconds: float = 0.0
    """In which the replies came, from their first piece on."""

    @property
    def fresh(self) -> int:
        """Tokens that no cache gave."""
        return self.prompt_tokens - self.cached_tokens + self.completion_tokens

    def plus(self, other: "Usage") -> "Usage":
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
            calls=self.calls + other.calls,
            seconds=self.seconds + other.seconds,
        )
