"""A form: how Decisions travel between the program and a model, at the edge and nowhere else."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from duckflow.i18n.template import note, quoted, render
from duckflow.llm.provider import Reply, Request
from duckflow.state.action import Decision, Operation
from duckflow.state.agent import AgentState
from duckflow.state.message import ERROR, PAST, Message, PromptMessage, WireReply

GIVEN_BY_USER = ("@", "!", "stdin")
"""Beginnings of `operation` in a message that holds material the user gave, not a result."""


class Reading(NamedTuple):
    """A reply as it was read."""

    decision: Decision
    text: str = ""
    """What was said, as it stands in the conversation."""
    doubtful: bool = False
    """It was repaired or cut off, so it changes nothing without the user's yes."""
    blocks: tuple[str, ...] = ()
    """Texts of files that followed the Decision, in the order of the actions that lack one."""
    wire: WireReply | None = None
    broken: Mapping[str, str] = MappingProxyType({})
    """By action: why it cannot be read. The others can."""
    asks_for_texts: bool = True
    """Whether a text that an action lacks is asked for in a request of its own."""
    ignores_tools: bool = False
    """The calls were written as text: the endpoint did not hand the tools on."""


class ReplyRoom(NamedTuple):
    """The tokens a reply may take: a Decision alone, and one with the texts of files in it."""

    decision: int
    with_texts: int


class LiveWords(Protocol):
    """Picks from a streaming reply what a person may see already."""

    def feed(self, delta: str) -> str: ...


class Form(Protocol):
    """Chosen once when a model is connected (`agent.connection.form_of`)."""

    format_name: str
    """What the reply is called in the prompt; empty where that goes without saying."""

    def offered(self, operations: Sequence[Operation], state: AgentState) -> tuple[Operation, ...]:
        """The operations that the model is told of now. The others work too, or say why they do not."""
        ...

    def told_first(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """Those of the offered ones that stand in the prefix, whatever happens. The others are told with the state."""
        ...

    def instructions(self, language: str, operations: Sequence[Operation]) -> str:
        """How to answer, and with which operations."""
        ...

    def listed(self, operations: Sequence[Operation], language: str) -> str:
        """The operations as they are written out in a request."""
        ...

    def name(self, operation: str) -> str:
        """How the model calls an operation."""
        ...

    def spoken(self, history: Sequence[Message], operations: Sequence[Operation], language: str) -> list[PromptMessage]:
        """The conversation as it stands in a request."""
        ...

    def without_texts(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """The operations after a reply that could not be read: a long text in it may be what went wrong."""
        ...

    def for_tasks(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """The operations with which the model may plan tasks, as it is told of them."""
        ...

    def for_texts(self) -> "Form":
        """The form of the conversation in a request for a file's text, which offers no tools."""
        ...

    def request(
        self, messages: tuple[PromptMessage, ...], operations: Sequence[Operation], state: AgentState, room: ReplyRoom
    ) -> Request:
        """The request for the next Decision."""
        ...

    def live(self, operations: Iterable[Operation]) -> LiveWords: ...

    def read(self, reply: Reply, operations: Sequence[Operation], state: AgentState) -> Reading:
        """The reply as data; ReplyUnusable, with what the model should change, when it cannot be read."""
        ...


def renamed(text: str, operations: Iterable[Operation], name: Callable[[str], str]) -> str:
    """Gives a sentence of ours with the names by which the model calls its operations."""
    for operation in operations:
        if operation.name in text:
            text = re.sub(rf"(?<![\w.]){re.escape(operation.name)}(?!\w)", name(operation.name), text)
    return text


def own_words_renamed(message: Message, operations: Sequence[Operation], name: Callable[[str], str]) -> Message:
    """Notes, results of plans and the first line of an error are our own sentences: they name operations as the model
    calls them. Everything else is quoted, and stays as it is."""
    ours, rest = "", message.text
    if message.role == "system" or any(one.name == message.operation and one.effect == "plan" for one in operations):
        ours, rest = message.text, ""
    elif message.role == "tool" and message.text.startswith(ERROR):
        ours, line_end, rest = message.text.partition("\n")
        rest = line_end + rest
    changed = renamed(ours, operations, name)
    return message if changed == ours else message.model_copy(update={"text": changed + rest})


def spoken_by_others(message: Message, language: str) -> PromptMessage:
    """A message that is no reply of the model. What came from outside stands between marks."""
    match message.role:
        case "assistant":
            return PromptMessage("assistant", message.text)
        case "tool":
            given = message.operation.startswith(GIVEN_BY_USER)
            source = message.operation if given else render(language, "result", operation=message.operation)
            return PromptMessage("user", quoted(language, source, message.text), pictures=message.pictures)
        case "system" if message.message_id.startswith(PAST):
            return PromptMessage("user", quoted(language, "memory", message.text))
        case "system":
            return PromptMessage("user", f"[duckflow]\n{message.text}")
        case "user":
            mark = note(language, "said_meanwhile") + "\n" if message.meanwhile else ""
            return PromptMessage("user", mark + message.text)
