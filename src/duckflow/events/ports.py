"""The ports of the agent. The agent reaches the outside by `Emit` and `Ask`; front ends reach the agent by
`Conversation` only.

Everything that crosses is text, plain values and numbered events, so that a front end may run in another process."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Literal, Protocol

from duckflow.errors import Outcome
from duckflow.events.types import Event
from duckflow.events.views import (
    Attachment,
    CommandInfo,
    ContextPart,
    JobWish,
    Meaning,
    MemoryPort,
    NextSession,
    SessionSummary,
    Taken,
    UndoPort,
    Unheard,
)
from duckflow.state.agent import AgentState
from duckflow.state.changes import DiffSide, Hunk, LineComment
from duckflow.state.data import Phrase
from duckflow.state.plan import Plan
from duckflow.state.question import Answer, Question

Listener = Callable[[Event], None]


class Emit(Protocol):
    """Tells the state and all listeners that something happened."""

    def __call__(self, event: Event) -> None: ...


class Ask(Protocol):
    """Asks the person a question and waits for the answer."""

    async def __call__(self, question: Question) -> Answer: ...


Hear = Callable[[int, Event], None]
"""A listener that gets every event with its number in the journal; an event that is not stored has the number 0."""


class CommandTable(Protocol):
    """All slash commands. They act on the conversation and return the lines to show."""

    def __iter__(self) -> Iterator[CommandInfo]: ...

    async def knows(self, line: str) -> bool:
        """Says whether the line begins with a slash command. Custom commands that were added meanwhile count, too."""
        ...

    async def run(self, conversation: "InnerConversation", ask: Ask, line: str, language: str = "") -> str: ...


class ChoicesPort(Protocol):
    """The settings that the user may change while Duckflow runs, such as mode and model."""

    @property
    def mode(self) -> str: ...

    @property
    def modes(self) -> Sequence[str]:
        """Returns the modes that the user can choose."""
        ...

    def change_mode(self, mode: str) -> None: ...

    async def change_model(self, name: str) -> str:
        """Returns the new model's full name. The old model stays when the new one cannot be used."""
        ...

    def change_language(self, language: str) -> None: ...

    def rename(self, title: str) -> None:
        """Gives the session a title that the user has chosen."""
        ...


class WorkPort(Protocol):
    """Controls the plan, its jobs, and the agents that were handed a task."""

    def control(self, wish: JobWish, job_id: str = "") -> None:
        """Pauses, resumes or cancels a job. An event reports the outcome."""
        ...

    async def jobs_over(self, alone: bool = False) -> None:
        """Returns when no job runs; paused jobs do not count as running. `alone` means that nobody could resume a
        paused job, so paused jobs are cancelled."""
        ...

    async def stop_agent(self, agent_id: str) -> None:
        """Ends a running agent. The model then gets that agent's report of its work so far. Raises a UsageError for an
        agent that does not run."""
        ...

    async def tell_agent(self, agent_id: str, text: str) -> None:
        """Says something to a running agent, which hears it before its next request."""
        ...

    def approve_plan(self, shown: str) -> Awaitable[Outcome]:
        """Carries out the draft plan, if it is still the one that was shown: `shown` is its fingerprint. The result can
        be awaited until the turn that this begins has ended."""
        ...


class ReviewPort(Protocol):
    """The user's review of what a turn or a job has changed. Comments, marks and changes that were taken back are in
    the state: `comments`, `reviewed`, `taken_back` (docs/review.md)."""

    async def hunks(self, turn: int = 0, job: str = "") -> Sequence[Hunk]:
        """Returns the changes of a turn or a job that are still there; if neither is named, those of the latest
        work."""
        ...

    async def comment(
        self, turn: int, path: str, line: int, text: str, side: DiffSide = "new", job: str = ""
    ) -> LineComment:
        """Keeps a comment on a line of these changes until `send` is called."""
        ...

    def drop(self, comment_id: str) -> None: ...

    def mark(self, hunk_id: str, reviewed: bool = True) -> None: ...

    async def take_back(self, turn: int, path: str, hunk_id: str = "", job: str = "") -> Phrase:
        """Takes back a hunk, or, without a `hunk_id`, all changes of the file. The change is made again by `put_back`
        (a hunk) or `/redo` (a file)."""
        ...

    async def put_back(self, hunk_id: str) -> Phrase: ...

    async def send(self, text: str = "") -> Outcome:
        """Sends all comments as one message, after `text`, and returns when the turn that hears it has ended."""
        ...


class SessionsPort(Protocol):
    """The ways to leave this session."""

    def leave(self, detached: bool = False) -> None:
        """Leaves the session for good; with `detached` its jobs go on in a process of their own."""
        ...

    async def over(self) -> NextSession | None:
        """Waits until the user has left the conversation. Returns the session to go on with; None if there is none."""
        ...


