"""Messages of the conversation, and messages of a request to a model."""

import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pydantic import Field

from duckflow.state.action import RESPOND, Action, Decision
from duckflow.state.data import FrozenData, new_id
from duckflow.state.picture import Picture


class Usage(FrozenData):
    """The tokens, money and time that one model call, or a whole session, used."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0
    calls: int = 0
    seconds: float = 0.0
    """Seconds in which replies arrived, counted from their first piece on."""

    @property
    def fresh(self) -> int:
        """Returns the number of input tokens that did not come from a cache."""
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
"""The beginning of a result that reports a failure. The first line of such a result is written by Duckflow itself."""
PAST = "past"
"""The prefix of the id of a message that replaces earlier messages. Its content may come from anyone."""
AT_GATE = "gate"
"""The operation of a message that tells the conversation what the user said at a Gate (a question before a risky
action) of a job."""
Role = Literal["user", "assistant", "tool", "system"]


class ToolCall(FrozenData):
    """A tool call as the endpoint sent it. `extra` holds fields that the endpoint adds and wants to get back."""

    call_id: str
    name: str
    arguments: str = ""
    extra: dict[str, Any] = Field(default_factory=dict[str, Any])


class WireReply(FrozenData):
    """The part of a reply with tool calls that only the endpoint needs: the ids and names of the calls in order, and
    fields to be sent back. The arguments are in the Decision; only those of the `decision` tool are stored here."""

    calls: tuple[ToolCall, ...] = ()
    extra: dict[str, Any] = Field(default_factory=dict[str, Any])


class Message(FrozenData):
    """One message: by the user, the model, a tool, or Duckflow itself. A reply of the model is a text and a Decision as
    data, so nobody needs to parse the text."""

    message_id: str = Field(default_factory=new_id("msg"))
    role: Role
    text: str
    """The words themselves: a request, an answer, or the result of a tool."""
    decision: Decision | None = None
    """The model's decision, in a reply. A reply that was cut to fit the context has only its text left."""
    wire: WireReply | None = None
    """The part of the reply that only the endpoint needs, if the reply came as tool calls."""
    turn: int = 0
    operation: str = ""
    job: str = ""
    """The background job that the message belongs to. A message of a job is not part of the conversation."""
    step: str = ""
    """The step of the job's plan that the message belongs to. Each step has a context of its own."""
    answers: str = ""
    """The id of the action whose result this message is; empty for any other message."""
    at: float = Field(default_factory=time.time)
    meanwhile: bool = False
    """True if the user said this while a turn was working on their earlier message."""
    is_open: bool = False
    """True if the user typed this text, or was asked and lets the model see it. Nothing in it is hidden from the
    model."""
    pictures: tuple[Picture, ...] = ()

    @property
    def whole(self) -> str:
        """Returns the whole message as one text: the words, then each call with its arguments."""
        if self.decision is None:
            return self.text
        lines = [self.text or self.decision.rationale]
        lines += [_call_line(action) for action in self.decision.actions if action.operation != RESPOND]
        return "\n".join(line for line in lines if line)


def _call_line(action: Action) -> str:
    return f"{action.operation} {', '.join(f'{name}: {arg}' for name, arg in action.args.items())}"


def last_request(messages: Sequence[Message]) -> str:
    """Returns the user's last request, with everything that they added while it was worked on."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.role == "user":
            texts.append(message.text)
            if not message.meanwhile:
                break
    return "\n".join(reversed(texts))


def said_since(messages: Sequence[Message], operations: Sequence[str]) -> list[str]:
    """Returns the user's messages since the model last called one of these operations; empty if it never has."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.decision and any(action.operation in operations for action in message.decision.actions):
            return texts
        if message.role == "user" and not message.job:
            texts.append(message.text)
    return []


class ToolSpec(NamedTuple):
    """A tool as it is described to a model."""

    name: str
    description: str
    parameters: dict[str, Any]


class PromptMessage(NamedTuple):
    """One message of a request, with its speaker. Endpoints want user and assistant to take turns. Only requests to a
    model with native tools contain `calls` of the assistant, and messages of the role `tool` that answer a call."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""
    extra: Mapping[str, Any] = MappingProxyType({})
    pictures: tuple[Picture, ...] = ()
    """The pictures of a message of the role user. Pictures of a result are sent in a user message right after it."""
    open_texts: tuple[str, ...] = ()
    """The texts in this message that the user typed, or lets the model see. Secrets in them are not hidden."""

    @property
    def whole(self) -> str:
        """Returns the whole message as one text."""
        return "\n".join((self.text, *(f"{call.name} {call.arguments}" for call in self.calls)))
