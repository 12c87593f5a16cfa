"""A worker takes attempts for its machine from the queue and carries them out, as long as its lease holds."""

import asyncio
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from duckflow.errors import LeaseLost, UsageError
from duckflow.fleet.allowance import CallLedger
from duckflow.fleet.claims import Claims, TakenAttempt
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.endings import Endings
from duckflow.fleet.host import end_processes, end_worker, kill_processes
from duckflow.fleet.lease import BEAT, Lease
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.running import RunningAttempt, WorkerStores
from duckflow.fleet.store import FleetStore
from duckflow.fleet.task import AttemptOrder, AttemptReport, CarryOut
from duckflow.fleet.worktree import clone_place, repository_in
from duckflow.state.phrase import said, say

LEASE = 30.0
LEASE_LOOK = 0.25
"""Seconds between two looks at the own lease."""
OTHERS_LOOK = 3.0
"""Seconds between two looks for dead workers."""
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
    """Takes attempts while it has room for them, and carries them out. Its duties run beside each other, so a database
    that does not answer one of them does not keep the others from noticing that the lease has run out."""

    def __init__(self, database: FleetDatabase, carry_out: CarryOut, endings: Endings, workplace: Workplace) -> None:
        self._workplace = workplace
        self._lease = Lease(database, workplace.place, workplace.lease)
        self._claims = Claims(database, self._lease)
        self._store = FleetStore(database)
        self._carry_out = carry_out
        stores = QuestionStore(database), CallLedger(database), endings
        self._stores = WorkerStores(self._lease.worker, *stores, deque())
        self._polling = POLLING_OF_MANY if database.on_many else POLLING
        self._running: dict[str, RunningAttempt] = {}
        """The attempts of this worker, by their claims."""
        self._carrying: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        """Set when an attempt has ended, so that there may be room for another."""
        self._ending: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when this worker ends, with the error that is the reason for it, if there is one."""

    async def work(self, fleet: str) -> None:
        """Works until the fleet has ended, or for ever without one. Raises `LeaseLost` when others may take over."""
        await asyncio.to_thread(self._lease.enter)
        duties = [
            asyncio.create_task(duty) for duty in (self._keep_books(), self._look_after_others(), self._use_room(fleet))
        ]
        for duty in duties:
            duty.add_done_callback(self._end_after)
        try:
            while not self._ending.done():
                await asyncio.wait({self._ending}, timeout=LEASE_LOOK)
                if not self._lease.holds:
                    raise LeaseLost("fleet.lease_lost", worker=self._lease.worker)
            self._ending.result()
        finally:
            self._ending.cancel()
            for duty in duties:
                duty.cancel()
            await self._leave()

    def _end_after(self, task: asyncio.Task[None]) -> None:
        """Ends the worker after this task, with the error of the task."""
        if not (task.cancelled() or self._ending.done()):
            error = task.exception()
            self._ending.set_exception(error) if error else self._ending.set_result(None)

    async def _keep_books(self) -> None:
        """Writes progress and notes of the attempts to the database, and ends attempts that are to end."""
        while True:
            with suppress(SQLAlchemyError):
                if self._running or self._stores.notes:
                    await self._tell()
            await asyncio.sleep(min(BEAT, self._workplace.lease / 6))

    async def _tell(self) -> None:
        attempts, notes = list(self._running.values()), list(self._stores.notes)
        doing_by_claim = {attempt.claim: attempt.doing for attempt in attempts if attempt.doing}
        wanted_by_claim = await asyncio.to_thread(self._claims.record, doing_by_claim, notes)
        for _ in notes:
            self._stores.notes.popleft()
        for attempt in attempts:
            # An attempt that is not ours any more was cancelled by a process that took us for dead.
            if outcome := wanted_by_claim.get(attempt.claim, "cancelled"):
                attempt.end(outcome)

    async def _look_after_others(self) -> None:
        """Goes on for workers that are gone, and settles tasks that nobody has settled."""
        while True:
            with suppress(SQLAlchemyError):
                await asyncio.to_thread(self._claims.look_after_others)
                await asyncio.to_thread(self._stores.endings.settle_left)
            await asyncio.sleep(min(self._workplace.lease / 3, OTHERS_LOOK))

    async def _use_room(self, fleet: str) -> None:
        """Gives free places to attempts that got their answer, then to new ones, until the fleet has ended."""
        while True:
            self._ended.clear()
            with suppress(SQLAlchemyError):
                await self._bring_answers()
                await self._take()
                if fleet and not self._running and await asyncio.to_thread(self._store.has_ended, fleet):
                    return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), self._polling)

    @property
    def _has_room(self) -> bool:
        return sum(attempt.needs_place for attempt in self._running.values()) < self._workplace.at_once

    async def _bring_answers(self) -> None:
        waiting_attempts = {asked_id: attempt for attempt in self._running.values() for asked_id in attempt.waiting}
        answers = (
            await asyncio.to_thread(self._stores.questions.hear, list(waiting_attempts)) if waiting_attempts else {}
        )
        for asked_id, answer in answers.items():
            if self._has_room:
                await asyncio.to_thread(self._stores.questions.heard, asked_id, waiting_attempts[asked_id].claim)
                waiting_attempts[asked_id].hear(asked_id, answer)

    async def _take(self) -> None:
        """Takes attempts while there is room for more."""
        most_attempts = self._workplace.at_once * (1 + MOST_WAITING)
        while self._has_room and len(self._running) < most_attempts:
            taken_attempt = await asyncio.to_thread(self._claims.take)
            if taken_attempt is None:
                return
            running_attempt = self._running[taken_attempt.claim] = RunningAttempt(
                self._order(taken_attempt), taken_attempt.claim, self._stores
            )
            self._carrying.add(carry_task := asyncio.create_task(self._carry(taken_attempt, running_attempt)))
            carry_task.add_done_callback(self._carrying.discard)

    def _order(self, taken: TakenAttempt) -> AttemptOrder:
        repository = Path(self._workplace.repositories, taken.task.repository)
        if taken.task.remote:
            repository = clone_place(taken.task.remote, Path(self._workplace.clones))
        task = taken.task.model_copy(update={"repository": str(repository)})
        order = AttemptOrder(fleet=taken.fleet, task=task, number=taken.number, mend=taken.mend)
        return order.model_copy(update={"go_on": order.branch}) if taken.goes > 1 else order

    async def _carry(self, taken: TakenAttempt, running: RunningAttempt) -> None:
        """Carries an attempt out and stores its report. No report is stored when this worker itself is ending: another
        worker goes on with the attempt then."""
        try:
            report = await self._report(taken, running)
            if not self._ending.done():
                await asyncio.to_thread(self._claims.finish, taken.claim, report)
                await asyncio.to_thread(self._stores.endings.see_to, taken.fleet, taken.task.name)
        except Exception as error:
            if not self._ending.done():
                self._ending.set_exception(error)
        finally:
            del self._running[taken.claim]
            self._ended.set()

    async def _report(self, taken: TakenAttempt, running: RunningAttempt) -> AttemptReport:
        order = running.order
        if taken.before:
            end_worker(*taken.before)
        if taken.goes > 1:
            await end_processes(order.attempt_id)
        try:
            repository_in(self._workplace.repositories, taken.task.remote or taken.task.repository)
        except UsageError as problem:
            return AttemptReport(order=order, outcome="failed", open=said(problem))
        if taken.inherited:
            running.say(say("fleet.goes_on", worker=self._lease.worker))
        return await running.carry_out(self._carry_out)

    async def _leave(self) -> None:
        """Ends everything that runs here; other workers may go on with it."""
        for attempt in self._running.values():
            attempt.end("cancelled")
        if self._carrying:
            await asyncio.wait(self._carrying, timeout=self._workplace.lease * TIDYING_PART)
        for attempt in self._running.values():
            # This waits for no thread: all of them may wait for a database that does not answer.
            kill_processes(attempt.order.attempt_id)
        await asyncio.to_thread(self._lease.stop)
        with suppress(SQLAlchemyError):
            await asyncio.to_thread(self._claims.record, {}, list(self._stores.notes))
            await asyncio.to_thread(self._claims.give_back)
