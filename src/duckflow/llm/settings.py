"""Settings of the models, the local one too."""

from typing import Literal, get_args

from pydantic import Field

from duckflow.state.noun import Section, Value

DEFAULT_MODEL = "qwen2.5-coder-1.5b"
"""The local model that is used where none is named."""
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
EFFORTS: tuple[str, ...] = get_args(Effort)
WIRES = ("chat", "responses", "anthropic", "google")
"""A module of `llm/wires` each."""
WireName = str
"""One of these, or the name of a plugin's."""


class Price(Section):
    """Dollars per million tokens."""

    input: float = Field(default=0.0, ge=0)
    output: float = Field(default=0.0, ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Prompt tokens that the endpoint had in its cache; without a figure they cost as much as the others."""
    written: float | None = Field(default=None, ge=0)
    """Prompt tokens that the endpoint wrote into its cache; without a figure they cost as much as the others."""

    @property
    def least(self) -> float:
        """What prompt tokens cost at least."""
        return self.input if self.cached is None else min(self.input, self.cached)


class EndpointSettings(Section):
    """An endpoint of the user's own, or other values for a known one."""

    base_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    key_env: str = ""
    """Name of the environment variable with the key, never the key itself."""
    model: str = ""
    """The model to use when only the endpoint is named."""
    window: int = Field(default=0, ge=0)
    wire: WireName = ""
    """How it is spoken to; empty: as is known of it, else chat."""


class LlmSettings(Section):
    """Which model is used, and how patient Duckflow is with it."""

    model: str = ""
    """Such as `openai:gpt-5-mini`; empty: found out."""
    fallback: list[str] = Field(default_factory=list[str])
    """Models that take over, in this order, while the first one is busy or cannot be reached."""
    second_model: str = ""
    """Another model, asked for a second opinion when the first one is stuck."""
    temperature: float | None = Field(default=None, ge=0)
    max_reply_tokens: int | None = Field(default=None, gt=0)
    max_reply_characters: int = Field(default=4_000_000, gt=0)
    """A reply that is longer is broken off while it comes."""
    effort: Effort | Literal[""] = ""
    """How long a model that thinks before it replies should think; empty: as it likes. Where a model has not this
    effort, it gets the nearest."""
    tools: Literal["auto", "native", "json"] = "auto"
    """Whether a model's own tool calls are used; auto: where the endpoint takes them. Small models get JSON."""
    window: int = Field(default=0, ge=0)
    """Tokens of a request and its reply; 0: what is known of the model."""

    connect_seconds: float = Field(default=10.0, gt=0)
    first_byte_seconds: float = Field(default=120.0, gt=0)
    local_first_byte_seconds: float = Field(default=600.0, gt=0)
    """A server on this machine may first have to load the model and read a long prompt without a graphics card."""
    between_chunks_seconds: float = Field(default=60.0, gt=0)
    reply_seconds: float = Field(default=1800.0, gt=0)
    """No reply may take longer in all, however lively it drips."""
    probe_seconds: float = Field(default=0.3, gt=0)
    """How long a local server may take to say which models it has."""

    tries: int = Field(default=4, ge=1)
    backoff_seconds: float = Field(default=1.0, ge=0)
    backoff_max_seconds: float = Field(default=30.0, ge=0)
    patience_seconds: float = Field(default=300.0, ge=0)
    """How long a busy endpoint is waited for in all. One that asks for more is not waited for."""
    abilities_days: float = Field(default=30.0, ge=0)
    """What an endpoint was seen to refuse is tried again after this time."""

    prices: dict[str, Price] = Field(default_factory=dict)
    """By model, with or without its endpoint: `openai:gpt-5-mini` or `gpt-5-mini`. Else the listed prices hold."""
    endpoints: dict[str, EndpointSettings] = Field(default_factory=dict)


class LocalSettings(Value):
    """How the local model is run; the defaults are measured on two cores with Qwen2.5-Coder 1.5B."""

    model: str = DEFAULT_MODEL
    context: int = Field(default=0, ge=0)
    """Tokens of one request and its reply; 0: as many as the memory takes, for a small model 8,192."""
    threads: int = Field(default=0, ge=0)
    """0 means one for each physical core this process may use."""
    batch: int = Field(default=128, ge=16)
    """Prompt tokens read at a time; a cancelled request stops only between two batches."""
    prompt_cache_mib: int = Field(default=512, ge=0)
    """Memory for prefixes of earlier prompts, so that two conversations do not throw each other out."""
    temperature: float = Field(default=0.0, ge=0.0)
    """A small model is most reliable when it says what it finds most likely."""
    repeat_penalty: float = Field(default=1.1, ge=1.0, le=2.0)
    gpu_layers: int = Field(default=-1, ge=-1)
    """Layers for the graphics card, where the runtime finds one; -1: as many as fit."""
    prefix_disk_mib: int = Field(default=1024, ge=0)
    """Disk for what was read of prompts, so that the next start does not read it again; 0: none is kept."""
    start_seconds: float = Field(default=120.0, gt=0)
