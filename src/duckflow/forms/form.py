"""A form: the way in which Decisions travel between the program and a model. Only the code that talks to the model
knows the form."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from duckflow.i18n.asking import leaves_open, question_in_passing
from duckflow.llm.provider import Reply, Request
from duckflow.state.action import Decision, Operation
from duckflow.state.agent import AgentState
from duckflow.state.message import Message, PromptMessage, WireReply

GIVEN_BY_USER = ("@", "!", "stdin")
"""The beginnings of `operation` that mark a message as material from the user, and not as the result of an
operation."""


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
    """For each action that cannot be read, the reason by the action's id. All other actions can be read."""
    asks_for_texts: bool = True
    """True if Duckflow sends a separate request for a text that an action lacks."""
    ignores_tools: bool = False
    """True if the model wrote its calls as text: the endpoint then did not pass the tools on to it."""

    def asks_in_passing(self, language: str) -> bool:
        """Says whether the reply asks the user for permission or a choice, but makes calls as if the user had answered
        already."""
        return any(question_in_passing(text, language) for text in self._texts())

    def leaves_open(self, language: str) -> bool:
        """Says whether only the user can answer a question that stands beside the calls. Otherwise the model may be
        thinking aloud."""
        questions = ((text, question_in_passing(text, language)) for text in self._texts())
        return any(leaves_open(text, question, language) for text, question in questions if question)

    def _texts(self) -> tuple[str, ...]:
        return self.decision.rationale, self.text, *self.decision.said()


class ReplyRoom(NamedTuple):
    """The numbers of tokens that a reply may take: without texts of files, and with them."""

    decision: int
    with_texts: int


class LiveWords(Protocol):
    """Picks the parts of a streaming reply that the user may see already."""

    def feed(self, delta: str) -> str: ...


class Form(Protocol):
    """The interface of a form. The form is chosen when a model is connected (`agent.connection.form_of`)."""

    format_name: str
    """The name of the format in the prompt; empty if the prompt need not name a format."""

    def offered(self, operations: Sequence[Operation], state: AgentState) -> tuple[Operation, ...]:
        """Returns the operations that the model is told of now. If the model calls another operation, the call works
        too, or is answered with the reason why it does not."""
        ...

    def told_first(self, operations: Sequence[Operation]) -> tuple[Operation, ...]:
        """Returns the offered operations that always stand at the beginning of the prompt. The other ones stand next to
        the state."""
        ...

    def instructions(self, language: str, operations: Sequence[Operation]) -> str:
        """Returns the part of the prompt that says how to answer, and with which operations."""
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
        """Returns the operations with which the model may plan tasks, each in the form in which the prompt describes
        it."""
        ...

    def for_texts(self) -> "Form":
        """Returns the form of the conversation for a request for a file's text. This form offers no tools."""
        ...

    def request(
        self, messages: tuple[PromptMessage, ...], operations: Sequence[Operation], state: AgentState, room: ReplyRoom
    ) -> Request:
        """Makes the request for the next Decision."""
        ...

    def live(self, operations: Iterable[Operation]) -> LiveWords: ...

    def read(self, reply: Reply, operations: Sequence[Operation], state: AgentState) -> ParsedReply:
        """Returns the reply as data. Raises a ReplyUnusable that says what the model should change if it is
        unreadable."""
        ...
