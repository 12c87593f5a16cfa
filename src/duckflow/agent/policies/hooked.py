"""Runs hooks around a turn: they hear the user's messages, may end the turn, and may send the model back to work."""

from duckflow.agent.hooks import Hooks
from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.agent.session import Session
from duckflow.events.types import Noticed
from duckflow.state.data import Phrase, say

MOST_RETURNS = 5


class Hooked(Policy):
    """Runs the hooks UserPromptSubmit and Stop, and obeys `continue: false` of any hook."""

    def __init__(self, session: Session, hooks: Hooks) -> None:
        self._session = session
        self._hooks = hooks
        self._returns = 0
        self._context = ""

    async def objection(self, message: str) -> Phrase | None:
        if not self._hooks.there_are("UserPromptSubmit"):
            return None
        reply = await self._hooks.tell("UserPromptSubmit", {"prompt": message})
        if reply.decision == "deny" or reply.stops:
            return say("hook.prompt_refused", reason=reply.reason)
        self._context = reply.context
        return None

    async def opening(self, turn: TurnSoFar) -> Ending | None:
        self._returns, self._hooks.stopped = 0, ""
        await self.heard(turn.request)
        return None

    async def heard(self, message: str) -> None:
        self._hooks.bring("UserPromptSubmit", self._context)
        self._context = ""

    async def after(self, turn: TurnSoFar) -> Ending | None:
        return self._end()

    async def ending(self, turn: TurnSoFar, ending: Ending) -> str | None:
        if not self._hooks.there_are("Stop") or ending.outcome == "exit" or not ending.well:
            return None
        answers = [result.said for loop in turn.loops for result in loop.done.results if result.said]
        details = {"stop_hook_active": self._returns > 0, "last_assistant_message": answers[-1] if answers else ""}
        reply = await self._hooks.tell("Stop", details)
        if reply.decision != "deny" or reply.stops:
            return None
        if self._returns >= MOST_RETURNS:
            self._session.emit(Noticed(what=say("hook.no_end", count=MOST_RETURNS)))
            return None
        self._returns += 1
        self._session.emit(Noticed(what=say("hook.goes_on", reason=reply.reason)))
        return turn.note("hook_goes_on", reason=reply.reason)

    def _end(self) -> Ending | None:
        return Ending("gate", say("hook.stopped", reason=self._hooks.stopped)) if self._hooks.stopped else None
