"""The control room: takes what the user says, runs one turn at a time, can be interrupted."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Literal, NamedTuple

from duckflow.agent.aside import progress_report, wish_in
from duckflow.agent.connection import ModelConnection
from duckflow.agent.gatekeeper import Gatekeeper
from duckflow.agent.jobs import JobRunner
from duckflow.agent.own_deeds import OwnDeeds
from duckflow.agent.pacing import Pacing
from duckflow.agent.policies.plan_answer import PlanApproval
from duckflow.agent.remembering import Remembering
from duckflow.agent.safekeeping import Safekeeping
from duckflow.agent.session import Session
from duckflow.agent.turn import Turn
from duckflow.errors import ToolError
from duckflow.events.ports import Listener
from duckflow.events.types import (
    Event,
    LanguageChosen,
    MessageAdded,
    ModeChosen,
    Noticed,
    Outcome,
    PlanChanged,
    TurnEnded,
)
from duckflow.pacemaker.health import Health
from duckflow.prompts.layers import Layer
from duckflow.prompts.template import note
from duckflow.safety.mode import Mode
from duckflow.safety.permissions import Permissions
from duckflow.state.agent import AgentState
from duckflow.state.message import Message
from duckflow.state.phrase import Phrase, said, say
from duckflow.state.plan import Plan

Control = Literal["pause", "resume", "cancel"]


class Guards(NamedTuple):
    """What stands before a change, what keeps the way back, and what keeps the past."""

    gatekeeper: Gatekeeper
    safekeeping: Safekeeping
    remembering: Remembering


class Work(NamedTuple):
    """What goes on behind the conversation: jobs, the answer to a draft, the models that can be had."""

    jobs: JobRunner
    approval: PlanApproval
    connection: ModelConnection


class ChatLoop:
    """One conversation."""

    def __init__(
        self,
        session: Session,
        turn: Turn,
        guards: Guards,
        pacing: Pacing,
        work: Work,
    ) -> None:
        self.session = session
        self.safekeeping = guards.safekeeping
        self.memory = guards.remembering
        self._turn = turn
        self._gatekeeper = guards.gatekeeper
        self._pacing = pacing
        self.jobs, self._approval, self._connection = work
        self._deeds = OwnDeeds(session)
        self._errands: set[asyncio.Task[Any]] = set()
        self._running: asyncio.Task[Outcome] | None = None
        self._close_open_turn()

    @property
    def state(self) -> AgentState:
        return self.session.state

    @property
    def mode(self) -> Mode:
        return self._gatekeeper.mode

    @property
    def permissions(self) -> Permissions:
        return self._gatekeeper.permissions

    def change_mode(self, mode: Mode) -> None:
        if mode is not self._gatekeeper.mode:
            self._gatekeeper.mode = mode
            self.session.emit(ModeChosen(mode=mode))

    @property
    def budget_usd(self) -> float:
        return self._connection.budget_usd

    async def change_model(self, name: str) -> str:
        return await self._connection.change(name)

    def change_language(self, language: str) -> None:
        self.session.emit(LanguageChosen(language=language))

    def health(self) -> Health:
        return self._pacing.health()

    def why(self) -> tuple[Phrase, ...]:
        return self._pacing.why()

    async def context(self) -> tuple[Layer, ...]:
        """The parts of the next request with their tokens."""
        return await self._turn.weighed()

    def events(self) -> Iterator[Event]:
        return self.session.events()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self.session.subscribe(listener)

    async def say(self, text: str, piped: str = "") -> Outcome:
        """Run a turn to its end. Interrupting it gives `interrupted`; nothing that was done is lost."""
        if (told := self.aside(text)) is not None:
            for phrase in told:
                self.session.emit(Noticed(what=phrase))
            return "done"
        self._deeds.tell()
        return await self._run(self._turn.run(text, piped))

    async def approve_plan(self) -> Outcome:
        """The user's yes to the draft, given by a command: no words are read. A turn begins to carry the plan out."""
        plan = self.state.plan
        if plan is None or plan.status != "draft":
            return "done"
        return await self._run(self._turn.run("", begin=lambda: self._approval.approve(plan)))

    async def _run(self, turn: Coroutine[Any, Any, Outcome]) -> Outcome:
        self.jobs.hold()
        self._running = asyncio.create_task(turn)
        try:
            return await self._running
        except asyncio.CancelledError:
            if not self._running.cancelled():
                raise
            return "interrupted"
        finally:
            self._running = None

    def interrupt(self) -> bool:
        """Stop the running turn at once. Whether there was one."""
        return self._running is not None and self._running.cancel()

    def aside(self, text: str) -> tuple[Phrase, ...] | None:
        """What is said about running work (how far? pause, resume, cancel) is answered at once; else nothing."""
        match wish_in(text, self.state):
            case None:
                return None
            case "progress":
                return progress_report(self.state)
            case wish:
                self.control(wish)
                return ()

    def ran(self, command: str, code: int, output: str, seconds: float) -> None:
        self._deeds.ran(command, code, output, seconds)

    def control(self, wish: Control, job_id: str = "") -> None:
        """Pause, resume or cancel a job; how that went is noticed."""
        errand = asyncio.create_task(self._carry_out(wish, job_id))
        self._errands.add(errand)
        errand.add_done_callback(self._errands.discard)

    def drop_plan(self, plan: Plan) -> None:
        self._approval.drop(plan)

    def change_plan(self, plan: Plan) -> None:
        self.session.emit(PlanChanged(plan=plan))

    async def aclose(self) -> None:
        """Stop the background work; it can be resumed later."""
        await self.jobs.aclose()

    async def _carry_out(self, wish: Control, job_id: str) -> None:
        try:
            match wish:
                case "pause":
                    job, key = await self.jobs.pause(job_id), "job.paused"
                case "resume":
                    job, key = await self.jobs.resume(job_id), "job.resumed"
                case "cancel":
                    job, key = await self.jobs.cancel(job_id), "job.cancelled"
            self.session.emit(Noticed(what=say(key, job=job.name)))
        except ToolError as problem:
            self.session.emit(Noticed(what=said(problem)))

    def _close_open_turn(self) -> None:
        """A session that died in the middle of a turn: the turn is closed and the model will know."""
        state = self.session.state
        if not state.turn_open:
            return
        told = note(state.language, "crashed")
        self.session.emit(MessageAdded(message=Message(role="system", text=told, turn=state.turn)))
        self.session.emit(TurnEnded(turn=state.turn, outcome="interrupted", why=say("turn.crashed")))
