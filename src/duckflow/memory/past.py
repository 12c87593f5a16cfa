"""What a prompt says of the messages that are left out of it."""

from collections.abc import Iterable, Sequence

from duckflow.memory.clip import clip
from duckflow.memory.digest import Digest
from duckflow.memory.tokens import MESSAGE_OVERHEAD, estimate
from duckflow.state.message import Message


class Past:
    """The model's summaries and the computed digest, put into words only when a prompt is built."""

    def __init__(self) -> None:
        self.text = ""
        self.tokens = 0.0
        self._digest = Digest()
        self._leaving: list[Message] = []
        self._summaries: Sequence[str] = ()
        self._room = -1.0

    def take(self, messages: Iterable[Message]) -> None:
        """These leave the context."""
        self._leaving += messages

    def tell_anew(self, messages: Iterable[Message], left_out: int) -> None:
        """Of these only; `left_out` is how many there are in all."""
        self._digest = Digest()
        self._digest.take(messages)
        self._digest.messages = left_out
        self._leaving, self._room = [], -1.0

    def summarise(self, summaries: Sequence[str]) -> None:
        """What the model says of them."""
        self._summaries, self._room = tuple(summaries), -1.0

    def describe(self, room: float) -> None:
        """Put it into words, within so many tokens. Taking a message in never waits for it."""
        if not self._leaving and self._room == room:
            return
        self._digest.take(self._leaving)
        self._leaving, self._room, self.text = [], room, ""
        if self._digest.messages:
            self.text = self._told(room - MESSAGE_OVERHEAD)
        self.tokens = estimate(self.text) + MESSAGE_OVERHEAD if self.text else 0.0

    def message(self) -> Message:
        return Message(message_id="past", role="system", text=self.text, at=0.0)

    def _told(self, room: float) -> str:
        told = [f"[{self._digest.messages} earlier messages are left out here]"]
        if self._summaries:
            told.append(clip("\n".join(self._summaries), room / 2))
        told.append(self._digest.text(room - sum(map(estimate, told)) - len(told)))
        return "\n".join(filter(None, told))
