"""What is told of messages that left the context: one note at the place where the first of them stood, and the model's
summaries, where they came. Between prunings none of them changes, so that a provider's cache holds."""

from collections.abc import Iterable, Sequence

from duckflow.memory.clip import clip
from duckflow.memory.digest import Digest
from duckflow.memory.tokens import MESSAGE_OVERHEAD, estimate
from duckflow.state.message import PAST, Message

MOST_TOKENS = 800


class PastNote:
    """A message that stands for others. `place`: the number of the message before which it stands."""

    def __init__(self, place: int, text: str) -> None:
        self.place = place
        self.message = Message(message_id=f"{PAST}{place}", role="system", text=text, at=0.0)
        self.tokens = estimate(text) + MESSAGE_OVERHEAD


class Past:
    """Put into words only when a prompt is built."""

    def __init__(self) -> None:
        self.notes: list[PastNote] = []
        self._digest = Digest()
        self._place = 0
        self._leaving: list[Message] = []
        self._summaries: Sequence[str] = ()

    @property
    def tokens(self) -> float:
        return sum(note.tokens for note in self.notes)

    def leave(self, place: int, messages: Iterable[Message]) -> None:
        """These leave the context; the first of them stood at this place."""
        anything = self._leaving or self._digest.messages
        self._place = min(place, self._place) if anything else place
        self._leaving += messages

    def describe(self, room: float) -> None:
        """Put into words what has left since, within so many tokens."""
        if self._leaving:
            self._digest.take(self._leaving)
            self._leaving = []
            self._tell(room)

    def tell_anew(self, place: int, digest: Digest, room: float) -> None:
        """This is all that is left out."""
        self._place, self._digest, self._leaving = place, digest, []
        self._tell(room)

    def summarise(self, summaries: Sequence[str], place: int) -> None:
        """What the model says of them. The latest is told at this place, if it is new; with the next pruning, where
        the others are."""
        if summaries and summaries[-1] not in self._summaries and self.notes:
            self.notes.append(PastNote(place, summaries[-1]))
        self._summaries = tuple(summaries)

    def _tell(self, room: float) -> None:
        text = _told(self._digest, self._summaries, min(room, MOST_TOKENS) - MESSAGE_OVERHEAD)
        self.notes = [PastNote(self._place, text)] if self._digest.messages else []


def _told(digest: Digest, summaries: Sequence[str], room: float) -> str:
    told = [f"[{digest.messages} earlier messages are left out here]"]
    if summaries:
        told.append(clip("\n".join(summaries), room / 2))
    told.append(digest.text(room - sum(map(estimate, told)) - len(told)))
    return "\n".join(filter(None, told))
