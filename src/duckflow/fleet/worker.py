"""A worker: takes attempts of its machine from the queues and carries them out, as long as its lease holds."""

import asyncio
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import LeaseLost
from duckflow.fleet.claims import Claims, HeldElsewhere, Note, TakenAttempt
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.endings import Endings
from duckflow.fleet.heart import Clerk, HandOn, Heart
from duckflow.fleet.processes import end_processes, end_worker
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.running import FleetDesk, RunningAttempt, Slot
from duckflow.fleet.store import FleetStore
from duckflow.fleet.task import AttemptOrder, AttemptReport, CarryOut
from duckflow.state.phrase import say

LEASE = 30.0
TIDYING_PART = 0.15
"""Of a lease, for what runs to end by itself: less than what is left of it when a worker gives up."""


class Workplace(NamedTuple):
    """The machine of a worker, as it is known to the fleets."""

    place: str
    at_once: int = 4
    """Attempts, in one worker; those that wait for a person are not counted."""
    lease: float = LEASE
    """Seconds after which a worker that says nothing counts as dead."""
    repositories: str = ""
    """Where repositories lie that a task names without a full path."""


class Worker:
    """What the workflows call: everything that is done here and not in the database."""

    def __init__(self, database: FleetDatabase, carry_out: CarryOut, endings: Endings, workplace: Workplace) -> None:
        self.workplace = workplace
        self.claims = Claims(database, workplace.place, workplace.lease)
        self.store = FleetStore(database)
        self.endings = endings
        self.ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._questions = QuestionStore(database)
        self._carry_out = carry_out
        self._running: dict[str, RunningAttempt] = {}
        self._notes: deque[Note] = deque()
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(workplace.at_once)
        self._heart: Heart | None = None
        self._clerk: Clerk | None = None

    def live(self, hand_on: HandOn) -> None:
        """From here on others count on us."""
        self._heart = Heart(self.claims, self.fail)
        self._heart.start()
        self._clerk = Clerk(self.claims, self.endings, self._questions, self._running, self._notes, hand_on, self.fail)
        self._clerk.start()

    async def stay(self, fleet: str) -> None:
        """Until the fleet has ended, or for ever, or until the lease is lost."""
        assert self._heart is not None
        looked = 0.0
        while not self.ending.done():
            await asyncio.wait({self.ending}, timeout=0.25)
            if time.monotonic() > self._heart.good_until:
                self.lose()
            if fleet and time.monotonic() - looked > 1:
                looked = time.monotonic()
                if await asyncio.to_thread(self.store.has_ended, fleet):
                    return
        self.ending.result()

    async def leave(self) -> None:
        """End everything that runs here; others may go on with it."""
        if not self.ending.done():
            self.ending.set_result(None)
        for running in list(self._running.values()):
            running.end("cancelled")
        ends = [asyncio.create_task(running.ended.wait()) for running in self._running.values()]
        if ends:
            await asyncio.wait(ends, timeout=self.workplace.lease * TIDYING_PART)
        for running in list(self._running.values()):
            await end_processes(running.order.attempt_id)
        for thread in (self._clerk, self._heart):
            if thread is not None:
                await asyncio.to_thread(thread.stop)
        with suppress(Exception):
            await asyncio.to_thread(self.claims.record, {}, list(self._notes))
            await asyncio.to_thread(self.claims.leave)

    def lose(self) -> None:
        """Others take us for dead."""
        self.fail(LeaseLost("fleet.lease_lost", worker=self.claims.worker))

    def fail(self, error: Exception) -> None:
        """It cannot go on. From any thread."""
        self._loop.call_soon_threadsafe(lambda: self.ending.done() or self.ending.set_exception(error))

    async def carry(self, fleet: str, task: str, number: int) -> None:
        """One attempt, from taking it to its report. Does not come back when this worker is ending: then the attempt
        is not over, and somebody else goes on with it."""
        try:
            if (taken := await self._take(fleet, task, number)) is None:
                return
            report = await self._carry_taken(fleet, number, taken)
            if not self.ending.done():
                await asyncio.to_thread(self.claims.finish, taken.claim, report)
                return
        except LeaseLost:
            self.lose()
        await asyncio.Future[None]()

    async def _take(self, fleet: str, task: str, number: int) -> TakenAttempt | None:
        while True:
            taken = await asyncio.to_thread(self.claims.take, fleet, task, number)
            if not isinstance(taken, HeldElsewhere):
                return taken
            await asyncio.sleep(self.workplace.lease / 6)

    async def _carry_taken(self, fleet: str, number: int, taken: TakenAttempt) -> AttemptReport:
        task = taken.task.model_copy(
            update={"repository": str(Path(self.workplace.repositories, taken.task.repository))}
        )
        order = AttemptOrder(fleet=fleet, task=task, number=number, mend=taken.mend)
        if taken.goes > 1:
            order = order.model_copy(update={"go_on": order.branch})
        slot = Slot(self._slots)
        desk = FleetDesk(order, taken.claim, self._questions, self._notes, slot)
        if taken.before:
            end_worker(*taken.before)
        if taken.goes > 1:
            await end_processes(order.attempt_id)
            desk.say(say("fleet.goes_on", worker=self.claims.worker))
        running = RunningAttempt(order, desk)
        if over := await asyncio.to_thread(self.claims.overspent, fleet, task):
            await asyncio.to_thread(self.endings.cancel, fleet, task.name if over == "task" else "", 0, "budget")
            desk.say(say("fleet.budget_spent", what=over))
            return AttemptReport(order=order, outcome="budget", rating=0)
        await slot.take()
        self._running[taken.claim] = running
        try:
            return await running.carry_out(self._carry_out)
        finally:
            del self._running[taken.claim]
            slot.free()
