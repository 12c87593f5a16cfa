"""Which model answers, changed while the conversation goes on, and what all of them may cost."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from duckflow.agent.calls import Caller, Connected
from duckflow.agent.session import Session


@dataclass(frozen=True, slots=True)
class Models:
    """`connect` finds the model of a name; `budget_usd` is 0 without a limit."""

    session: Session
    caller: Caller
    connect: Callable[[str], Awaitable[Connected]]
    budget_usd: float = 0.0

    async def change(self, name: str) -> str:
        """The new model's full name; one that cannot be used raises, and the old one stays."""
        connected = await self.connect(name)
        await self.caller.change(connected)
        state = self.session.state
        if not state.turn_open and not state.live_jobs():
            await self.caller.close_left()
        return connected.provider.model
