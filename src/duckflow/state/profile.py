"""What a model is like, as far as the program goes by it."""

from typing import Literal, NamedTuple


class ModelProfile(NamedTuple):
    """Made once when a model is connected, and carried by the caller; nobody asks for the model's name again."""

    name: str = ""
    """As shown to people, such as `openai:gpt-5-mini`."""
    window: int = 131_072
    """How many tokens fit into one request and its reply."""
    native_tools: bool = False
    """Actions come as the provider's own tool calls; else as JSON in the text."""
    bodies: Literal["asked", "inline"] = "asked"
    """Whether the text of a file is asked for in a reply of its own, or travels in the action."""
    several_actions: bool = True
    """It may give a list of actions; else one at a time."""
    images: bool = False
    compact: bool = False
    """It gets the short form of the prompts, with few operations."""
    led: bool = False
    """A small model: it is given the files first, held to what it has to write, and its code is tried out."""
    local: bool = False
    """It runs inside this program: it is warmed up, does one thing at a time, and gets whole plans."""


ANY_MODEL = ModelProfile()
"""One that nothing is known of yet."""
