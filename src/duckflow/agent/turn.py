"""One turn: think, decide, act, until control goes back to the user."""

import asyncio

from duckflow.agent.dispatcher import Dispatched, Dispatcher
from duckflow.agent.phases import Phases
from duckflow.agent.session import Session
from duckflow.agent.settings import AgentSettings
from duckflow.agent.thinker import Thinker
from duckflow.errors import BudgetSpent, DuckflowError, ProviderRefused, ProviderUnreachable, UsageError
from duckflow.events.types import DecisionMade, FiveChanged, LoopBegan, MessageAdded, Outcome, TurnBegan, TurnEnded
from duckflow.llm.decision import Reading
from duckflow.state.action import Decision
from duckflow.state.message import Message
from duckflow.state.phrase import Phrase, said, say


class Turn:
    """The loop. It reads like its description in the design: beat, think, dispatch, end?"""

    def __init__(
        self, session: Session, thinker: Thinker, dispatcher: Dispatcher, phases: Phases, settings: AgentSettings
    ) -> None:
        self._session = session
        self._thinker = thinker
        self._dispatcher = dispatcher
        self._phases = phases
        self._settings = settings
        self._recoveries = 0
        self._all_succeeded = True

    async def run(self, text: str) -> Outcome:
        """Every way out ends with TurnEnded, so the conversation can always go on."""
        turn = self._session.state.turn + 1
        self._session.emit(TurnBegan(turn=turn))
        self._say("user", text)
        self._recoveries, self._all_succeeded = 0, True
        try:
            outcome, why = await self._loop()
        except asyncio.CancelledError:
            self._session.emit(TurnEnded(turn=turn, outcome="interrupted", why=say("turn.interrupted")))
            raise
        except DuckflowError as problem:
            outcome, why = _outcome(problem), said(problem)
        self._session.emit(TurnEnded(turn=turn, outcome=outcome, why=why))
        return outcome

    async def _loop(self) -> tuple[Outcome, Phrase | None]:
        state, limit = self._session.state, self._settings.max_loops
        note = ""
        while True:
            if state.loop >= limit:
                return "pacemaker", say("turn.loop_limit", limit=limit)
            self._session.emit(LoopBegan(turn=state.turn, loop=state.loop + 1, limit=limit))
            reading = await self._thinker.decide(state, limit, note)
            self._accept(reading)
            done = await self._dispatcher.run(reading)
            if ending := self._ending(reading.decision, done):
                return ending
            note = self._note(reading.decision, done)

    def _accept(self, reading: Reading) -> None:
        decision = reading.decision
        self._session.emit(DecisionMade(decision=decision, doubtful=reading.doubtful))
        self._say("assistant", as_said(decision))
        if decision.state_delta and (decision.state_delta.items() or decision.state_delta.decision):
            self._session.emit(FiveChanged(delta=decision.state_delta))
        self._phases.follow(decision)

    def _ending(self, decision: Decision, done: Dispatched) -> tuple[Outcome, Phrase | None] | None:
        """How the turn ends after this loop, or nothing when it goes on."""
        if any(result.changed for result in done.results):
            self._all_succeeded = True
        self._all_succeeded &= all(result.ok for result in done.results)
        match done.stop:
            case "refused":
                self._phases.refused(done.refusal)
                return None if done.refusal else ("gate", say("turn.refused"))
            case "error":
                if self._phases.recover(done.results[-1].for_model):
                    self._recoveries += 1
                if self._recoveries > self._settings.error_recoveries:
                    return "pacemaker", say("turn.too_many_errors", count=self._recoveries)
                return None
            case "question" if done.ran("exit"):
                return "exit", None
            case "question":
                self._phases.wait_for_user()
                return "pending_user", None
            case _:
                return self._said_ending(decision, done)

    def _said_ending(self, decision: Decision, done: Dispatched) -> tuple[Outcome, Phrase | None] | None:
        silent = not done.ran("response")
        match decision.next_step:
            case "continue":
                return None
            case "done":
                if silent and any(result.ok and not result.changed for result in done.results):
                    # What was just looked up has been seen by nobody yet.
                    return None
                if not self._phases.finish(self._all_succeeded):
                    return None
                outcome: Outcome = "done"
            case "defer":
                outcome = "deferred"
            case "pending_user":
                self._phases.wait_for_user()
                outcome = "pending_user"
        return outcome, say("turn.summary", text=decision.rationale) if silent else None

    def _note(self, decision: Decision, done: Dispatched) -> str:
        if objection := decision.objection():
            return f"your check said no ({objection}): change the approach, or ask the user"
        if not decision.actions:
            return "your last Decision had no actions: act, answer with response, or say done"
        if done.stop == "error":
            return "the last action failed: look at the error and try another way"
        if decision.next_step == "done":
            return "you said done, but the user has not been told the result: use response"
        return ""

    def _say(self, role: str, text: str) -> None:
        message = Message.model_validate({"role": role, "text": text, "turn": self._session.state.turn})
        self._session.emit(MessageAdded(message=message))


def as_said(decision: Decision) -> str:
    """The Decision as it stands in the conversation: what the model itself would have written."""
    return decision.model_dump_json(exclude={"actions": {"__all__": {"action_id"}}}, exclude_none=True)


def _outcome(problem: DuckflowError) -> Outcome:
    match problem:
        case ProviderUnreachable() | ProviderRefused():
            return "provider"
        case BudgetSpent():
            return "budget"
        case UsageError():
            return "usage"
        case _:
            return "failed"
