"""The ports of the page's server: the sessions of this machine, its models, and its fleets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from duckflow.events.event import Event
from duckflow.events.ports import Conversation
from duckflow.events.views import SessionSummary
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState


class KeptEvent(NamedTuple):
    """An event of a journal, or only its number if another version has written it."""

    number: int
    event: Event | None


class Joined(NamedTuple):
    """A conversation that runs in another process, and the function that leaves it."""

    conversation: Conversation
    close: Callable[[], Awaitable[None]]


class Shelf(Protocol):
    """The sessions of this machine. Methods that read journals block and are called from another thread. A request that
    cannot be met raises a DuckflowError."""

    def all(self) -> Sequence[SessionSummary]:
        """Returns all sessions, the newest first."""
        ...

    def is_of_fleet(self, folder: str) -> bool:
        """Says whether the attempts of a fleet work in this folder. Their sessions are shown with the fleet."""
        ...

    def alone(self) -> str:
        """Returns the latest session where only those of one terminal are shown, and nothing where all are."""
        ...

    def mark(self) -> object:
        """Returns a mark that differs after a session has changed, come or gone."""
        ...

    def running(self) -> frozenset[str]:
        """Returns the ids of the sessions that a process holds."""
        ...

    async def join(self, session_id: str) -> Joined | None:
        """Joins the session; returns nothing if no process holds it any more."""
        ...

    async def begin(self, folder: str, mode: str, model: str, language: str) -> str:
        """Begins a new session in a process of its own, which can be joined, and returns its id."""
        ...

    async def go_on(self, session_id: str) -> None:
        """Starts a process that holds an old session again."""
        ...

    def rename(self, session_id: str, title: str) -> None: ...

    def fork(self, session_id: str) -> str:
        """Returns the id of a branch that begins with everything said so far."""
        ...

    def archive(self, session_id: str, away: bool) -> None:
        """Puts an ended session away, or brings it back."""
        ...

    def remove(self, session_id: str) -> None:
        """Deletes an ended session for good."""
        ...

    def export(self, session_id: str, form: str, words: Words) -> str: ...

    def search(self, question: str, words: Words) -> Sequence[Mapping[str, Any]]:
        """Returns the places where something was said, the best first."""
        ...

    def folders(self, at: str) -> Mapping[str, Any]: ...

    def first(self, session_id: str, most: int, after: int) -> Sequence[KeptEvent]:
        """Returns the first events after that number, in order."""
        ...

    def last(self, session_id: str, most: int, before: int) -> Sequence[KeptEvent]:
        """Returns the last events before that number, in order."""
        ...

    def of_kinds(self, session_id: str, kinds: Sequence[str]) -> Sequence[KeptEvent]: ...

    def state(self, session_id: str) -> tuple[int, AgentState]:
        """Returns the state according to the journal, with the number of the event that led to it."""
        ...

    def picture(self, session_id: str, digest: str) -> bytes:
        """Returns the picture, or nothing where there is none."""
        ...

    def audit(self, session_id: str) -> Sequence[Mapping[str, Any]]:
        """Returns who allowed what, what was done, and with what result. Secrets are blotted out."""
        ...


class Models(Protocol):
    """The models that the user can reach. Keys are never returned."""

    async def models(self) -> Sequence[Mapping[str, Any]]: ...

    async def endpoints(self) -> Sequence[Mapping[str, Any]]:
        """Returns the endpoints, each with where its key comes from, if it has one."""
        ...

    async def add(self, name: str, address: str, secret: str, model: str, default: bool) -> Mapping[str, Any]:
        """Tries a provider's key or an address, and saves it if it answers. A DuckflowError says why it does not."""
        ...

    async def check(self, name: str) -> Mapping[str, Any]:
        """Asks a model for one word. A DuckflowError says why none came."""
        ...


class Fleets(Protocol):
    """The fleets: what their attempts ask, how far they are, and what can be done about them. Everything is JSON; the
    page's server words the phrases in it. A request that cannot be met raises a DuckflowError."""

    async def inbox(self) -> Sequence[Mapping[str, Any]]: ...

    async def to_pick(self) -> int:
        """Returns the number of tasks that wait for somebody to pick one of their attempts."""
        ...

    async def fleets(self) -> Sequence[Mapping[str, Any]]:
        """Returns the fleets, the latest first, each with its tasks and their attempts. `doing` says what is being done
        to a fleet or a task, `told` with what result the last one ended."""
        ...

    async def workers(self) -> Sequence[Mapping[str, Any]]:
        """Returns the workers that carry attempts out, and says of each whether it lives."""
        ...

    async def start(self, folder: str, tasks: str, flags: Mapping[str, Sequence[str]]) -> str:
        """Begins a fleet of these tasks in a repository, has it worked on, and returns its id."""
        ...

    async def work(self, fleet: str) -> None:
        """Starts work on a fleet that nobody works on."""
        ...

    async def answer(self, asked_id: str, text: str, choice: str, for_all_same: bool) -> bool:
        """Answers a question, and says whether it was still open."""
        ...

    async def task(self, fleet: str, task: str) -> Mapping[str, Any]:
        """Returns the results of the task's attempts, side by side and one by one, and its log."""
        ...

    async def diff(self, fleet: str, task: str, attempt: int) -> str:
        """Returns the change that the attempt has made, or an empty text."""
        ...

    async def pick(self, fleet: str, task: str, attempt: int) -> None: ...

    async def carry_out(self, what: str, fleet: str, task: str, attempt: int) -> None:
        """Begins to cancel, retry or merge: the whole fleet without a task, the whole task without an attempt."""
        ...
