"""The control room: takes what the user says, runs one turn at a time, can be interrupted."""

import asyncio
from collections.abc import Callable

from duckflow.agent.gatekeeper import Gatekeeper
from duckflow.agent.pacing import Pacing
from duckflow.agent.remembering import Remembering
from duckflow.agent.session import Session
from duckflow.agent.turn import Turn
from duckflow.events.bus import Listener
from duckflow.events.types import LanguageChosen, MessageAdded, Outcome, TurnEnded
from duckflow.pacemaker.health import Health
from duckflow.safety.policy import Mode
from duckflow.state.agent import AgentState
from duckflow.state.message import Message
from duckflow.state.phrase import Phrase, say


class ChatLoop:
    """One conversation."""

    def __init__(
        self, session: Session, turn: Turn, gatekeeper: Gatekeeper, pacing: Pacing, remembering: Remembering
    ) -> None:
        self.session = session
        self.memory = remembering
        self._turn = turn
        self._gatekeeper = gatekeeper
        self._pacing = pacing
        self._running: asyncio.Task[Outcome] | None = None
        self._close_open_turn()

    @property
    def state(self) -> AgentState:
        return self.session.state

    @property
    def mode(self) -> Mode:
        return self._gatekeeper.mode

    def change_mode(self, mode: Mode) -> None:
        self._gatekeeper.mode = mode

    def change_language(self, language: str) -> None:
        self.session.emit(LanguageChosen(language=language))

    def health(self) -> Health:
        return self._pacing.health()

    def why(self) -> tuple[Phrase, ...]:
        return self._pacing.why()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self.session.subscribe(listener)

    async def say(self, text: str) -> Outcome:
        """Run a turn to its end. Interrupting it gives `interrupted`; nothing that was done is lost."""
        self._running = asyncio.create_task(self._turn.run(text))
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

    def _close_open_turn(self) -> None:
        """A session that died in the middle of a turn: the turn is closed and the model will know."""
        state = self.session.state
        if not state.turn_open:
            return
        told = "The turn above was cut off by a crash. Check what is there before going on."
        self.session.emit(MessageAdded(message=Message(role="system", text=told, turn=state.turn)))
        self.session.emit(TurnEnded(turn=state.turn, outcome="interrupted", why=say("turn.crashed")))