class Conversation(Protocol):
    """One conversation on one session, as every front end sees it, in this process or over a socket. Properties are
    known at once, and actions can be awaited. An action that cannot be done raises a DuckflowError."""

    def take(
        self, line: str, question_id: str | None = "", language: str = "", read: str | None = None
    ) -> Awaitable[Taken]:
        """Takes a line as people type it: the answer to the first open question, a `/command`, a `!command`, a word
        about running work, or a message. It is carried out in the background, and events tell what comes of it.
        `question_id`: the only question that the line may answer; None if the person saw no question, so that it
        answers none. `language`: the language that a command answers in, if it is not the session's. `read`: the
        fingerprint of the draft of a plan that the person has read, so that a yes approves no other; None means every
        draft."""
        ...

    def reads_as(self, line: str) -> Meaning:
        """Returns what the line would mean to `take`: an answer, a command or a message."""
        ...

    async def say(self, text: str, attachments: Sequence[Attachment] = (), *, read: str | None = None) -> Outcome:
        """Sends a message and returns when the turn that hears it has ended. If a turn runs already, the model reads
        the message before its next call; a mark in it says that it was said meanwhile."""
        ...

    def queue(self, text: str, read: str | None = None) -> None:
        """Sends a message that does not steer: it waits for the end of the running turn. If no turn runs, it is sent at
        once."""
        ...

    def answer(self, question_id: str, text: str = "", choice: str = "") -> Awaitable[Taken]:
        """Answers an open question: by the key of a choice, with a remark in `text`, or by `text` alone, which is
        understood like a typed line. Only the first answer counts."""
        ...

    def interrupt(self) -> str:
        """Stops the turn and the commands. Returns the messages that were not heard yet."""
        ...

    def hear(self, listener: Hear, after: int | None = None) -> Callable[[], None]:
        """Passes every event from now on to the listener. With `after`, the listener first gets all stored events after
        that number. It gets no event twice. The returned function ends the listening."""
        ...

    @property
    def number(self) -> int:
        """Returns the number of the latest stored event."""
        ...

    @property
    def state(self) -> AgentState: ...

    @property
    def questions(self) -> tuple[Question, ...]:
        """Returns the open questions: the conversation's own before those of jobs, then the oldest first."""
        ...

    @property
    def waiting(self) -> tuple[Unheard, ...]:
        """Returns the messages that the model has not heard yet."""
        ...

    @property
    def in_turn(self) -> bool: ...

    @property
    def busy(self) -> bool:
        """Says whether a turn or a command is running that can be interrupted."""
        ...

    def find_files(self, wanted: str, most: int) -> Sequence[str]:
        """Finds files of the work folder by any part of their names, the best first. May be called from another
        thread."""
        ...

    @property
    def commands(self) -> Iterable[CommandInfo]: ...

    async def run_command(self, line: str) -> str:
        """Runs a slash command and returns the lines to show."""
        ...

    async def run_own(self, command: str, is_typed: bool = False) -> int:
        """Runs the user's own command in the user's shell and returns its exit code. Events tell what it prints. If
        `is_typed` is false, a program outside the work folder is preferred to one of the same name in it."""
        ...

    def health_bar(self) -> Phrase:
        """Returns Duckflow's health in one line."""
        ...

    async def context(self) -> Sequence[ContextPart]:
        """Returns the parts of the next request, with the tokens of each."""
        ...

    async def diff(self, turn: int) -> str:
        """Returns the changes that a turn made to files."""
        ...

    @property
    def choices(self) -> ChoicesPort: ...

    @property
    def work(self) -> WorkPort: ...

    @property
    def review(self) -> ReviewPort: ...

    @property
    def sessions(self) -> SessionsPort: ...


class InnerChoices(ChoicesPort, Protocol):
    """The settings, with what only slash commands need: the limit of the cost, and the permissions for later
    actions."""

    @property
    def budget_usd(self) -> float:
        """Returns the limit of the session's cost in dollars; 0 means none."""
        ...

    def permissions(self) -> tuple[tuple[Literal["always", "session"], Phrase], ...]:
        """Returns the rules for later actions, and last the limits of what may be changed unasked."""
        ...

    def usual(self) -> tuple[tuple[Phrase, int], ...]:
        """Returns actions that the user has often allowed without a rule for them, and how often."""
        ...

    def add_usual(self, number: int) -> Phrase:
        """Makes the action with this number in `usual` a lasting rule."""
        ...

    def remove_permission(self, number: int) -> Phrase:
        """Removes the permission or limit with this number in the list of permissions, and returns it."""
        ...


class InnerWork(WorkPort, Protocol):
    """The port of the work, with what only slash commands need, such as dropping the whole plan."""

    async def settle(self) -> None:
        """Waits until no job is in the middle of a task, before the session is left. If the waiting is cancelled, the
        jobs go on as before."""
        ...

    def drop_plan(self, plan: Plan) -> Phrase: ...

    def change_plan(self, plan: Plan) -> None: ...


class InnerSessions(SessionsPort, Protocol):
    """The ways to leave this session, with what only slash commands need: the list of other sessions, and switching to
    one."""

    def all(self) -> Sequence[SessionSummary]: ...

    def switch(self, wanted: str) -> None:
        """Leaves this session for the one with this number in the list, or with an id that begins with this text."""
        ...

    def fork(self) -> None:
        """Leaves this session for a new branch of it."""
        ...

    def new(self) -> None:
        """Leaves this session for a new one."""
        ...


class InnerConversation(Conversation, Protocol):
    """A conversation as slash commands see it. Slash commands run in the conversation's own process, so they can use
    things that cannot be sent over a socket."""

    async def say(
        self, text: str, attachments: Sequence[Attachment] = (), wish: str | None = None, *, read: str | None = None
    ) -> Outcome:
        """Sends a message. `wish` holds the user's own words in the text, where a custom command has written the
        rest."""
        ...

    def record(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Returns the stored events after the number `after`, each with its own number."""
        ...

    def health(self) -> tuple[Phrase, ...]: ...

    def why(self) -> tuple[Phrase, ...]: ...

    @property
    def choices(self) -> InnerChoices: ...

    @property
    def work(self) -> InnerWork: ...

    @property
    def memory(self) -> MemoryPort: ...

    @property
    def undo(self) -> UndoPort: ...

    @property
    def sessions(self) -> InnerSessions: ...
