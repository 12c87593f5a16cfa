"""Messages: of the conversation, and of a request to a model."""

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pydantic import Field

from duckflow.state.action import RESPOND, Action, Decision
from duckflow.state.noun import Value, new_id
from duckflow.state.picture import Picture


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


ERROR = "ERROR: "
"""The beginning of a result that tells of a failure; its first line is our own sentence."""
PAST = "past"
"""How the id of a message begins that stands for others: what it tells was said by anyone."""
Role = Literal["user", "assistant", "tool", "system"]


class ToolCall(Value):
    """A call of a tool as the wire has it; `extra` is what an endpoint adds and wants back."""

    call_id: str
    name: str
    arguments: str = ""
    extra: dict[str, Any] = Field(default_factory=dict[str, Any])


class WireReply(Value):
    """What only the wire knows of a reply that came as tool calls: the calls' ids and names in their order, and what
    the endpoint wants back. The arguments stand in the Decision; only the `decision` call keeps its own here."""

    calls: tuple[ToolCall, ...] = ()
    extra: dict[str, Any] = Field(default_factory=dict[str, Any])


class Message(Value):
    """One thing said: by the user, by the model, by a tool, or by Duckflow itself. A reply of the model is its text and
    its Decision, as data: nobody looks for structure in a text."""

    message_id: str = Field(default_factory=new_id("msg"))
    role: Role
    text: str
    """The words themselves: what was asked or answered, what a tool brought."""
    decision: Decision | None = None
    """Of a reply: what the model decided. A reply that was cut to fit the context has only its text left."""
    wire: WireReply | None = None
    """Of a reply that came as tool calls."""
    turn: int = 0
    operation: str = ""
    job: str = ""
    """The background job it belongs to; such a message is no part of the conversation."""
    step: str = ""
    """The step of the job's plan: each has a context of its own."""
    answers: str = ""
    """Of a result: the id of its action."""
    at: float = Field(default_factory=time.time)
    meanwhile: bool = False
    """The user said it while a turn was at work on what they had said before."""
    pictures: tuple[Picture, ...] = ()

    @property
    def whole(self) -> str:
        """All that it holds as one text: the words, then each call with its arguments."""
        if self.decision is None:
            return self.text
        lines = [self.text or self.decision.rationale]
        lines += [_call_line(action) for action in self.decision.actions if action.operation != RESPOND]
        return "\n".join(line for line in lines if line)


def _call_line(action: Action) -> str:
    return f"{action.operation} {', '.join(f'{name}: {arg}' for name, arg in action.args.items())}"


def last_request(messages: Sequence[Message]) -> str:
    """What the user said last, with what they added while it was worked on."""
    said: list[str] = []
    for message in reversed(messages):
        if message.role == "user":
            said.append(message.text)
            if not message.meanwhile:
                break
    return "\n".join(reversed(said))


def said_since(messages: Sequence[Message], operations: Sequence[str]) -> list[str]:
    """What the user has said since the model last called one of these; nothing where it never has."""
    said: list[str] = []
    for message in reversed(messages):
        if message.decision and any(action.operation in operations for action in message.decision.actions):
            return said
        if message.role == "user" and not message.job:
            said.append(message.text)
    return []


class ToolSpec(NamedTuple):
    """A tool as a model is told of it."""

    name: str
    description: str
    parameters: dict[str, Any]


class PromptMessage(NamedTuple):
    """Who speaks, and what. Endpoints want user and assistant to take turns. Only where a model has tools of its own
    there are `calls` of the assistant, and messages of the role tool that answer one."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""
    extra: Mapping[str, Any] = MappingProxyType({})
    pictures: tuple[Picture, ...] = ()
    """Of what is said with the role user; those of a result are said right after it."""

    @property
    def whole(self) -> str:
        """All that it holds, as one text."""
        return "\n".join((self.text, *(f"{call.name} {call.arguments}" for call in self.calls)))
