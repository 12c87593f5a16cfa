"""A form: the way in which Decisions travel between the program and a model. Only the edge knows it."""

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
"""Beginnings of `operation` in a message with material from the user, which is not a result."""


class ParsedReply(NamedTuple):
    """A reply as it was read."""

    decision: Decision
    text: str = ""
    """The text of the reply, as it stands in the conversation."""
    doubtful: bool = False
    """True if the reply was repaired or cut off, so that it changes nothing without the user's yes."""
    blocks: tuple[str, ...] = ()
    """Texts of files that followed the Decision, in the order of the actions that lack one."""
    wire: WireReply | None = None
    broken: Mapping[str, str] = MappingProxyType({})
    """The reason why an action cannot be read, by the action's id. The other actions can be."""
    asks_for_texts: bool = True
    """True if a text that an action lacks is asked for in a request of its own."""
    ignores_tools: bool = False
    """True if the calls were written as text: then the endpoint did not pass the tools on."""


class ReplyRoom(NamedTuple):
    """The tokens a reply may take: a Decision alone, and one with the texts of files in it."""

    decision: int
    with_texts: int


class LiveWords(Protocol):
    """Picks from a streaming reply what a person may see already."""

    def feed(self, delta: str) -> str: ...


class Form(Protocol):
    """The interface of a form. One is chosen when a model is connected (`agent.connection.form_of`)."""

    format_name: str
    """The name of the format in the prompt; empty where none has to be named."""

    def offered(self, operations: Sequence[Operation], state: AgentState) -> tuple[Operation, ...]:
        """Returns the operations that the model is told of now. The others work too, or say why they do not."""
        ...

    def told_first(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """Returns the offered operations that always stand in the prefix. The others are told with the state."""
        ...

    def instructions(self, language: str, operations: Sequence[Operation]) -> str:
        """Says how to answer, and with which operations."""
        ...

    def listed(self, operations: Sequence[Operation], language: str) -> str:
        """Returns the operations as they are written out in a request."""
        ...

    def name(self, operation: str) -> str:
        """Returns the name by which the model calls an operation."""
        ...

    def spoken(self, history: Sequence[Message], operations: Sequence[Operation], language: str) -> list[PromptMessage]:
        """Returns the conversation as it stands in a request."""
        ...

    def without_texts(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """Returns the operations to offer after a reply that could not be read: without long texts, which may have been
        the cause."""
        ...

    def for_tasks(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """Returns the operations with which the model may plan tasks, as it is told of them."""
        ...

    def for_texts(self) -> "Form":
        """Returns the form of the conversation in a request for a file's text, which offers no tools."""
        ...

    def request(
        self, messages: tuple[PromptMessage, ...], operations: Sequence[Operation], state: AgentState, room: ReplyRoom
    ) -> Request:
        """Makes the request for the next Decision."""
        ...

    def live(self, operations: Iterable[Operation]) -> LiveWords: ...

    def read(self, reply: Reply, operations: Sequence[Operation], state: AgentState) -> ParsedReply:
        """Returns the reply as data. Raises ReplyUnusable, with what the model should change, if it cannot be read."""
        ...


def renamed(text: str, operations: Iterable[Operation], name: Callable[[str], str]) -> str:
    """Replaces the names of operations in one of Duckflow's own sentences by those that the model uses."""
    for operation in operations:
        if operation.name in text:
            text = re.sub(rf"(?<![\w.]){re.escape(operation.name)}(?!\w)", name(operation.name), text)
    return text


def own_words_renamed(message: Message, operations: Sequence[Operation], name: Callable[[str], str]) -> Message:
    """Renames operations in Duckflow's own sentences: notes, results of plans, and the first line of an error.
    Everything else is quoted, and stays as it is."""
    ours, quoted_text = "", message.text
    if message.role == "system" or any(
        operation.name == message.operation and operation.effect == "plan" for operation in operations
    ):
        ours, quoted_text = message.text, ""
    elif message.role == "tool" and message.text.startswith(ERROR):
        ours, line_end, quoted_text = message.text.partition("\n")
        quoted_text = line_end + quoted_text
    changed = renamed(ours, operations, name)
    return message if changed == ours else message.model_copy(update={"text": changed + quoted_text})


def spoken_by_others(message: Message, language: str) -> PromptMessage:
    """Returns a message that is no reply of the model. Text from outside stands between marks."""
    match message.role:
        case "assistant":
            return PromptMessage("assistant", message.text)
        case "tool":
            from_user = message.operation.startswith(GIVEN_BY_USER)
            source = message.operation if from_user else render(language, "result", operation=message.operation)
            return PromptMessage("user", quoted(language, source, message.text), pictures=message.pictures)
        case "system" if message.message_id.startswith(PAST):
            return PromptMessage("user", quoted(language, "memory", message.text))
        case "system":
            return PromptMessage("user", f"[duckflow]\n{message.text}")
        case "user":
            mark = note(language, "said_meanwhile") + "\n" if message.meanwhile else ""
            return PromptMessage("user", mark + message.text)
