"""Settings of the models, including the local one."""

from typing import Literal, get_args

from pydantic import Field

from duckflow.state.data import FrozenData, Section

DEFAULT_MODEL = "qwen2.5-coder-1.5b"
"""The local model that is used where none is named."""
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
EFFORTS: tuple[str, ...] = get_args(Effort)
WIRES = ("chat", "responses", "anthropic", "google")
"""Names of the built-in wires (protocols of endpoints), each a module of `llm/wires`."""
WireName = str
"""One of `WIRES`, or the name of a plugin's wire."""


class Price(Section):
    """The prices of a model, in dollars per million tokens."""

    input: float = Field(default=0.0, ge=0)
    output: float = Field(default=0.0, ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Price of prompt tokens that the endpoint had in its cache; without a figure they cost as much as others."""
    written: float | None = Field(default=None, ge=0)
    """Price of prompt tokens that the endpoint wrote into its cache; without a figure they cost as much as others."""

    @property
    def least(self) -> float:
        """The lowest price that a prompt token can have."""
        return self.input if self.cached is None else min(self.input, self.cached)


class EndpointSettings(Section):
    """An endpoint that the user defines, or changed values for a known one."""

    base_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    key_env: str = ""
    """Name of the environment variable with the key, never the key itself."""
    model: str = ""
    """The model to use when the user names only the endpoint."""
    window: int = Field(default=0, ge=0)
    wire: WireName = ""
    """The wire (protocol) to use. Empty means the known wire of this endpoint, else chat."""


class LlmSettings(Section):
    """The choice of the model, and limits for requests to it."""

    model: str = ""
    """Name of the model, such as `openai:gpt-5-mini`; empty means that Duckflow looks for one."""
    fallback: list[str] = Field(default_factory=list[str])
    """Models that take over, in this order, while the first one is busy or cannot be reached."""
    second_model: str = ""
    """Another model, asked for a second opinion when the first one is stuck."""
    temperature: float | None = Field(default=None, ge=0)
    max_reply_tokens: int | None = Field(default=None, gt=0)
    max_reply_characters: int = Field(default=4_000_000, gt=0)
    """The number of characters after which a streaming reply is broken off."""
    effort: Effort | Literal[""] = ""
    """Amount of thinking for models that think before they reply; empty leaves it to the model. A model that does not
    have this level gets the nearest one."""
    tools: Literal["auto", "native", "json"] = "auto"
    """Use of native tool calls. With `auto` they are used where the endpoint takes them, but small models get JSON."""
    window: int = Field(default=0, ge=0)
    """Tokens of a request and its reply; 0 means the known window of the model."""

    connect_seconds: float = Field(default=10.0, gt=0)
    first_byte_seconds: float = Field(default=120.0, gt=0)
    local_first_byte_seconds: float = Field(default=600.0, gt=0)
    """Seconds until a local server begins its reply. It may have to load the model and read a long prompt first."""
    between_chunks_seconds: float = Field(default=60.0, gt=0)
    reply_seconds: float = Field(default=1800.0, gt=0)
    """Seconds that a reply may take in all, even if pieces keep coming."""
    probe_seconds: float = Field(default=0.3, gt=0)
    """Seconds that a local server may take to list its models."""

    tries: int = Field(default=4, ge=1)
    backoff_seconds: float = Field(default=1.0, ge=0)
    backoff_max_seconds: float = Field(default=30.0, ge=0)
    patience_seconds: float = Field(default=300.0, ge=0)
    """Seconds to wait for a busy endpoint in all. An endpoint that asks for more is not waited for."""
    abilities_days: float = Field(default=30.0, ge=0)
    """Days after which parts that an endpoint has refused are tried again."""

    prices: dict[str, Price] = Field(default_factory=dict)
    """Prices by model, with or without its endpoint: `openai:gpt-5-mini` or `gpt-5-mini`. Models that are not named
    here have their listed prices."""
    endpoints: dict[str, EndpointSettings] = Field(default_factory=dict)


class LocalSettings(FrozenData):
    """Settings for running the local model. The defaults were measured on two cores with Qwen2.5-Coder 1.5B."""

    model: str = DEFAULT_MODEL
    context: int = Field(default=0, ge=0)
    """Tokens of one request and its reply; 0 means as many as fit into memory, for a small model 8,192."""
    threads: int = Field(default=0, ge=0)
    """Number of threads; 0 means one for each physical core that this process may use."""
    batch: int = Field(default=128, ge=16)
    """Prompt tokens that are read at a time. A cancelled request stops only between two batches."""
    prompt_cache_mib: int = Field(default=512, ge=0)
    """Memory for the beginnings of earlier prompts, so that two conversations do not evict each other."""
    temperature: float = Field(default=0.0, ge=0.0)
    """Randomness of replies. A small model is most reliable at 0, where it always picks the likeliest token."""
    repeat_penalty: float = Field(default=1.1, ge=1.0, le=2.0)
    gpu_layers: int = Field(default=-1, ge=-1)
    """Layers for the graphics card, where the runtime finds one; -1 means as many as fit."""
    prefix_disk_mib: int = Field(default=1024, ge=0)
    """Disk space for prompts already read, so that the next start does not read them again; 0 means none."""
    start_seconds: float = Field(default=120.0, gt=0)
