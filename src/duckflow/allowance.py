"""Permission for calls to a model that many processes share: another process grants each call, over a socket.

A connection stands for one call. The caller sends `CallWanted` as a line and gets a line: empty if the call is granted,
else the phrase with the reason why not. After the model's reply the caller sends `CallUsed`. If a connection closes
without `CallUsed`, the wanted amount counts as used.
"""

import asyncio
import contextlib

from duckflow.errors import BudgetSpent
from duckflow.state.data import FrozenData, Phrase

ADDRESS = "DUCKFLOW_ALLOWANCE"
"""The environment variable that holds the socket's path. Without it every call may be made."""
LIKELY_REPLY = 4096
"""The assumed tokens of a reply that has no limit."""


class CallWanted(FrozenData):
    """A call to a model that a process asks permission for."""

    model: str
    prompt: int
    """The approximate tokens of the prompt."""
    reply: int = LIKELY_REPLY
    """The most tokens that the reply can have, as far as is known."""
    dollars: float | None = 0.0
    """The least cost of the call; None if no price is known."""

    @property
    def tokens(self) -> int:
        return self.prompt + self.reply


class CallUsed(FrozenData):
    """The tokens and dollars that a call has used in the end."""

    tokens: int
    dollars: float


class CallPermit:
    """Asks at an address for permission for one call, and reports the call's usage."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, wanted: CallWanted) -> None:
        """Waits until the call may be made. Raises BudgetSpent if it may not. A permit serves for one call only."""
        await self.aclose()
        try:
            reader, self._writer = await asyncio.open_unix_connection(self._address)
            self._writer.write(wanted.model_dump_json().encode() + b"\n")
            answer = await reader.readline()
        except OSError:
            answer = b""
        if not answer:
            raise BudgetSpent("budget.nobody_grants")
        if answer.strip():
            refusal = Phrase.model_validate_json(answer)
            raise BudgetSpent(refusal.key, **refusal.values)

    def tell(self, used: CallUsed) -> None:
        if self._writer:
            self._writer.write(used.model_dump_json().encode() + b"\n")

    async def aclose(self) -> None:
        if self._writer:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
            self._writer = None
