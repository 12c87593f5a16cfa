"""Runs one turn at a time. A message that comes during a turn is given to the model with that turn's next call, or
waits until the turn has ended."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from duckflow.agent.turn import Begin, Turn
from duckflow.errors import Outcome
from duckflow.events.views import Attachment, Unheard


class WaitingMessage(NamedTuple):
    """A message, and the future that its sender waits for. `later` means that the message waits for the end of the
    running turn."""

    text: str
    attachments: tuple[Attachment, ...]
    ended: asyncio.Future[Outcome]
    later: bool
    wish: str
    """The part of the text that the user wrote: all of it, unless a custom command has added the rest."""
    read: str | None
    """The fingerprint of the draft of a plan that the user had read before sending the message. Empty if the user had
    read none, as for a message that came while another turn ran; None if every draft counts as read."""


class Turns:
    """Takes messages in the order in which they came, and runs the turns for them."""

    def __init__(
        self,
        turn: Turn,
        admit: Callable[[], Awaitable[bool]],
        before: Callable[[], None],
        moved: Callable[[], None],
    ) -> None:
        """`admit` says before each turn whether Duckflow may work in this folder; then `before` is called. `moved` is
        called when a turn has begun or ended, or the waiting messages have changed."""
        self.turn = turn
        self.admit = admit
        self._before = before
        self._moved = moved
        self._waiting: list[WaitingMessage] = []
        self._unadmitted = ""
        """The text of the next turn, kept while the user is asked whether Duckflow may work in this folder."""
        self._deeds: list[tuple[Begin, asyncio.Future[Outcome]]] = []
        self._running: asyncio.Task[Outcome] | None = None
        self._waiters: list[asyncio.Future[Outcome]] = []

    @property
    def runs(self) -> bool:
        return self._running is not None

    @property
    def waiting(self) -> tuple[Unheard, ...]:
        unadmitted_messages = (Unheard(self._unadmitted, later=False),) if self._unadmitted else ()
        return (*unadmitted_messages, *(Unheard(message.text, message.later) for message in self._waiting))

    def submit(
        self,
        text: str,
        attachments: Sequence[Attachment] = (),
        later: bool = False,
        wish: str | None = None,
        read: str | None = None,
    ) -> asyncio.Future[Outcome]:
        """Starts a turn, or gives the message to the running one. Returns how the turn that takes the message ends.
        With `later`, with an attachment, or if a custom command has written it, the message waits for a turn of its
        own."""
        outcome_future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        later = later or bool(attachments) or wish is not None
        wish = text if wish is None else wish
        read = "" if self.runs else read
        self._waiting.append(WaitingMessage(text, tuple(attachments), outcome_future, later, wish, read))
        if not self.runs:
            self._next()
        self._moved()
        return outcome_future

    def begin(self, deed: Begin) -> asyncio.Future[Outcome]:
        """Begins a turn with something that the user has done, such as approving a plan, instead of with a message."""
        outcome_future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._deeds.append((deed, outcome_future))
        if not self.runs:
            self._next()
        self._moved()
        return outcome_future

    def interrupt(self) -> str:
        """Stops the running turn immediately. Returns the texts that were waiting."""
        unheard_text = "\n".join(message.text for message in self.waiting)
        messages, self._waiting = self._waiting, []
        deeds, self._deeds = self._deeds, []
        _settle([*(outcome for _, outcome in deeds), *(message.ended for message in messages)], "interrupted")
        if self._running:
            self._running.cancel()
        self._moved()
        return unheard_text

    async def rest(self, seconds: float) -> None:
        """Waits until the running turn has ended, but not longer than this many seconds."""
        if self._running:
            await asyncio.wait([self._running], timeout=seconds)

    def _next(self) -> None:
        if self._deeds:
            deed, outcome = self._deeds.pop(0)
            self._start("", self.turn.run("", (), self._said_meanwhile, deed), [outcome])
            return
        messages, self._waiting = self._waiting, []
        text = "\n".join(message.text for message in messages)
        attachments = [attachment for message in messages for attachment in message.attachments]
        wish = "\n".join(message.wish for message in messages)
        drafts_read = {message.read for message in messages}
        read = drafts_read.pop() if len(drafts_read) == 1 else ""
        work = self.turn.run(text, attachments, self._said_meanwhile, None, wish, read)
        self._start(text, work, [message.ended for message in messages])

    def _said_meanwhile(self) -> str:
        """Returns the waiting messages that go to the running turn now. Their senders then wait for the end of that
        turn."""
        messages = [message for message in self._waiting if not message.later]
        self._waiting = [message for message in self._waiting if message.later]
        self._waiters += [message.ended for message in messages]
        self._moved()
        return "\n".join(message.text for message in messages)

    def _start(self, text: str, work: Coroutine[Any, Any, Outcome], waiters: list[asyncio.Future[Outcome]]) -> None:
        self._before()
        self._waiters = waiters
        self._running = asyncio.create_task(self._admitted(text, work))
        self._running.add_done_callback(self._ended)

    async def _admitted(self, text: str, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        self._unadmitted = text
        try:
            is_admitted = await self.admit()
            self._unadmitted = ""
            return await work if is_admitted else "interrupted"
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
