"""What a prompt says of the messages that are left out of it."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from duckflow.memory.clip import clip
from duckflow.memory.tokens import MESSAGE_OVERHEAD, estimate
from duckflow.state.message import Message

if TYPE_CHECKING:
    from duckflow.memory.digest import Digest


class Past:
    """The model's summaries and the computed digest, put into words only when a prompt is built."""

    def __init__(self) -> None:
        self.text = ""
        self.tokens = 0.0
        self._digest: Digest | None = None
        self._leaving: list[Message] = []
        self._summaries: Sequence[str] = ()
        self._room = -1.0

    def take(self, messages: Iterable[Message]) -> None:
        """These leave the context."""
        self._leaving += messages

    def tell_anew(self, messages: Iterable[Message], left_out: int) -> None:
        """Of these only; `left_out` is how many there are in all."""
        self._digest = None
        told = self._told_of(messages)
        told.messages = left_out
        self._leaving, self._room = [], -1.0

    def summarise(self, summaries: Sequence[str]) -> None:
        """What the model says of them."""
        self._summaries, self._room = tuple(summaries), -1.0

    def describe(self, room: float) -> None:
        """Put it into words, within so many tokens. Taking a message in never waits for it."""
        if not self._leaving and self._room == room:
            return
        if self._leaving or self._digest:
            digest = self._told_of(self._leaving)
            self.text = self._told(digest, room - MESSAGE_OVERHEAD) if digest.messages else ""
            self.tokens = estimate(self.text) + MESSAGE_OVERHEAD if self.text else 0.0
        self._leaving, self._room = [], room

    def message(self) -> Message:
        return Message(message_id="past", role="system", text=self.text, at=0.0)

    def _told_of(self, messages: Iterable[Message]) -> "Digest":
        """The digest, with these in it; made with the first message that leaves."""
        if self._digest is None:
            from duckflow.memory.digest import Digest

            self._digest = Digest()
        self._digest.take(messages)
        return self._digest

    def _told(self, digest: "Digest", room: float) -> str:
        told = [f"[{digest.messages} earlier messages are left out here]"]
        if self._summaries:
            told.append(clip("\n".join(self._summaries), room / 2))
        told.append(digest.text(room - sum(map(estimate, told)) - len(told)))
        return "\n".join(filter(None, told))
