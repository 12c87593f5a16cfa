"""Messages: of the conversation, and of a request to a model."""

import time
from collections.abc import Sequence
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
    meanwhile: bool = False
    """The user said it while a turn was at work on what they had said before."""


def last_request(messages: Sequence[Message]) -> str:
    """What the user said last, with what they added while it was worked on."""
    said: list[str] = []
    for message in reversed(messages):
        if message.role == "user":
            said.append(message.text)
            if not message.meanwhile:
                break
    return "\n".join(reversed(said))


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """Who speaks, and what. Endpoints want user and assistant to take turns."""

    role: Literal["system", "user", "assistant"]
    text: str
