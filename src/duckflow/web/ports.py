"""What the page's server is given: the sessions of this machine, and its fleets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from duckflow.events.event import Event
from duckflow.events.ports import Conversation
from duckflow.events.views import SessionSummary
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState


class KeptEvent(NamedTuple):
    """An event on record; nothing but its number where another version has written it."""

    number: int
    event: Event | None


class Joined(NamedTuple):
    """A conversation that runs in another process, and what ends our part in it."""

    conversation: Conversation
    close: Callable[[], Awaitable[None]]


class Shelf(Protocol):
    """The sessions of this machine. What reads journals blocks: it is called from another thread. What cannot be done
    raises a DuckflowError."""

    def all(self) -> Sequence[SessionSummary]:
        """Newest first."""
        ...

    def is_of_fleet(self, folder: str) -> bool:
        """A fleet's attempts work there. Their sessions are reached from the fleet."""
        ...

    def alone(self) -> str:
        """The latest session where only those of one terminal are shown; nothing where all are."""
        ...

    def mark(self) -> object:
        """Another one after a session has changed, has come or has gone."""
        ...

    def running(self) -> frozenset[str]:
        """Those that a process holds, by their ids."""
        ...

    async def join(self, session_id: str) -> Joined | None:
        """Nothing where no process holds it any more."""
        ...

    async def begin(self, folder: str, mode: str, model: str, language: str) -> str:
        """A new session in a process of its own, which can be joined."""
        ...

    async def go_on(self, session_id: str) -> None:
        """Have a process of its own hold an old session again."""
        ...

    def rename(self, session_id: str, title: str) -> None: ...

    def fork(self, session_id: str) -> str:
        """The id of a branch that begins with all that was said so far."""
        ...

    def archive(self, session_id: str, away: bool) -> None:
        """Put an ended session away, or back."""
        ...

    def remove(self, session_id: str) -> None:
        """Delete an ended session for good."""
        ...

    def export(self, session_id: str, form: str, words: Words) -> str: ...

    def search(self, question: str, words: Words) -> Sequence[Mapping[str, Any]]:
        """The places where something was said, the best first."""
        ...

    def folders(self, at: str) -> Mapping[str, Any]: ...

    def first(self, session_id: str, most: int, after: int) -> Sequence[KeptEvent]:
        """The first events after that number, in order."""
        ...

    def last(self, session_id: str, most: int, before: int) -> Sequence[KeptEvent]:
        """The last events before that number, in order."""
        ...

    def of_kinds(self, session_id: str, kinds: Sequence[str]) -> Sequence[KeptEvent]: ...

    def state(self, session_id: str) -> tuple[int, AgentState]:
        """As the journal tells it, after the event of that number."""
        ...

    def picture(self, session_id: str, digest: str) -> bytes:
        """Nothing where there is none."""
        ...

    def audit(self, session_id: str) -> Sequence[Mapping[str, Any]]:
        """Who allowed what, what was done, and what came of it; secrets are blotted out."""
        ...


class Models(Protocol):
    """The models that the user can reach. No key is ever given out."""

    async def models(self) -> Sequence[Mapping[str, Any]]: ...

    async def endpoints(self) -> Sequence[Mapping[str, Any]]:
        """Each with where its key comes from, if it has one."""
        ...

    async def add(self, name: str, address: str, secret: str, model: str, default: bool) -> Mapping[str, Any]:
        """Try a provider's key or an address, and keep what answers; a DuckflowError says why it does not."""
        ...

    async def check(self, name: str) -> Mapping[str, Any]:
        """Ask a model for one word; a DuckflowError says why none came."""
        ...


class Fleets(Protocol):
    """What the attempts of fleets ask, how far they are, and what can be done about them. All is JSON; phrases in it
    are worded here. What cannot be done raises a DuckflowError."""

    async def inbox(self) -> Sequence[Mapping[str, Any]]: ...

    async def to_pick(self) -> int:
        """The number of tasks that wait for somebody to pick one of their attempts."""
        ...

    async def fleets(self) -> Sequence[Mapping[str, Any]]:
        """The latest ones first, each with its tasks, each of these with its attempts. Fleets and tasks say in `doing`
        what is being carried out, and in `told` what came of the last."""
        ...

    async def workers(self) -> Sequence[Mapping[str, Any]]:
        """Who carries attempts out, and whether they live."""
        ...

    async def start(self, folder: str, tasks: str, flags: Mapping[str, Sequence[str]]) -> str:
        """Begin a fleet of these tasks in a repository, and have it worked on; its id."""
        ...

    async def work(self, fleet: str) -> None:
        """Have a fleet worked on that nobody works on."""
        ...

    async def answer(self, asked_id: str, text: str, choice: str, for_all_same: bool) -> bool:
        """Whether it was still open."""
        ...

    async def task(self, fleet: str, task: str) -> Mapping[str, Any]:
        """What came of its attempts, side by side and one by one, and its log."""
        ...

    async def diff(self, fleet: str, task: str, attempt: int) -> str:
        """What the attempt has changed; nothing where it has changed nothing."""
        ...

    async def pick(self, fleet: str, task: str, attempt: int) -> None: ...

    async def carry_out(self, what: str, fleet: str, task: str, attempt: int) -> None:
        """Begin to cancel, retry or merge; without a task all of the fleet, without an attempt all of the task."""
        ...
