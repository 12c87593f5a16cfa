"""What a model is like, as far as the program goes by it."""

from typing import NamedTuple


class ModelProfile(NamedTuple):
    """Made once when a model is connected, and carried by the caller; nobody asks for the model's name again."""

    name: str = ""
    """As shown to people, such as `openai:gpt-5-mini`."""
    window: int = 131_072
    """How many tokens fit into one request and its reply."""
    native_tools: bool = False
    """Actions come as the endpoint's own tool calls; else as JSON in the text."""
    images: bool = False
    led: bool = False
    """A small model: it gets short prompts with few operations, acts once at a time, and is led (`agent/led`)."""
    local: bool = False
    """It runs inside this program: it is warmed up, does one thing at a time, and gets whole plans."""
    most_history: int = 0
    """Tokens of history beyond which it gets lost, whatever its window could take; 0: none."""


ANY_MODEL = ModelProfile()
"""One that nothing is known of yet."""
