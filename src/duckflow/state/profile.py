"""The properties of a model by which the program decides how to use the model."""

from typing import NamedTuple


class ModelProfile(NamedTuple):
    """The properties of a connected model. They are collected once, at the connection, so that no code decides by the
    model's name."""

    name: str = ""
    """The name that people are shown, such as `openai:gpt-5-mini`."""
    window: int = 131_072
    """The number of tokens that fit into one request and its reply."""
    native_tools: bool = False
    """True if actions come as the endpoint's own tool calls; otherwise they come as JSON in the text."""
    images: bool = False
    led: bool = False
    """True for a small model: it gets short prompts with few operations, takes one action at a time, and Duckflow asks
    it for one thing after the other (`agent/led`)."""
    local: bool = False
    """True if the model runs inside this program. Then it is warmed up, handles one request at a time, and writes whole
    plans."""
    most_history: int = 0
    """The tokens of history beyond which the model gets confused, whatever its window; 0 means no limit."""


ANY_MODEL = ModelProfile()
"""The profile of a model about which nothing is known yet."""
