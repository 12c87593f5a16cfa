"""Permission for calls to a model that many processes share: another process grants each call, over a socket.

A connection stands for one call. The caller sends `CallWanted` as a line and gets a line: empty if it may call, else
the phrase that says why it may not. After the reply it sends `CallUsed`. If a connection closes without that, the call
counts as having used what was wanted.
"""

import asyncio
import contextlib

from duckflow.errors import BudgetSpent
from duckflow.state.data import FrozenData
from duckflow.state.phrase import Phrase

ADDRESS = "DUCKFLOW_ALLOWANCE"
"""The variable that names the socket. Without it every call may be made."""
LIKELY_REPLY = 4096
"""Tokens of a reply that has no limit of its own."""


class CallWanted(FrozenData):
    """A call that somebody wants to make."""

    model: str
    prompt: int
    """The approximate tokens of the prompt."""
    reply: int = LIKELY_REPLY
    """The most tokens of the reply, as far as is known."""
    dollars: float | None = 0.0
    """The least cost; None if no price is known."""

    @property
    def tokens(self) -> int:
        return self.prompt + self.reply


class CallUsed(FrozenData):
    """The tokens and dollars that a call has used in the end."""

    tokens: int
    dollars: float


class CallPermit:
    """Asks at this address before one call, and tells what it has used."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, wanted: CallWanted) -> None:
        """Waits until the call may be made. Raises BudgetSpent if it may not. A second call must be asked for, too."""
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
