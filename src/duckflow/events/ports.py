"""The ports of the agent: `Emit` and `Ask` lead out of it, `Conversation` leads in. Front ends know only it.

Everything that crosses is text, plain values and events with numbers, so that a front end may sit in another process.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Literal, Protocol

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
from duckflow.outcome import Outcome
from duckflow.state.agent import AgentState
from duckflow.state.changes import DiffSide, Hunk, LineComment
from duckflow.state.phrase import Phrase
from duckflow.state.plan import Plan
from duckflow.state.question import Answer, Question

Listener = Callable[[Event], None]


class Emit(Protocol):
    """Tell the outside, and the state, that something happened."""

    def __call__(self, event: Event) -> None: ...


class Ask(Protocol):
    """Put a question to the person and wait for the answer."""

    async def __call__(self, question: Question) -> Answer: ...


Hear = Callable[[int, Event], None]
"""Called with every event and its number in the journal; one that is not kept has the number 0."""


class CommandTable(Protocol):
    """Every slash command; they act on the conversation and give back the lines to show."""

    def __iter__(self) -> Iterator[CommandInfo]: ...

    async def knows(self, line: str) -> bool:
        """Whether the line begins with one of them; those that come and go are looked for."""
        ...

    async def run(self, conversation: "InnerConversation", ask: Ask, line: str, language: str = "") -> str: ...


class ChoicesPort(Protocol):
    """What the user may choose while it runs."""

    @property
    def mode(self) -> str: ...

    @property
    def modes(self) -> Sequence[str]:
        """Those that can be chosen."""
        ...

    def change_mode(self, mode: str) -> None: ...

    async def change_model(self, name: str) -> str:
        """The new model's full name; the old one stays when it cannot be used."""
        ...

    def change_language(self, language: str) -> None: ...

    def rename(self, title: str) -> None:
        """The user's own title for the session."""
        ...


class WorkPort(Protocol):
    """The plan, its jobs, and the agents that were handed a task."""

    def control(self, wish: JobWish, job_id: str = "") -> None:
        """Pause, resume or cancel a job; how that went is told by an event."""
        ...

    async def jobs_over(self, alone: bool = False) -> None:
        """Returns when no job runs; a paused one does not. `alone`: nobody is there who could resume a paused job, so
        it is cancelled."""
        ...

    async def stop_agent(self, agent_id: str) -> None:
        """End one agent that runs; the model gets its report so far. Raises a UsageError for one that does not run."""
        ...

    async def tell_agent(self, agent_id: str, text: str) -> None:
        """Say something to one agent that runs: it hears that before its next request."""
        ...

    def approve_plan(self) -> Awaitable[Outcome]:
        """Carry out the draft plan. It can be waited for until the turn that this begins has ended."""
        ...


class ReviewPort(Protocol):
    """The user looks through what a turn or a job has changed. Comments, marks and what was taken back stand in the
    state: `comments`, `reviewed`, `taken_back` (docs/review.md)."""

    async def hunks(self, turn: int = 0, job: str = "") -> Sequence[Hunk]:
        """The changes of a turn or a job that stand; of the latest work where none is named."""
        ...

    async def comment(
        self, turn: int, path: str, line: int, text: str, side: DiffSide = "new", job: str = ""
    ) -> LineComment:
        """Keep a comment on a line of these hunks until `send`."""
        ...

    def drop(self, comment_id: str) -> None: ...

    def mark(self, hunk_id: str, reviewed: bool = True) -> None: ...

    async def take_back(self, turn: int, path: str, hunk_id: str = "", job: str = "") -> Phrase:
        """A hunk, or without one all changes of the file. `put_back` brings a hunk back, `/redo` a file."""
        ...

    async def put_back(self, hunk_id: str) -> Phrase: ...

    async def send(self, text: str = "") -> Outcome:
        """All comments as one message, after `text`; until the turn that hears it has ended."""
        ...


class SessionsPort(Protocol):
    """The way out of this session."""

    def leave(self, detached: bool = False) -> None:
        """For good; or `detached`, and the jobs go on in a process of their own."""
        ...

    async def over(self) -> NextSession | None:
        """Until the conversation has been left; where to go on, if anywhere."""
        ...


