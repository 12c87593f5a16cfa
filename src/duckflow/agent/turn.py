"""One turn: beat, think, act, until control goes back to the user."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from duckflow.agent.checks import Checks
from duckflow.agent.dialog import lacks_summary, polite, wants_summary
from duckflow.agent.dispatcher import Dispatched
from duckflow.agent.duck_answer import DuckAnswers, Ending
from duckflow.agent.five_check import checked
from duckflow.agent.owing import Owing, named_files
from duckflow.agent.pacing import Pacing
from duckflow.agent.phases import Phases
from duckflow.agent.session import Session
from duckflow.agent.thinker import Thinker
from duckflow.agent.tryout import TryOut
from duckflow.errors import BudgetSpent, DuckflowError, ProviderRefused, ProviderUnreachable, UsageError
from duckflow.events.types import (
    DecisionMade,
    FiveChanged,
    LoopBegan,
    MessageAdded,
    Noticed,
    Outcome,
    TurnBegan,
    TurnEnded,
)
from duckflow.llm.decision import Reading
from duckflow.pacemaker.interventions import DuckCall, Hint, Replan
from duckflow.prompts.layers import Layer
from duckflow.state.action import PROPOSE_PLAN, Decision
from duckflow.state.message import Message, Role
from duckflow.state.phase import Phase
from duckflow.state.phrase import said, say

RECOVERIES = 3
log = logging.getLogger(__name__)
Opening = tuple[str, Ending | None]


async def no_opening() -> Opening:
    return "", None


class Turn:
    """The loop. It reads like its description: beat, think, dispatch, end?"""

    def __init__(
        self,
        session: Session,
        pacing: Pacing,
        thinker: Thinker,
        dispatcher: TryOut,
        phases: Phases,
        duck: DuckAnswers,
    ) -> None:
        self._session = session
        self._pacing = pacing
        self._thinker = thinker
        self._dispatcher = dispatcher
        self._phases = phases
        self._duck = duck
        self._recoveries = 0
        self._checks = Checks()
        self._owing = Owing("")
        self._wants_summary = False

    async def run(self, text: str, opening: Callable[[], Awaitable[Opening]] = no_opening) -> Outcome:
        """Every way out ends with TurnEnded, so the conversation can always go on. The user may have done something
        (approved a plan) instead of saying it: then there is no text.

        `opening` looks at the message before any model does: it gives a note for the first prompt, or the ending."""
        turn = self._session.state.turn + 1
        self._session.emit(TurnBegan(turn=turn))
        if text:
            self._say("user", text)
        self._pacing.begin(text)
        self._recoveries, self._checks, self._owing = 0, Checks(), Owing(text)
        self._wants_summary = wants_summary(text)
        try:
            note, ending = await opening()
            outcome, why = ending or await self._loop(note)
        except asyncio.CancelledError:
            self._pacing.end("interrupted")
            self._session.emit(TurnEnded(turn=turn, outcome="interrupted", why=say("turn.interrupted")))
            raise
        except DuckflowError as problem:
            outcome, why = _outcome(problem), said(problem)
        except Exception:
            # A mistake of ours must not take the conversation with it.
            log.exception("a turn broke off")
            here = Path(self._session.state.folder).is_dir()
            outcome, why = "failed", say("turn.broke_off" if here else "turn.folder_gone")
        self._pacing.end(outcome)
        self._session.emit(TurnEnded(turn=turn, outcome=outcome, why=why))
        return outcome

    async def weighed(self) -> tuple[Layer, ...]:
        """The parts of the next request with their tokens."""
        return await self._thinker.weighed(self._session.state)

    async def _loop(self, note: str) -> Ending:
        if (await self._thinker.connection.ready_profile()).led and (
            reading := named_files(self._owing, self._session.state)
        ):
            # A small model is spared the question what to read first.
            await self._dispatcher.run(reading)
            self._owing.was_given(reading.decision.actions)
        while True:
            match self._pacing.beat():
                case DuckCall() as call:
                    ending, note = await self._ask(call)
                    if ending:
                        return ending
                case Replan() as advice:
                    self._phases.plan_anew(advice.reason)
                    note = advice.for_model
                case Hint() as advice:
                    note = "\n".join(line for line in (note, advice.for_model) if line)
                case None:
                    pass
            reading = await self._think(note)
            done = await self._dispatcher.run(reading)
            self._pacing.saw(reading.decision, done)
            self._owing.saw(done.results, done.stop == "refused")
            note = _note(reading.decision, done)
            if reading.decision.next_step == "done" and (owed := self._owing.remind()):
                note = owed
                continue
            if self._wants_summary and lacks_summary(reading.decision):
                self._wants_summary, note = (
                    False,
                    "the user wants a summary of your answer: give it in a few lines",
                )
                continue
            if not done.stop and (await self._thinker.connection.ready_profile()).led:
                # A small model would only talk on: when everything is written, or the question is answered, it is done.
                if self._owing.settled:
                    return self._written(self._owing.settled, done)
                if self._owing.only_asks and done.ran("response") and self._phases.finish(all_succeeded=True):
                    return "done", None
            if ending := self._ending(reading.decision, done):
                return ending
            if self._session.state.phase is Phase.REVIEW and reading.decision.next_step == "done":
                note = self._checks.for_review(self._session.state)
            if self._recoveries > RECOVERIES:
                self._recoveries = 0
                ending, note = await self._ask(self._pacing.too_many_errors(RECOVERIES + 1))
                if ending:
                    return ending

    async def _think(self, note: str) -> Reading:
        state = self._session.state
        limit = self._pacing.limit()
        self._session.emit(LoopBegan(turn=state.turn, loop=state.loop + 1, limit=limit))
        reading = await self._thinker.decide(state, limit, note, self._owing)
        reading = replace(reading, decision=polite(reading.decision))
        self._accept(reading)
        return reading

    async def _ask(self, call: DuckCall) -> tuple[Ending | None, str]:
        """Put the Duck Call, and do what was chosen."""
        resolution = await self._pacing.put(call)
        return self._duck.carry_out(call, resolution), resolution.pinned

    def _accept(self, reading: Reading) -> None:
        decision = reading.decision
        wanted = checked(decision.state_delta, self._session.state) if decision.state_delta else None
        self._session.emit(DecisionMade(decision=decision, doubtful=reading.doubtful))
        self._say("assistant", as_said(decision))
        if wanted and (wanted.delta.items() or wanted.delta.decision):
            self._session.emit(FiveChanged(delta=wanted.delta))
        if wanted and wanted.told:
            self._say("system", wanted.told)
        if wanted and wanted.goal_refused:
            self._session.emit(Noticed(what=say("five.refused", goal=wanted.goal_refused)))
        self._phases.follow(decision)

    def _ending(self, decision: Decision, done: Dispatched) -> Ending | None:
        """How the turn ends after this loop, or nothing when it goes on."""
        self._checks.saw(done.results, done.fault)
        match done.stop:
            case "refused":
                self._phases.refused(done.refusal)
                return None if done.refusal else ("gate", say("turn.refused"))
            case "error":
                self._recoveries += self._phases.recover(done.results[-1].for_model)
                return None
            case "question" if done.ran("exit"):
                return "exit", None
            case "question":
                self._phases.wait_for_user()
                return "pending_user", say("plan.ask") if done.ran(PROPOSE_PLAN) else None
            case _:
                return self._said_ending(decision, done)

    def _written(self, files: Sequence[str], done: Dispatched) -> Ending:
        self._checks.saw(done.results, done.fault)
        if not self._phases.finish(self._checks.all_succeeded, self._checks.failed):
            # The review that a failed check calls for has been held: the try-out, and the mends after it.
            self._phases.finish(self._checks.all_succeeded, self._checks.failed)
        tried = "turn.written_tried" if done.tried else "turn.written"
        return "done", None if done.ran("response") else say(tried, files=", ".join(files))

    def _said_ending(self, decision: Decision, done: Dispatched) -> Ending | None:
        silent = not done.ran("response")
        match decision.next_step:
            case "continue":
                return None
            case "done":
                if silent and any(result.ok and not result.changed for result in done.results):
                    # What was just looked up has been seen by nobody yet.
                    return None
                if not self._phases.finish(self._checks.all_succeeded, self._checks.failed):
                    return None
                outcome: Outcome = "done"
            case "defer":
                outcome = "deferred"
            case "pending_user":
                self._phases.wait_for_user()
                outcome = "pending_user"
        return outcome, say("turn.summary", text=decision.rationale) if silent else None

    def _say(self, role: Role, text: str) -> None:
        self._session.emit(MessageAdded(message=Message(role=role, text=text, turn=self._session.state.turn)))


def as_said(decision: Decision) -> str:
    """The Decision as it stands in the conversation: in the order in which the model itself writes it."""
    said = decision.model_dump(mode="json", exclude_none=True)
    said["actions"] = [
        {name: action[name] for name in ("operation", "reasoning", "args")} for action in said["actions"]
    ]
    for name in ("actions", "next_step", "prompt_pattern"):
        said[name] = said.pop(name)
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def _note(decision: Decision, done: Dispatched) -> str:
    """What the next prompt should say of this loop."""
    if objection := decision.objection():
        return f"your check said no ({objection}): change the approach, or ask the user"
    if not decision.actions:
        return "your last Decision had no actions: act, answer with response, or say done"
    if done.fault:
        return f"what you wrote fails when it is tried: {done.fault}: put it right, or tell the user"
    if done.stop == "error":
        return "the last action failed: look at the error and try another way"
    if decision.next_step == "done":
        return "you said done, but the user has not been told the result: use response"
    return ""


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
