"""The conversation: implements the port through which every front end talks with the program."""

import asyncio
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

from duckflow.agent.duck_answer import Choices
from duckflow.agent.extensions import UserCommands
from duckflow.agent.file_index import FileIndex
from duckflow.agent.line_review import LineReview
from duckflow.agent.memory import ConversationMemory
from duckflow.agent.passed_on import PassedOnWords
from duckflow.agent.questions import Questions
from duckflow.agent.session import Session
from duckflow.agent.turn_pacemaker import TurnPacemaker
from duckflow.agent.turns import Turns
from duckflow.agent.undo import UndoKeeper
from duckflow.errors import Outcome, UsageError
from duckflow.events.ports import Hear, InnerWork
from duckflow.events.talking import ConversationLeft, LineTaken, NowChanged
from duckflow.events.types import Event, MessageAdded, Noticed, PhaseMoved, QuestionAsked, TurnEnded
from duckflow.events.views import (
    Attachment,
    CommandInfo,
    ContextPart,
    Meaning,
    NextSession,
    SessionSummary,
    Taken,
    Unheard,
)
from duckflow.i18n.template import note
from duckflow.i18n.typed import SLASH, means_stop, read_line, restoring
from duckflow.state.agent import AgentState
from duckflow.state.changes import UndoScope
from duckflow.state.data import Phrase, say
from duckflow.state.message import Message
from duckflow.state.phase import Phase
from duckflow.state.question import HIDDEN, Question
from duckflow.store.sessions import Sessions
from duckflow.whole_text import make_whole


