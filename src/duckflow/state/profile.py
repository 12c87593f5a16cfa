"""The properties of a model that the program decides by."""

from typing import NamedTuple


class ModelProfile(NamedTuple):
    """The properties of a connected model. It is made once at the connection, so that nobody decides by the model's
    name."""

    name: str = ""
    """The name that people are shown, such as `openai:gpt-5-mini`."""
    window: int = 131_072
    """The number of tokens that fit into one request and its reply."""
    native_tools: bool = False
    """Actions come as the endpoint's own tool calls; otherwise as JSON in the text."""
    images: bool = False
    led: bool = False
    """A small model: it gets short prompts with few operations, acts once at a time, and is led step by step
    (`agent/led`)."""
    local: bool = False
    """True if the model runs inside this program. Then it is warmed up, handles one request at a time, and writes whole
    plans."""
    most_history: int = 0
    """Tokens of history beyond which it gets confused, however large its window is; 0 means no limit."""


ANY_MODEL = ModelProfile()
"""The profile of a model about which nothing is known yet."""
