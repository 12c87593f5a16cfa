"""A form: the way in which Decisions travel between the program and a model. Only the edge knows it."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from duckflow.i18n.asking import asks_in_passing
from duckflow.llm.provider import Reply, Request
from duckflow.state.action import RESPOND, Decision, Operation
from duckflow.state.agent import AgentState
from duckflow.state.message import Message, PromptMessage, WireReply

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

    def asks_in_passing(self, language: str) -> bool:
        """Says whether a text beside the calls asks the user something and goes on as if that were answered."""
        said_texts = [
            str(action.args.get("text", "")) for action in self.decision.actions if action.operation == RESPOND
        ]
        return any(asks_in_passing(text, language) for text in (self.decision.rationale, self.text, *said_texts))


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