class OtherSessions:
    """Lists the other sessions and switches to one of them. The code that builds conversations waits for `over`, and
    then builds the next one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept = Sessions(session.path.parent)
        self._left = asyncio.Event()
        self._next: NextSession | None = None

    def all(self) -> Sequence[SessionSummary]:
        return [entry.summary() for entry in self._kept.all()]

    def switch(self, wanted: str) -> None:
        self._refuse_in_turn()
        entry = self._kept.find(unicodedata.normalize("NFKC", wanted).strip())
        if entry.session_id == self._session.state.session_id:
            raise UsageError("resume.same")
        self._leave_for(NextSession(entry.path))

    def fork(self) -> None:
        self._refuse_in_turn()
        if self._session.state.turn == 0:
            raise UsageError("fork.nothing")
        self._leave_for(NextSession(self._session.path, fork=True))

    def new(self) -> None:
        self._refuse_in_turn()
        self._leave_for(NextSession(self._session.path, new=True))

    def leave(self, detached: bool = False) -> None:
        self._leave_for(NextSession(self._session.path, detached=True) if detached else None)

    async def over(self) -> NextSession | None:
        await self._left.wait()
        return self._next

    def _refuse_in_turn(self) -> None:
        if self._session.state.turn_open:
            raise UsageError("resume.busy")

    def _leave_for(self, other: NextSession | None) -> None:
        if not self._left.is_set():
            self._next = other
            self._left.set()
            destination = "out" if other is None else "detached" if other.detached else "other_session"
            self._session.emit(ConversationLeft(where=destination))


class Moves:
    """Tells its listeners whenever a turn or a command has begun or ended, so that they can look at the state again."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []

    def hear(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def tell(self) -> None:
        for listener in self._listeners:
            listener()


class BackgroundWork(InnerWork, Protocol):
    """The port through which the conversation uses the plan, its jobs and agents. The package `work` implements it."""

    def aside(self, text: str) -> tuple[Phrase, ...] | None:
        """Answers a line about running work immediately. Returns None when the line is about something else."""
        ...

    def pause_first(self, text: str) -> str:
        """Pauses the running jobs if a line begins with words for that. Returns what the line says besides."""
        ...

    async def controlled(self) -> None:
        """Waits until every pause, continuation and cancellation of a job that the user wanted has taken effect."""
        ...

    async def resume_all(self) -> None:
        """Resumes the jobs that were running when the program ended."""
        ...

    def end_cut_off_agents(self) -> str:
        """Ends the agents that were at work when the program ended. Returns what the model is told about them."""
        ...

    async def aclose(self) -> None:
        """Stops every job. The next session can resume them."""
        ...


LAST_WORDS_SECONDS = 2


class ChatLoop:
    """Implements the port `Conversation` for one session: takes what the user types, and passes it to turns, commands
    or jobs."""

    def __init__(
        self,
        session: Session,
        turns: Turns,
        work: BackgroundWork,
        questions: Questions,
        commands: UserCommands,
        choices: Choices,
        pacing: TurnPacemaker,
        memory: ConversationMemory,
        undo: UndoKeeper,
        moves: Moves,
        files: FileIndex,
    ) -> None:
        self.session = session
        self.choices = choices
        self.memory = memory
        self.undo = undo
        self.work = work
        self.sessions = OtherSessions(session)
        self.review = LineReview(session, undo, self.say)
        self._turns = turns
        self._questions = questions
        self._commands = commands
        self._pacing = pacing
        self._files = files
        self._number = session.number
        self._told_now: tuple[object, ...] = ()
        PassedOnWords(session, work.aside, partial(self._hear_message, read=""))
        moves.hear(self._tell_now)
        session.subscribe(self._count)
        self._close_open_turn()

    def take(
        self, line: str, question_id: str | None = "", language: str = "", read: str | None = None
    ) -> asyncio.Future[Taken]:
        line = make_whole(line)
        text, line_meaning = line.strip(), "answer" if question_id else self.reads_as(line)
        replies: tuple[Phrase, ...] = ()
        if question_id and all(question_id != question.question_id for question in self.questions):
            return self.answer(question_id, text)
        if line_meaning == "answer" and not question_id and len(self.questions) > 1:
            return _known(Taken("unclear", (say("question.which"),)))
        if line_meaning == "answer" and question_id is None:
            return _known(Taken("unclear", (say("question.unseen"),)))
        if line_meaning not in ("nothing", "message"):
            secret = line_meaning == "answer" and self._question(question_id or "").hides(text)
            self.session.emit(LineTaken(text=HIDDEN if secret else text))
        match line_meaning:
            case "message" if self.in_turn and means_stop(text, self.state.language):
                # A "stop" that waits for the next call of the model would come too late to stop the running action.
                self.session.emit(LineTaken(text=text))
                unheard_text = self.interrupt()
                replies = (say("turn.unheard", text=unheard_text),) if unheard_text else ()
            case "message":
                self._hear_message(self.work.pause_first(text), read)
            case "answer":
                return self.answer(self._question(question_id or "").question_id, text)
            case "command":
                command = "/" + unicodedata.normalize("NFKC", text[1:])
                self._commands.start(command.split()[0], self._run(command, language))
            case "own_command":
                self._commands.start(text, self._run_own(text[1:].strip()))
            case _:
                replies = self.work.aside(text) or ()
        return _known(Taken(line_meaning, replies))

    def _question(self, question_id: str) -> Question:
        """Returns the open question with this id; without an id the only question that is open."""
        matching_questions = (question for question in self.questions if question.question_id == question_id)
        return next(matching_questions, self.questions[0])

    def reads_as(self, line: str) -> Meaning:
        # The table of commands is made when the first one is looked for.
        commands = self.commands if line.lstrip().startswith(SLASH) else ()
        return read_line(line, self.state, self.questions, commands)

    async def say(
        self, text: str, attachments: Sequence[Attachment] = (), wish: str | None = None, *, read: str | None = None
    ) -> Outcome:
        text = make_whole(text)
        if wish is None and self.state.jobs and (replies := self.work.aside(text)) is not None:
            for phrase in replies:
                self.session.emit(Noticed(what=phrase))
            await self.work.controlled()
            return "done"
        text = self.work.pause_first(text) if wish is None else text
        if wish is None and (command := self._restoring(text)):
            if lines := await self.run_command(command):
                self.session.emit(Noticed(what=say("talk.quoted", text=lines)))
            return "done"
        outcome_future = self._turns.submit(text, attachments, wish=wish, read=read)
        try:
            return await outcome_future
        except asyncio.CancelledError:
            self._turns.interrupt()
            raise

    def queue(self, text: str, read: str | None = None) -> None:
        self._turns.submit(text, later=True, read=read)

    def _hear_message(self, text: str, read: str | None = None) -> None:
        """Gives a message to the model, or restores files if the message asks for nothing else."""
        if command := self._restoring(text):
            self.session.emit(LineTaken(text=text))
            self._commands.start(command.split()[0], self.run_command(command))
        else:
            self._turns.submit(text, read=read)

    def answer(self, question_id: str, text: str = "", choice: str = "") -> asyncio.Future[Taken]:
        return _known(self._questions.answer(question_id, make_whole(text), choice))

    def interrupt(self) -> str:
        self._commands.cancel()
        return self._turns.interrupt()

    def hear(self, listener: Hear, after: int | None = None) -> Callable[[], None]:
        # Events that the listener causes while it catches up are journaled too, and so come in their order.
        while after is not None and after < self._number:
            last_number = self._number
            for number, event in self.record(after):
                if number <= last_number:
                    listener(number, event)
            after = last_number
        return self.session.subscribe(lambda event: listener(self._number if event.journaled else 0, event))

    def record(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        return self.session.record(after)

    @property
    def number(self) -> int:
        return self._number

    @property
    def state(self) -> AgentState:
        return self.session.state

    @property
    def questions(self) -> tuple[Question, ...]:
        return self._questions.open

    @property
    def waiting(self) -> tuple[Unheard, ...]:
        return self._turns.waiting

    @property
    def in_turn(self) -> bool:
        return self._turns.runs

    @property
    def busy(self) -> bool:
        return self._turns.runs or self._commands.runs

    def find_files(self, wanted: str, most: int) -> Sequence[str]:
        return self._files.find(wanted, most)

    @property
    def commands(self) -> Iterable[CommandInfo]:
        return self._commands.table

    async def knows_command(self, line: str) -> bool:
        """Says whether the line is an existing slash command, and not a path or plain text."""
        return line.startswith("/") and await self._commands.table.knows(line)

    async def run_command(self, line: str) -> str:
        return await self._run(line)

    async def _run(self, line: str, language: str = "") -> str:
        return await self._commands.table.run(self, self._questions.ask, line, language)

    async def run_own(self, command: str, is_typed: bool = False) -> int:
        """Runs a shell command of the user's, if the user lets Duckflow work in this folder. `is_typed` is True if the
        user typed the command itself, and not a slash command that makes it."""
        if not await self._turns.admit():
            return 1
        return await self._commands.run_own(command, is_typed)

    def health(self) -> tuple[Phrase, ...]:
        return tuple(self._pacing.health().report())

    def health_bar(self) -> Phrase:
        return self._pacing.health().bar()

    def why(self) -> tuple[Phrase, ...]:
        return self._pacing.why()

    async def context(self) -> tuple[ContextPart, ...]:
        return await self._turns.turn.weighed()

    async def diff(self, turn: int) -> str:
        return (await self.undo.diff(UndoScope(turn=turn))).diff

    async def aclose(self) -> None:
        """Stops everything. Background work can be resumed later."""
        self.interrupt()
        await self._turns.rest(LAST_WORDS_SECONDS)
        await self._commands.rest(LAST_WORDS_SECONDS)
        await self.work.aclose()

    def _restoring(self, text: str) -> str:
        """Returns the command for a line that asks for nothing but an undo, a redo, or the end of the plan. While a
        turn runs, the line goes to the model instead."""
        return "" if self.in_turn else restoring(text, self.state)

    def _count(self, event: Event) -> None:
        """Counts the events in the journal. This listener is subscribed first, so that every other listener finds an
        event's number in the count."""
        self._number += event.journaled
        if event.journaled or isinstance(event, QuestionAsked):
            self._tell_now()
        if isinstance(event, TurnEnded) and event.outcome == "exit":
            self.sessions.leave()

    def _tell_now(self) -> None:
        current_state = (self.in_turn, self.busy, self.waiting, self.health_bar())
        if current_state != self._told_now:
            self._told_now = current_state
            self.session.emit(
                NowChanged(
                    in_turn=current_state[0],
                    busy=current_state[1],
                    waiting=current_state[2],
                    health_bar=current_state[3],
                )
            )

    async def _run_own(self, command: str) -> str:
        await self.run_own(command, is_typed=True)
        return ""

    def _close_open_turn(self) -> None:
        """Closes a turn that was still open when the program died, and tells the model about it."""
        state = self.session.state
        if not state.turn_open:
            return
        crash_note = "\n".join(filter(None, (note(state.language, "crashed"), self.work.end_cut_off_agents())))
        self.session.emit(MessageAdded(message=Message(role="system", text=crash_note, turn=state.turn)))
        if state.phase is Phase.AWAITING_APPROVAL and not (state.plan and state.plan.status == "draft"):
            # The Gate that the phase waited for is gone.
            why = note(state.language, "moved_interrupted")
            self.session.emit(PhaseMoved(source=state.phase, target=Phase.PLANNING, why=why))
        self.session.emit(TurnEnded(turn=state.turn, outcome="interrupted", why=say("turn.crashed")))


def _known(taken: Taken) -> asyncio.Future[Taken]:
    """Returns a future that already has this result."""
    future: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
    future.set_result(taken)
    return future