class Conversation(Protocol):
    """One conversation on one session, as every front end sees it, in this process or over a socket: what is read here
    is known at once, and what is done can be waited for. What cannot be done raises a DuckflowError."""

    def take(self, line: str, question_id: str | None = "", language: str = "") -> Awaitable[Taken]:
        """A line as people type it: the answer to the first open question, a `/command`, a `!command`, a word about
        running work, or a message. It is carried out in the background; what comes of it is told by events.
        `question_id`: the question that it was typed for, and no other; None where whoever typed it had none in sight,
        so that it answers none. `language`: that of whoever typed it, in which a command answers, else the
        session's."""
        ...

    def reads_as(self, line: str) -> Meaning:
        """What `take` would take it for."""
        ...

    async def say(self, text: str, attachments: Sequence[Attachment] = ()) -> Outcome:
        """A message, until the turn that hears it has ended. While one runs it steers: the model is given it before
        its next call, marked as said meanwhile."""
        ...

    def queue(self, text: str) -> None:
        """A message that does not steer: it waits for the end of the running turn. At rest it is said at once."""
        ...

    def answer(self, question_id: str, text: str = "", choice: str = "") -> Awaitable[Taken]:
        """Answer an open question by the key of a choice (`text` says more), or by words that are read as typed. The
        first answer counts."""
        ...

    def interrupt(self) -> str:
        """Stop the turn and the commands. Gives back what was not heard yet."""
        ...

    def hear(self, listener: Hear, after: int | None = None) -> Callable[[], None]:
        """Every event from now on; with a number first all that were kept after it, none left out, none twice. The
        function given back ends it."""
        ...

    @property
    def number(self) -> int:
        """Of the latest event on record."""
        ...

    @property
    def state(self) -> AgentState: ...

    @property
    def questions(self) -> tuple[Question, ...]:
        """The open ones: the conversation's own before those of jobs, then the oldest first."""
        ...

    @property
    def waiting(self) -> tuple[Unheard, ...]:
        """Messages that the model has not heard yet."""
        ...

    @property
    def in_turn(self) -> bool: ...

    @property
    def busy(self) -> bool:
        """Whether a turn or a command runs that can be interrupted."""
        ...

    def find_files(self, wanted: str, most: int) -> Sequence[str]:
        """Files of the work folder by any part of their names, the best first. May be called from another thread."""
        ...

    @property
    def commands(self) -> Iterable[CommandInfo]: ...

    async def run_command(self, line: str) -> str:
        """A slash command; the lines to show."""
        ...

    async def run_own(self, command: str) -> int:
        """A command of the user's own in the user's shell; its exit code. What it prints is told by events."""
        ...

    def health_bar(self) -> Phrase:
        """How it is, in one line."""
        ...

    async def context(self) -> Sequence[ContextPart]:
        """What the next request is made of."""
        ...

    async def diff(self, turn: int) -> str:
        """What a turn did to files."""
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
    """Also what is allowed for longer than once."""

    @property
    def budget_usd(self) -> float:
        """0 without a limit."""
        ...

    def permissions(self) -> tuple[tuple[Literal["always", "session"], Phrase], ...]: ...

    def usual(self) -> tuple[tuple[Phrase, int], ...]:
        """What the user usually allows without its being a rule, and how often they have."""
        ...

    def add_usual(self, number: int) -> Phrase:
        """Make one of these a rule that stays, by its number."""
        ...

    def remove_permission(self, number: int) -> Phrase:
        """By its number in the list; the rule that is gone."""
        ...


class InnerWork(WorkPort, Protocol):
    """Also the plan as a whole."""

    async def settle(self) -> None:
        """Before leaving: until no job is in the middle of a task. Cancelled, the jobs go on as before."""
        ...

    def drop_plan(self, plan: Plan) -> Phrase: ...

    def change_plan(self, plan: Plan) -> None: ...


class InnerSessions(SessionsPort, Protocol):
    """Also the other sessions there are."""

    def all(self) -> Sequence[SessionSummary]: ...

    def switch(self, wanted: str) -> None:
        """Leave for the session with this number in the list, or with an id that begins so."""
        ...

    def fork(self) -> None:
        """Leave for a branch of this session."""
        ...

    def new(self) -> None:
        """Leave for a new one."""
        ...


class InnerConversation(Conversation, Protocol):
    """A conversation as slash commands see it, which run in its own process: with what no socket carries."""

    async def say(self, text: str, attachments: Sequence[Attachment] = (), wish: str | None = None) -> Outcome:
        """`wish`: the user's own words in the text, where a custom command has written the rest."""
        ...

    def record(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """What was kept, with its numbers."""
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
