"""A worker: takes attempts of its machine from the queues and carries them out, as long as its lease holds."""

import asyncio
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from duckflow.errors import LeaseLost
from duckflow.fleet.allowance import CallLedger
from duckflow.fleet.claims import Claims, TakenAttempt
from duckflow.fleet.clones import clone_place
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.endings import Endings
from duckflow.fleet.heart import Clerk, Heart
from duckflow.fleet.processes import end_processes, end_worker
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.running import FleetDesk, Office, RunningAttempt, Slot
from duckflow.fleet.store import FleetStore
from duckflow.fleet.task import AttemptOrder, AttemptReport, CarryOut
from duckflow.state.phrase import say

LEASE = 30.0
LOOP_SECONDS = 0.25
POLLING, POLLING_OF_MANY = 0.5, 1.0
"""Seconds between two looks for an attempt: in a file, and in a database that many workers look into."""
MOST_WAITING = 4
"""Times as many attempts as may run at once may wait for a person; each of them is a process that takes memory."""
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
    clones: str = ""
    """Where those are cloned to that a task names by their address."""


class Worker:
    """Takes attempts while it has room for them, and carries them out."""

    def __init__(self, database: FleetDatabase, carry_out: CarryOut, endings: Endings, workplace: Workplace) -> None:
        self.workplace = workplace
        self.claims = Claims(database, workplace.place, workplace.lease)
        self._store = FleetStore(database)
        self.endings = endings
        self.ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        questions = QuestionStore(database)
        self._carry_out = carry_out
        self._running: dict[str, RunningAttempt] = {}
        self._office = Office(self.claims.worker, questions, CallLedger(database), endings, deque())
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(workplace.at_once)
        self._carrying: set[asyncio.Task[None]] = set()
        self._polling = POLLING_OF_MANY if database.on_many else POLLING
        self._look = asyncio.Event()
        """An attempt has ended: there may be room for another."""
        self._heart = Heart(self.claims, self.fail)
        self._clerk = Clerk(self.claims, endings, questions, self._running, self._office.notes, self.fail)

    async def stay(self, fleet: str) -> None:
        """Until the fleet has ended, or for ever, or until the lease is lost."""
        self._heart.start()
        self._clerk.start()
        looked = 0.0
        while not self.ending.done():
            await asyncio.wait({self.ending}, timeout=LOOP_SECONDS)
            if time.monotonic() > self._heart.good_until:
                self.lose()
            elif time.monotonic() - looked > self._polling or self._look.is_set():
                self._look.clear()
                looked = time.monotonic()
                await self._fill()
                if fleet and not self._running and await asyncio.to_thread(self._store.has_ended, fleet):
                    return
        self.ending.result()

    async def _fill(self) -> None:
        """Takes attempts while there is room for more."""
        most = self.workplace.at_once * (1 + MOST_WAITING)
        while not (self.ending.done() or self._slots.locked() or len(self._running) >= most):
            slot = Slot(self._slots)
            await slot.take()
            taken = await self._take()
            if taken is None:
                slot.free()
                return
            running = self._running[taken.claim] = self._prepare(taken, slot)
            self._carrying.add(carrying := asyncio.create_task(self._carry(taken, running, slot)))
            carrying.add_done_callback(self._carrying.discard)

    async def _take(self) -> TakenAttempt | None:
        try:
            return await asyncio.to_thread(self.claims.take)
        except SQLAlchemyError:
            # The database is away; how long that may last is watched by the lease.
            return None
        except LeaseLost:
            self.lose()
            return None

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
            await asyncio.to_thread(thread.stop)
        with suppress(Exception):
            await asyncio.to_thread(self.claims.record, {}, list(self._office.notes))
            await asyncio.to_thread(self.claims.leave)

    def lose(self) -> None:
        """Others take us for dead."""
        self.fail(LeaseLost("fleet.lease_lost", worker=self.claims.worker))

    def fail(self, error: Exception) -> None:
        """It cannot go on. From any thread."""
        self._loop.call_soon_threadsafe(lambda: self.ending.done() or self.ending.set_exception(error))

    def _prepare(self, taken: TakenAttempt, slot: Slot) -> RunningAttempt:
        repository = Path(self.workplace.repositories, taken.task.repository)
        if taken.task.remote:
            repository = clone_place(taken.task.remote, Path(self.workplace.clones))
        task = taken.task.model_copy(update={"repository": str(repository)})
        order = AttemptOrder(fleet=taken.fleet, task=task, number=taken.number, mend=taken.mend)
        if taken.goes > 1:
            order = order.model_copy(update={"go_on": order.branch})
        return RunningAttempt(order, FleetDesk(order, taken.claim, self._office, slot))

    async def _carry(self, taken: TakenAttempt, running: RunningAttempt, slot: Slot) -> None:
        """Carries an attempt out and writes down its report. An attempt that ends because this worker does is not
        over: somebody else goes on with it."""
        try:
            report = await self._report(taken, running)
            if not self.ending.done():
                await asyncio.to_thread(self.claims.finish, taken.claim, report)
                await asyncio.to_thread(self.endings.see_to, taken.fleet, taken.task.name)
        except LeaseLost:
            self.lose()
        except Exception as error:
            self.fail(error)
        finally:
            running.ended.set()
            del self._running[taken.claim]
            slot.free()
            self._look.set()

    async def _report(self, taken: TakenAttempt, running: RunningAttempt) -> AttemptReport:
        order = running.order
        if taken.before:
            end_worker(*taken.before)
        if taken.goes > 1:
            await end_processes(order.attempt_id)
        if taken.inherited:
            running.desk.say(say("fleet.goes_on", worker=self.claims.worker))
        return await running.carry_out(self._carry_out)
