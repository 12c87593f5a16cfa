"""One turn at a time: what is said while one runs is heard before its next call of the model, or after its end."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from duckflow.agent.turn import Begin, Turn
from duckflow.events.views import Attachment, Unheard
from duckflow.outcome import Outcome


class WaitingMessage(NamedTuple):
    """What was said, and who waits for the end of its turn. `later`: not before the running one is over."""

    text: str
    attachments: tuple[Attachment, ...]
    ended: asyncio.Future[Outcome]
    later: bool
    wish: str
    """The user's own words in the text: all of it, unless a custom command has written the rest."""


class Turns:
    """Runs the messages in the order they came."""

    def __init__(
        self,
        turn: Turn,
        admit: Callable[[], Awaitable[bool]],
        before: Callable[[], None],
        moved: Callable[[], None],
    ) -> None:
        """`admit` is asked before each turn whether anything may be done here, then `before` is called. `moved` is
        called when a turn has begun or ended, or what waits has changed."""
        self.turn = turn
        self.admit = admit
        self._before = before
        self._moved = moved
        self._waiting: list[WaitingMessage] = []
        self._unadmitted = ""
        """What the next turn begins with, while it is asked whether anything may be done here."""
        self._deeds: list[tuple[Begin, asyncio.Future[Outcome]]] = []
        self._running: asyncio.Task[Outcome] | None = None
        self._waiters: list[asyncio.Future[Outcome]] = []

    @property
    def runs(self) -> bool:
        return self._running is not None

    @property
    def waiting(self) -> tuple[Unheard, ...]:
        first = (Unheard(self._unadmitted, later=False),) if self._unadmitted else ()
        return (*first, *(Unheard(one.text, one.later) for one in self._waiting))

    def submit(
        self, text: str, attachments: Sequence[Attachment] = (), later: bool = False, wish: str | None = None
    ) -> asyncio.Future[Outcome]:
        """Start a turn, or steer the running one: how the turn ends that hears it. `later`, with an attachment, or
        written by a custom command, it waits for a turn of its own."""
        ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        later = later or bool(attachments) or wish is not None
        self._waiting.append(WaitingMessage(text, tuple(attachments), ended, later, text if wish is None else wish))
        if not self.runs:
            self._next()
        self._moved()
        return ended

    def begin(self, deed: Begin) -> asyncio.Future[Outcome]:
        """A turn that begins with something the user has done instead of a message."""
        ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._deeds.append((deed, ended))
        if not self.runs:
            self._next()
        self._moved()
        return ended

    def interrupt(self) -> str:
        """Stop the running turn at once. Gives back what was waiting."""
        unheard = "\n".join(one.text for one in self.waiting)
        waiting, self._waiting = self._waiting, []
        deeds, self._deeds = self._deeds, []
        _settle([*(ended for _, ended in deeds), *(one.ended for one in waiting)], "interrupted")
        if self._running:
            self._running.cancel()
        self._moved()
        return unheard

    async def rest(self, seconds: float) -> None:
        """Until the running turn has ended, but not for ever."""
        if self._running:
            await asyncio.wait([self._running], timeout=seconds)

    def _next(self) -> None:
        if self._deeds:
            deed, ended = self._deeds.pop(0)
            self._start("", self.turn.run("", (), self._said_meanwhile, deed), [ended])
            return
        said, self._waiting = self._waiting, []
        text = "\n".join(one.text for one in said)
        attachments = [attachment for one in said for attachment in one.attachments]
        wish = "\n".join(one.wish for one in said)
        work = self.turn.run(text, attachments, self._said_meanwhile, None, wish)
        self._start(text, work, [one.ended for one in said])

    def _said_meanwhile(self) -> str:
        """What the running turn should hear now; whoever said it waits for its end."""
        said = [one for one in self._waiting if not one.later]
        self._waiting = [one for one in self._waiting if one.later]
        self._waiters += [one.ended for one in said]
        self._moved()
        return "\n".join(one.text for one in said)

    def _start(self, text: str, work: Coroutine[Any, Any, Outcome], waiters: list[asyncio.Future[Outcome]]) -> None:
        self._before()
        self._waiters = waiters
        self._running = asyncio.create_task(self._admitted(text, work))
        self._running.add_done_callback(self._ended)

    async def _admitted(self, text: str, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        self._unadmitted = text
        try:
            admitted = await self.admit()
            self._unadmitted = ""
            return await work if admitted else "interrupted"
        finally:
            self._unadmitted = ""
            work.close()

    def _ended(self, turn: asyncio.Task[Outcome]) -> None:
        self._running = None
        problem = None if turn.cancelled() else turn.exception()
        outcome = "interrupted" if turn.cancelled() or problem else turn.result()
        _settle(self._waiters, outcome, problem)
        if (self._waiting or self._deeds) and outcome != "exit":
            self._next()
        self._moved()


def _settle(waiters: list[asyncio.Future[Outcome]], outcome: Outcome, problem: BaseException | None = None) -> None:
    for waiter in waiters:
        if waiter.done():
            continue
        if problem:
            waiter.set_exception(problem)
        else:
            waiter.set_result(outcome)
