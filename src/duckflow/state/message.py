"""Messages: of the conversation, and of a request to a model."""

import time
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from duckflow.state.noun import Value, new_id

Role = Literal["user", "assistant", "tool", "system"]


class Message(Value):
    """One thing said: by the user, by the model (its Decision as JSON), by a tool, or by Duckflow itself."""

    message_id: str = Field(default_factory=new_id("msg"))
    role: Role
    text: str
    turn: int = 0
    operation: str = ""
    job: str = ""
    """The background job it belongs to; such a message is no part of the conversation."""
    at: float = Field(default_factory=time.time)


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """Who speaks, and what. Endpoints want user and assistant to take turns."""

    role: Literal["system", "user", "assistant"]
    text: str
