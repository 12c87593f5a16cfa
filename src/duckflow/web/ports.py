"""The interfaces that the page's server uses: the sessions of this machine, its models, and its fleets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from duckflow.events.event import Event
from duckflow.events.ports import Conversation
from duckflow.events.views import SessionSummary
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState
from duckflow.state.question import Question


class KeptEvent(NamedTuple):
    """An event of a journal. An event that another version has written has only its number."""

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
        """Returns the id of the latest session if the page shows only the sessions of one terminal; empty if it shows
        all sessions."""
        ...

    def mark(self) -> object:
        """Returns a value that differs after a session has changed, come or gone."""
        ...

    def running(self) -> frozenset[str]:
        """Returns the ids of the sessions that a process holds (has open)."""
        ...

    async def join(self, session_id: str) -> Joined | None:
        """Joins the session; returns None if no process holds it any more."""
        ...

    async def begin(self, folder: str, mode: str, model: str, language: str) -> str:
        """Begins a new session in its own process, which can be joined, and returns the session's id."""
        ...

    async def go_on(self, session_id: str) -> None:
        """Starts a process that opens an old session again."""
        ...

    def rename(self, session_id: str, title: str) -> None: ...

    def fork(self, session_id: str) -> str:
        """Returns the id of a new branch of the session, which begins with everything said so far."""
        ...

    def archive(self, session_id: str, away: bool) -> None:
        """Puts an ended session into the archive, or with `away` False takes it out again."""
        ...

    def remove(self, session_id: str) -> None:
        """Deletes an ended session for good."""
        ...

    def export(self, session_id: str, form: str, words: Words) -> str: ...

    def search(self, question: str, words: Words) -> Sequence[Mapping[str, Any]]:
        """Returns the places in all sessions where something was said about the question, the best first."""
        ...

    def folders(self, at: str) -> Mapping[str, Any]: ...

    def first(self, session_id: str, most: int, after: int) -> Sequence[KeptEvent]:
        """Returns the first events after number `after`, in order."""
        ...

    def last(self, session_id: str, most: int, before: int) -> Sequence[KeptEvent]:
        """Returns the last events before number `before`, in order."""
        ...

    def of_kinds(self, session_id: str, kinds: Sequence[str]) -> Sequence[KeptEvent]: ...

    def state(self, session_id: str) -> tuple[int, AgentState]:
        """Returns the session's state according to its journal, with the number of its last event."""
        ...

    def picture(self, session_id: str, digest: str) -> bytes:
        """Returns the picture with this digest; empty bytes where there is none."""
        ...

    def audit(self, session_id: str) -> Sequence[Mapping[str, Any]]:
        """Returns the session's actions with their results, and who allowed them. Secrets are blotted out."""
        ...


class Models(Protocol):
    """The models that the user can reach. Keys are never returned."""

    async def models(self) -> Sequence[Mapping[str, Any]]: ...

    async def endpoints(self) -> Sequence[Mapping[str, Any]]:
        """Returns the endpoints, each with the place its key comes from, if it has a key."""
        ...

    async def add(self, name: str, address: str, secret: str, model: str, default: bool) -> Mapping[str, Any]:
        """Tries a provider's key or an address, and saves it if a model answers. A DuckflowError says why none does."""
        ...

    async def lacks_default(self) -> bool:
        """Says whether a session that names no model would find none that the user has chosen or has a key for."""
        ...

    def hear_typed(self, question: Question, text: str) -> None:
        """Hears the answer to a question for a secret. If it is a model's key, further sessions get it, too."""
        ...

    async def check(self, name: str) -> Mapping[str, Any]:
        """Asks a model for one word. A DuckflowError says why no answer came."""
        ...


class Fleets(Protocol):
    """The fleets: questions and progress of their attempts, and the actions on them. Everything is JSON; the page's
    server turns the phrases in it into sentences. A request that cannot be met raises a DuckflowError."""

    async def inbox(self) -> Sequence[Mapping[str, Any]]: ...

    async def to_pick(self) -> int:
        """Returns the number of tasks that wait for somebody to pick one of their attempts."""
        ...

    async def fleets(self) -> Sequence[Mapping[str, Any]]:
        """Returns the fleets, the latest first, each with its tasks and their attempts. `doing` names the action that
        is going on for a fleet or a task; `told` is the result of the last action that ended."""
        ...

    async def workers(self) -> Sequence[Mapping[str, Any]]:
        """Returns the workers, and says of each whether it lives."""
        ...

    async def start(self, folder: str, tasks: str, flags: Mapping[str, Sequence[str]]) -> str:
        """Begins a fleet of these tasks in a repository, starts a worker for it, and returns its id."""
        ...

    async def work(self, fleet: str) -> None:
        """Starts a worker for a fleet that has none."""
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
        """Begins to cancel, retry or merge: without a task the whole fleet, without an attempt the whole task."""
        ...
