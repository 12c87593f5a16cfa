"""One message of a request to a model."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """Who speaks, and what. Endpoints want user and assistant to take turns."""

    role: Literal["system", "user", "assistant"]
    text: str
