"""Before the first message is sent: whether the work folder is trusted, asked once where there is a reason to."""

import asyncio
from collections.abc import Callable, Sequence

from duckflow.agent.trust import FolderTrust
from duckflow.events.ports import Ask, Emit
from duckflow.events.types import Noticed
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Choice, Question


class Admission:
    """Asks when the first turn begins: to look at the folder takes time that the start does not have."""

    def __init__(self, make: Callable[[], FolderTrust], emit: Emit, ask: Ask, wanted: bool) -> None:
        self._make = make
        self._emit = emit
        self._ask = ask
        self.wanted = wanted
        """The user has said on the command line that everything here is to be trusted."""
        self.newly = False
        """It was trusted in this session, by an answer."""
        self.decided = False
        self._refused = False
        self._asking = asyncio.Lock()
        self.trusted = False
        """Programs that the folder brings may run, where mode and sandbox let them."""

    async def admit(self) -> bool:
        """Whether anything may be done here at all."""
        async with self._asking:
            return self.decided or await self._decide()

    async def look_again(self) -> None:
        """What the folder brings may have come meanwhile; a no that was said is not asked for again."""
        if not (self.trusted or self._refused):
            self.decided = False
        await self.admit()

    async def _decide(self) -> bool:
        trust = await asyncio.to_thread(self._make)
        reasons = await asyncio.to_thread(trust.reasons)
        if not reasons or trust.trusted:
            self.trusted = bool(reasons)
            self.decided = True
            return True
        if self.wanted or await self._asked(reasons):
            await asyncio.to_thread(trust.trust)
            self.newly = True
            self.trusted = self.decided = True
            return True
        if trust.must_be_wanted:
            self._emit(Noticed(what=say("trust.not_here")))
            return False
        self._emit(Noticed(what=say("trust.untrusted")))
        self.decided = self._refused = True
        return True

    async def _asked(self, reasons: Sequence[Phrase]) -> bool:
        choices = tuple(Choice(key=key, label=say(f"trust.choice.{key}")) for key in ("trust", "no"))
        question = Question(kind="choice", title=say("trust.question"), details=tuple(reasons), choices=choices)
        return (await self._ask(question)).choice == "trust"
