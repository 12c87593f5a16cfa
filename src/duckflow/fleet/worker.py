"""A worker: takes attempts of its machine from the queues and carries them out, as long as its lease holds."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from duckflow.errors import LeaseLost, UsageError
from duckflow.fleet.allowance import CallLedger
from duckflow.fleet.claims import Claims, TakenAttempt
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.endings import Endings
from duckflow.fleet.host import end_processes, end_worker
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.running import FleetDesk, Office, RunningAttempt, Slot
from duckflow.fleet.store import FleetStore
from duckflow.fleet.task import AttemptOrder, AttemptReport, CarryOut, Note
from duckflow.fleet.worktree import clone_place, repository_in
from duckflow.state.phrase import said, say

BEAT = 1.0
MOST_FAILURES = 5
"""One after the other, of the same thing."""
LOOK_SECONDS = 3.0
"""Between two looks after other workers."""
SAFE_PART = 0.75
"""Of a lease: a worker that could not renew it for that long ends what it does, before others begin with it."""


Fail = Callable[[Exception], None]
"""Ends the worker, from any thread."""


class WorkerThread(threading.Thread):
    """Does the same again and again until it is stopped. What keeps failing is told: a worker that does not hear what
    others want of it must not go on."""

    def __init__(self, name: str, lease: float, beat: Callable[[], None], fail: Fail) -> None:
        super().__init__(name=name, daemon=True)
        self._seconds = min(BEAT, lease / 6)
        self._beat = beat
        self._fail = fail
        self._stopped = threading.Event()

    def run(self) -> None:
        failed = 0
        while not self._stopped.wait(self._seconds):
            try:
                self._beat()
                failed = 0
            except SQLAlchemyError:
                # The database is away; how long that may last is watched by the worker.
                continue
            except Exception as error:
                failed += 1
                if failed == MOST_FAILURES:
                    self._fail(error)
                    return

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=10)


class Heart(WorkerThread):
    """Says that the worker lives, and nothing else: nothing must keep it from that."""

    def __init__(self, claims: Claims, fail: Fail) -> None:
        super().__init__("fleet-heart", claims.lease, self._renew, fail)
        self.good_until = time.monotonic() + claims.lease * SAFE_PART
        self._claims = claims

    def _renew(self) -> None:
        began = time.monotonic()
        if self._claims.renew():
            self.good_until = began + self._claims.lease * SAFE_PART
        else:
            self._fail(LeaseLost("fleet.lease_lost", worker=self._claims.worker))
            self._stopped.set()


class Clerk(WorkerThread):
    """Writes down how the attempts of a worker do, brings what others want of them, and looks after other workers."""

    def __init__(
        self,
        claims: Claims,
        endings: Endings,
        questions: QuestionStore,
        running: Mapping[str, RunningAttempt],
        notes: deque[Note],
        fail: Fail,
    ) -> None:
        super().__init__("fleet-clerk", claims.lease, self._see_to_all, fail)
        self._claims = claims
        self._endings = endings
        self._questions = questions
        self._running = running
        self._notes = notes
        self._looked_after = 0.0

    def _see_to_all(self) -> None:
        if self._running or self._notes:
            self._tell()
        if time.monotonic() - self._looked_after > min(self._claims.lease / 3, LOOK_SECONDS):
            self._look_after_others()
            self._looked_after = time.monotonic()

    def _tell(self) -> None:
        """What attempts said goes to the database, what others said about them comes back."""
        running = list(self._running.values())
        notes = list(self._notes)
        ours = self._claims.record({each.desk.claim: each.desk.doing for each in running if each.desk.doing}, notes)
        for _ in notes:
            self._notes.popleft()
        for each in running:
            # One that is not ours any more was cancelled by somebody who took us for dead.
            if wanted := ours.get(each.desk.claim, "cancelled"):
                each.end(wanted)
        waiting = {asked_id: each for each in running for asked_id in list(each.desk.waiting)}
        if waiting:
            for asked_id, answered in self._questions.hear(list(waiting)).items():
                each = waiting[asked_id]
                self._questions.heard(asked_id, each.desk.claim)
                each.do(partial(each.desk.hear, {asked_id: answered}))

    def _look_after_others(self) -> None:
        self._claims.reap()
        self._endings.settle_left()


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
        try:
            repository_in(self.workplace.repositories, taken.task.remote or taken.task.repository)
        except UsageError as problem:
            return AttemptReport(order=order, outcome="failed", open=said(problem))
        if taken.inherited:
            running.desk.say(say("fleet.goes_on", worker=self.claims.worker))
        return await running.carry_out(self._carry_out)
