"""A worker takes attempts for its machine from the queue and carries them out, as long as its lease holds."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from duckflow.errors import LeaseLost, UsageError
from duckflow.fleet.claims import Claims
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.endings import Endings
from duckflow.fleet.host import end_processes, kill_processes
from duckflow.fleet.lease import Lease
from duckflow.fleet.running import RunningAttempt
from duckflow.fleet.store import FleetStore
from duckflow.fleet.task import AttemptReport, CarryOut
from duckflow.fleet.worktree import repository_of
from duckflow.state.data import said

LEASE = 30.0
LEASE_LOOK = 0.25
"""Seconds between two checks of this worker's own lease."""
OTHERS_LOOK = 3.0
"""Seconds between two checks for dead workers."""
POLLING, POLLING_OF_MANY = 0.5, 1.0
"""Seconds between two checks for a queued attempt: in a SQLite file, and in a database that many workers use."""
MOST_WAITING = 4
"""The most attempts that may wait for a person, as a multiple of the attempts that may run. Waiting attempts take
memory, too."""
TIDYING_PART = 0.15
"""The part of a lease in which attempts may end by themselves when their worker gives up. It is less than the part of
the lease that is left then."""


class Workplace(NamedTuple):
    """The machine of a worker: its name in the fleets, its limits and its folders."""

    place: str
    at_once: int = 4
    """The most attempts that one worker runs at once; attempts that wait for a person do not count."""
    lease: float = LEASE
    """Seconds after which a worker that does not renew its lease counts as dead."""
    repositories: str = ""
    """The folder of the repositories that a task names without a full path."""
    clones: str = ""
    """The folder for clones of the repositories that a task names by their address."""


class Worker:
    """Takes attempts while it has room for them, and carries them out. Its duties run in parallel, so a database that
    does not answer one duty does not keep the worker from noticing that its lease has run out."""

    def __init__(self, database: FleetDatabase, carry_out: CarryOut, endings: Endings, workplace: Workplace) -> None:
        self._workplace = workplace
        self._lease = Lease(database, workplace.place, workplace.lease)
        self._claims = Claims(database, self._lease)
        self._store = FleetStore(database)
        self._carry_out = carry_out
        self._endings = endings
        self._polling = min(POLLING_OF_MANY if database.on_many else POLLING, workplace.lease / 6)
        self._running: dict[asyncio.Task[None], RunningAttempt] = {}
        self._is_leaving = False

    async def work(self, fleet: str) -> None:
        """Works until the fleet has ended, or for ever without one. Raises `LeaseLost` when others may take over."""
        await asyncio.to_thread(self._lease.enter)
        coroutines = self._watch_lease(), self._look_after_others(), self._use_room(fleet)
        duties = [asyncio.create_task(coroutine) for coroutine in coroutines]
        try:
            ended_duties, _ = await asyncio.wait(duties, return_when=asyncio.FIRST_COMPLETED)
            for duty in ended_duties:
                duty.result()
        finally:
            self._is_leaving = True
            for duty in duties:
                duty.cancel()
            await self._leave()

    async def _watch_lease(self) -> None:
        while True:
            if not self._lease.holds:
                raise LeaseLost("fleet.lease_lost", worker=self._lease.worker)
            await asyncio.sleep(LEASE_LOOK)

    async def _look_after_others(self) -> None:
        while True:
            with suppress(SQLAlchemyError):
                await asyncio.to_thread(self._endings.look_after)
            await asyncio.sleep(min(self._workplace.lease / 3, OTHERS_LOOK))

    async def _use_room(self, fleet: str) -> None:
        """Updates the database again and again until the fleet has ended. Free places go first to attempts that have
        got their answer, then to new attempts."""
        most_attempts = self._workplace.at_once * (1 + MOST_WAITING)
        while True:
            with suppress(SQLAlchemyError):
                await self._keep_books()
                while self._has_room and len(self._running) < most_attempts:
                    if (order := await asyncio.to_thread(self._claims.take)) is None:
                        break
                    attempt = RunningAttempt(order, self._claims, self._endings)
                    self._running[asyncio.create_task(self._carry(attempt))] = attempt
                if fleet and not self._running and await asyncio.to_thread(self._store.has_ended, fleet):
                    return
            pause = asyncio.create_task(asyncio.sleep(self._polling))
            ended_tasks, _ = await asyncio.wait({pause, *self._running}, return_when=asyncio.FIRST_COMPLETED)
            pause.cancel()
            for task in ended_tasks & self._running.keys():
                del self._running[task]
                task.result()

    @property
    def _has_room(self) -> bool:
        return sum(not attempt.waiting for attempt in self._running.values()) < self._workplace.at_once

    async def _keep_books(self) -> None:
        """Writes progress and notes of the attempts to the database, ends attempts that somebody has cancelled, and
        brings answers to attempts for which there is room."""
        attempt_by_id = {attempt.order.attempt_id: attempt for attempt in self._running.values()}
        doing_by_attempt = {attempt_id: attempt.doing for attempt_id, attempt in attempt_by_id.items()}
        outcome_by_attempt = await asyncio.to_thread(self._claims.record, doing_by_attempt)
        asked_ids = [asked_id for attempt in attempt_by_id.values() for asked_id in attempt.waiting]
        answer_by_id = await asyncio.to_thread(self._claims.questions.hear, asked_ids) if asked_ids else {}
        for attempt_id, attempt in attempt_by_id.items():
            # An attempt that this worker does not have any more was cancelled by a process that took this worker for
            # dead.
            if outcome := outcome_by_attempt.get(attempt_id, "cancelled"):
                attempt.end(outcome)
            for asked_id in answer_by_id.keys() & attempt.waiting.keys():
                if self._has_room:
                    attempt.hear(asked_id, answer_by_id[asked_id])

    async def _carry(self, running: RunningAttempt) -> None:
        """Carries an attempt out and stores its report. When this worker itself is leaving, no report is stored,
        because another worker goes on with the attempt."""
        order = running.order
        if order.go > 1:
            await end_processes(order.attempt_id)
        try:
            repository = repository_of(order.task, self._workplace.repositories, Path(self._workplace.clones))
            report = await running.carry_out(self._carry_out, repository)
        except UsageError as problem:
            report = AttemptReport(order=order, outcome="failed", open=said(problem))
        if not self._is_leaving:
            await asyncio.to_thread(self._claims.finish, report)
            await asyncio.to_thread(self._endings.see_to, order.fleet, order.task.name)

    async def _leave(self) -> None:
        """Ends all attempts of this worker; other workers may go on with them."""
        for attempt in self._running.values():
            attempt.end("cancelled")
        if self._running:
            await asyncio.wait(self._running, timeout=self._workplace.lease * TIDYING_PART)
        for task, attempt in self._running.items():
            if not task.done():
                # The worker waits for none of its threads here: all of them may wait for a database that does not
                # answer.
                kill_processes(attempt.order.attempt_id)
        await asyncio.to_thread(self._lease.leave)
        with suppress(SQLAlchemyError):
            await asyncio.to_thread(self._claims.record, {})
