"""A worker takes attempts for its machine from the queue and carries them out, as long as its lease holds."""

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
from duckflow.fleet.running import AttemptLink, RunningAttempt, Slot, WorkerStores
from duckflow.fleet.store import FleetStore
from duckflow.fleet.task import AttemptOrder, AttemptReport, CarryOut, Note
from duckflow.fleet.worktree import clone_place, repository_in
from duckflow.state.phrase import said, say

BEAT = 1.0
MOST_FAILURES = 5
"""Failures in a row after which a thread gives up and ends the worker."""
LOOK_SECONDS = 3.0
"""Seconds between two looks for dead workers."""
SAFE_PART = 0.75
"""Part of a lease after which a worker that cannot renew it ends its attempts, before others take them."""


Fail = Callable[[Exception], None]
"""A callback that ends the worker. It may be called from any thread."""


class WorkerThread(threading.Thread):
    """Repeats one piece of work until it is stopped. When that keeps failing, it ends the worker: a worker that does
    not hear what others want of it must not go on."""

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
                # The database is away. The worker itself watches how long that may last.
                continue
            except Exception as error:
                failed += 1
                if failed == MOST_FAILURES:
                    self._fail(error)
                    return

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=10)


class LeaseRenewer(WorkerThread):
    """Renews the worker's lease, and does nothing else, so that nothing can delay it."""

    def __init__(self, claims: Claims, fail: Fail) -> None:
        super().__init__("fleet-lease", claims.lease, self._renew, fail)
        self.good_until = time.monotonic() + claims.lease * SAFE_PART
        self._claims = claims

    def _renew(self) -> None:
        began = time.monotonic()
        if self._claims.renew():
            self.good_until = began + self._claims.lease * SAFE_PART
        else:
            self._fail(LeaseLost("fleet.lease_lost", worker=self._claims.worker))
            self._stopped.set()


class WorkerBookkeeper(WorkerThread):
    """Records the progress of a worker's attempts, brings them answers and cancellations, and marks dead workers."""

    def __init__(
        self,
        claims: Claims,
        endings: Endings,
        questions: QuestionStore,
        running: Mapping[str, RunningAttempt],
        notes: deque[Note],
        fail: Fail,
    ) -> None:
        super().__init__("fleet-bookkeeper", claims.lease, self._see_to_all, fail)
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
        """Writes progress and notes of the attempts to the database, and brings answers and cancellations back."""
        running = list(self._running.values())
        notes = list(self._notes)
        doing = {attempt.link.claim: attempt.link.doing for attempt in running if attempt.link.doing}
        ours = self._claims.record(doing, notes)
        for _ in notes:
            self._notes.popleft()
        for attempt in running:
            # An attempt that is not ours any more was cancelled by a process that took us for dead.
            if wanted := ours.get(attempt.link.claim, "cancelled"):
                attempt.end(wanted)
        waiting = {asked_id: attempt for attempt in running for asked_id in list(attempt.link.waiting)}
        if waiting:
            for asked_id, answered in self._questions.hear(list(waiting)).items():
                attempt = waiting[asked_id]
                self._questions.heard(asked_id, attempt.link.claim)
                attempt.do(partial(attempt.link.hear, {asked_id: answered}))

    def _look_after_others(self) -> None:
        self._claims.reap()
        self._endings.settle_left()


LEASE = 30.0
LOOP_SECONDS = 0.25
POLLING, POLLING_OF_MANY = 0.5, 1.0
"""Seconds between two looks for an attempt: in a file, and in a database that many workers use."""
MOST_WAITING = 4
"""Attempts that may wait for a person, as a multiple of those that may run: each is a process and takes memory."""
TIDYING_PART = 0.15
"""Part of a lease in which attempts may end by themselves: less than the part left when a worker gives up."""


class Workplace(NamedTuple):
    """The machine of a worker: its name in the fleets, its limits and its folders."""

    place: str
    at_once: int = 4
    """Attempts that one worker runs at once; those that wait for a person do not count."""
    lease: float = LEASE
    """Seconds after which a worker that does not renew its lease counts as dead."""
    repositories: str = ""
    """Folder of the repositories that a task names without a full path."""
    clones: str = ""
    """Folder for clones of the repositories that a task names by their address."""


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
        self._office = WorkerStores(self.claims.worker, questions, CallLedger(database), endings, deque())
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(workplace.at_once)
        self._carrying: set[asyncio.Task[None]] = set()
        self._polling = POLLING_OF_MANY if database.on_many else POLLING
        self._look = asyncio.Event()
        """Set when an attempt has ended, so that there may be room for another."""
        self._heart = LeaseRenewer(self.claims, self.fail)
        self._clerk = WorkerBookkeeper(self.claims, endings, questions, self._running, self._office.notes, self.fail)

    async def stay(self, fleet: str) -> None:
        """Works until the fleet has ended, or for ever without one, or until the lease is lost."""
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
            # The database is away. The lease limits how long that may last.
            return None
        except LeaseLost:
            self.lose()
            return None

    async def leave(self) -> None:
        """Ends everything that runs here; other workers may go on with it."""
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
        """Ends the worker because its lease is lost: others take it for dead."""
        self.fail(LeaseLost("fleet.lease_lost", worker=self.claims.worker))

    def fail(self, error: Exception) -> None:
        """Ends the worker with this error. It may be called from any thread."""
        self._loop.call_soon_threadsafe(lambda: self.ending.done() or self.ending.set_exception(error))

    def _prepare(self, taken: TakenAttempt, slot: Slot) -> RunningAttempt:
        repository = Path(self.workplace.repositories, taken.task.repository)
        if taken.task.remote:
            repository = clone_place(taken.task.remote, Path(self.workplace.clones))
        task = taken.task.model_copy(update={"repository": str(repository)})
        order = AttemptOrder(fleet=taken.fleet, task=task, number=taken.number, mend=taken.mend)
        if taken.goes > 1:
            order = order.model_copy(update={"go_on": order.branch})
        return RunningAttempt(order, AttemptLink(order, taken.claim, self._office, slot))

    async def _carry(self, taken: TakenAttempt, running: RunningAttempt, slot: Slot) -> None:
        """Carries an attempt out and stores its report. No report is stored when this worker itself is ending: another
        worker goes on with the attempt then."""
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
            running.link.say(say("fleet.goes_on", worker=self.claims.worker))
        return await running.carry_out(self._carry_out)
