"""A worker's claims: the lease that it renews while it lives, and the attempts that it has taken under it.

An attempt belongs to the claim of one worker. Another may take it only when that worker is marked dead, which happens
when its lease has run out. From then on all reports of the dead worker are ignored.
"""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, cycle
from typing import Any, NamedTuple, cast

import sqlalchemy as sa

from duckflow.errors import LeaseLost
from duckflow.fleet.allowance import end_calls
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.engine import LIVE
from duckflow.fleet.host import born_at, has_gone, this_machine
from duckflow.fleet.questions import close_questions
from duckflow.fleet.store import ENDED_TASKS, read_limits, write_notes
from duckflow.fleet.tables import ATTEMPTS, CALLS, FLEETS, TASKS, WORKERS
from duckflow.fleet.task import AttemptOutcome, AttemptReport, FleetTask, Note, read_row
from duckflow.state.phrase import say

PAGE = 50
PATIENCE_WITH_PLACES = 2
"""Number of leases that a machine may be without a worker before other machines of the fleet get its tasks."""

OF_TASK = (TASKS.c.fleet == ATTEMPTS.c.fleet) & (TASKS.c.name == ATTEMPTS.c.task)
HELD = (ATTEMPTS.c.state == "running") & ~WORKERS.c.dead
"""Condition that a living worker carries the attempt out."""


def attempts_to_take(place: str) -> sa.Select[Any]:
    """Selects attempts of a machine that nobody carries out: new ones, and those whose worker is dead."""
    free = (ATTEMPTS.c.state == "queued") | ((ATTEMPTS.c.state == "running") & WORKERS.c.dead)
    chosen = sa.select(ATTEMPTS, TASKS.c.task.label("task_json"), TASKS.c.model, TASKS.c.after)
    chosen = chosen.join(TASKS, OF_TASK).join(FLEETS, FLEETS.c.fleet == ATTEMPTS.c.fleet)
    chosen = chosen.outerjoin(WORKERS, WORKERS.c.worker == ATTEMPTS.c.worker)
    return chosen.where(TASKS.c.place == place, free).order_by(
        TASKS.c.priority.desc(), FLEETS.c.started, TASKS.c.position, ATTEMPTS.c.number
    )


def next_attempt(connection: sa.Connection, place: str) -> sa.Row[Any] | None:
    """Returns the next attempt that limits and order allow. The caller must hold the lock `TAKING`."""
    held = _held_by_model(connection)
    full = [
        limit
        for limit in read_limits(connection)
        if limit.at_once and sum(count for model, count in held.items() if limit.covers(model)) >= limit.at_once
    ]
    for page in count():
        rows = connection.execute(attempts_to_take(place).limit(PAGE).offset(page * PAGE)).all()
        for row in rows:
            if not any(limit.covers(row.model) for limit in full) and not _waits(connection, row):
                return row
        if len(rows) < PAGE:
            break
    return None


def _waits(connection: sa.Connection, attempt: sa.Row[Any]) -> bool:
    """Says whether the attempt waits for a task that must be done before."""
    if not attempt.after:
        return False
    others = sa.select(TASKS.c.name).where(TASKS.c.fleet == attempt.fleet, TASKS.c.name.in_(attempt.after))
    return connection.execute(others.where(TASKS.c.state.notin_(("done", "merged"))).limit(1)).first() is not None


def _held_by_model(connection: sa.Connection) -> dict[str, int]:
    counted = sa.select(TASKS.c.model, sa.func.count().label("attempts")).join(ATTEMPTS, OF_TASK)
    counted = counted.outerjoin(WORKERS, WORKERS.c.worker == ATTEMPTS.c.worker).where(HELD).group_by(TASKS.c.model)
    return {row.model: row.attempts for row in connection.execute(counted)}


def move_forsaken(connection: sa.Connection, now: float, lease: float) -> None:
    """Gives the tasks of machines that have no worker to other machines of their fleet."""
    last_seen: dict[str, float] = {}
    living: set[str] = set()
    for row in connection.execute(sa.select(WORKERS.c.place, WORKERS.c.until, WORKERS.c.dead)):
        last_seen[row.place] = max(last_seen.get(row.place, 0.0), row.until)
        living |= set() if row.dead else {row.place}
    open_tasks = sa.select(TASKS.c.fleet, TASKS.c.name, TASKS.c.place, FLEETS.c.places, FLEETS.c.started)
    open_tasks = open_tasks.join(FLEETS, FLEETS.c.fleet == TASKS.c.fleet)
    open_tasks = open_tasks.where(TASKS.c.state.notin_(ENDED_TASKS), TASKS.c.place.notin_(living))
    targets: dict[str, Iterator[str]] = {}
    for row in connection.execute(open_tasks).all():
        others = [place for place in cast("list[str]", row.places) if place in living]
        gone_for = now - last_seen.get(row.place, float(row.started))
        if others and gone_for > lease * PATIENCE_WITH_PLACES:
            target = next(targets.setdefault(row.fleet, cycle(others)))
            this = (TASKS.c.fleet == row.fleet) & (TASKS.c.name == row.name)
            connection.execute(sa.update(TASKS).where(this).values(place=target))


TAKING = 2026_2205
"""The database lock under which attempts are taken, because limits count the attempts of others."""
MOST_GOES = 10
"""Number of times an attempt is begun at most. If its workers keep dying, the attempt itself may kill them."""


class WorkerProcess(NamedTuple):
    """The process of a worker, running or not."""

    machine: str
    pid: int
    born: str


class TakenAttempt(NamedTuple):
    """An attempt that this worker has just taken."""

    claim: str
    fleet: str
    number: int
    task: FleetTask
    goes: int
    mend: str
    inherited: bool
    """Another worker was carrying it out and died."""
    before: WorkerProcess | None
    """The process that had it before, if it may still exist: its lease ran out, but it is only stopped or stuck."""


class Claims:
    """The lease and the claims of one worker."""

    def __init__(self, database: FleetDatabase, place: str, lease: float) -> None:
        self._database = database
        self.place = place
        self.lease = lease
        self.worker = f"{place}-{os.getpid()}-{secrets.token_hex(3)}"
        self._own = WORKERS.c.worker == self.worker

    def enter(self) -> None:
        pid = os.getpid()
        row = {"worker": self.worker, "place": self.place, "machine": this_machine(), "pid": pid, "born": born_at(pid)}

        def change(connection: sa.Connection) -> None:
            if connection.execute(sa.select(WORKERS.c.worker).where(self._own)).first() is None:
                now = self._database.now(connection)
                connection.execute(sa.insert(WORKERS).values(**row, until=now + self.lease, seen=now))

        self._database.do(change)

    def renew(self) -> bool:
        """Renews the lease, and says whether this worker still counts as alive."""

        def change(connection: sa.Connection) -> int:
            now = self._database.now(connection)
            alive = sa.update(WORKERS).where(self._own, ~WORKERS.c.dead)
            return connection.execute(alive.values(until=now + self.lease, seen=now)).rowcount

        return bool(self._database.do(change, patience=0, urgent=True))

    def leave(self) -> None:
        """Marks this worker as gone, so that others need not wait until its lease has run out."""
        gone = sa.update(WORKERS).where(self._own).values(dead=True, pid=0)
        self._database.do(lambda connection: connection.execute(gone), patience=self.lease / 4)

    def take(self) -> TakenAttempt | None:
        """Takes the next attempt that may run on this machine, or returns None."""
        claim = secrets.token_hex(8)

        def change(connection: sa.Connection) -> TakenAttempt | None:
            if connection.execute(sa.select(WORKERS.c.dead).where(self._own)).scalar_one():
                raise LeaseLost("fleet.lease_lost", worker=self.worker)
            self._database.one_at_a_time(connection, TAKING)
            now = self._database.now(connection)
            row = next_attempt(connection, self.place)
            if row is None:
                return None
            mine = _this(row.fleet, row.task, row.number)
            change_it = sa.update(ATTEMPTS).where(mine)
            if row.wanted or row.goes >= MOST_GOES:
                connection.execute(change_it.values(state=row.wanted or "failed", ended=now))
                close_questions(connection, row.fleet, row.task, row.number)
                return None
            values = {"worker": self.worker, "claim": claim, "goes": row.goes + 1, "state": "running", "doing": ""}
            times = {"started": row.started or now, "taken": now}
            connection.execute(change_it.values(**values, **times))
            begun = (TASKS.c.fleet == row.fleet) & (TASKS.c.name == row.task) & (TASKS.c.state == "waiting")
            connection.execute(sa.update(TASKS).where(begun).values(state="running"))
            before = self._holder(connection, row)
            task = self._on_top(connection, row.fleet, read_row(FleetTask, row.task_json))
            return TakenAttempt(
                claim, row.fleet, row.number, task, row.goes + 1, row.mend, row.state == "running", before
            )

        if not self._database.read(attempts_to_take(self.place).limit(1), patience=0):
            return None
        return self._database.do(change, patience=0)

    def _on_top(self, connection: sa.Connection, fleet: str, task: FleetTask) -> FleetTask:
        """Returns the task with a new base if it waited for another in its repository: the result of that one."""
        picked = (ATTEMPTS.c.number == TASKS.c.picked) & (ATTEMPTS.c.task == TASKS.c.name)
        rows = sa.select(ATTEMPTS.c.report).join(TASKS, (ATTEMPTS.c.fleet == TASKS.c.fleet) & picked)
        rows = rows.where(TASKS.c.fleet == fleet, TASKS.c.name.in_(task.after))
        reports = [read_row(AttemptReport, text) for text in connection.execute(rows).scalars() if text]
        same = [report for report in reports if _origin(report.order.task) == _origin(task)]
        return task.model_copy(update={"base": same[0].commit}) if len(same) == 1 and same[0].commit else task

    def _holder(self, connection: sa.Connection, attempt: sa.Row[Any]) -> WorkerProcess | None:
        """Returns the process of the dead worker that had the attempt, if it may still exist, and logs the death."""
        chosen = sa.select(WORKERS).where(WORKERS.c.worker == attempt.worker)
        if (dead := connection.execute(chosen).one_or_none()) is None:
            return None
        died = Note(attempt.fleet, attempt.task, attempt.number, say("fleet.worker_died", worker=dead.worker))
        write_notes(self._database, connection, [died])
        return self._process_of(connection, dead)

    def _process_of(self, connection: sa.Connection, dead: sa.Row[Any]) -> WorkerProcess | None:
        """Returns the process of a dead worker; None if it left in order, or lives on as another worker."""
        process = WorkerProcess(dead.machine, dead.pid, dead.born)
        same = (WORKERS.c.machine == dead.machine) & (WORKERS.c.pid == dead.pid) & (WORKERS.c.born == dead.born)
        anew = connection.execute(sa.select(WORKERS.c.worker).where(same, ~WORKERS.c.dead)).first()
        return process if dead.pid and not anew else None

    def finish(self, claim: str, report: AttemptReport) -> None:
        """Stores the report of an attempt. Raises LeaseLost if it is not ours any more and was not cancelled either."""
        order = report.order
        this = _this(order.fleet, order.task.name, order.number)
        mine = this & (ATTEMPTS.c.claim == claim)
        cancelled = sa.select(ATTEMPTS.c.number).where(this, ATTEMPTS.c.claim.is_(None), ATTEMPTS.c.state.notin_(LIVE))

        def change(connection: sa.Connection) -> bool:
            now = self._database.now(connection)
            values = {"state": report.outcome, "ended": now, "doing": "", "wanted": ""}
            called = (CALLS.c.fleet == order.fleet) & (CALLS.c.task == order.task.name)
            end_calls(connection, called & (CALLS.c.attempt == order.number), now)
            if order.mend and not report.passed:
                # Its earlier result is still on its branch, so it counts as done as before.
                values |= {"state": "done"}
                why = (report.open or say("fleet.stopped"), say("fleet.mend_failed"))
                notes = [Note(order.fleet, order.task.name, order.number, phrase) for phrase in why]
                write_notes(self._database, connection, notes)
            else:
                ((cost, tokens),) = connection.execute(sa.select(ATTEMPTS.c.cost_usd, ATTEMPTS.c.tokens).where(this))
                values |= {"report": report.model_copy(update={"cost_usd": cost, "tokens": tokens}).model_dump_json()}
            changed = sa.update(ATTEMPTS).where(mine).values(**values)
            close_questions(connection, order.fleet, order.task.name, order.number)
            return bool(connection.execute(changed).rowcount or connection.execute(cancelled).first())

        if not self._database.do(change):
            raise LeaseLost("fleet.lease_lost", worker=self.worker)

    def record(self, doing: Mapping[str, str], notes: Sequence[Note]) -> dict[str, AttemptOutcome | None]:
        """Stores the progress of our attempts. Returns the claims that are still ours, each with the outcome that
        somebody wants for it, if it is to end."""

        def change(connection: sa.Connection) -> dict[str, AttemptOutcome | None]:
            for claim, word in doing.items():
                mine = (ATTEMPTS.c.claim == claim) & (ATTEMPTS.c.worker == self.worker)
                connection.execute(sa.update(ATTEMPTS).where(mine).values(doing=word))
            write_notes(self._database, connection, notes)
            ours = sa.select(ATTEMPTS.c.claim, ATTEMPTS.c.wanted).where(ATTEMPTS.c.worker == self.worker)
            return {
                row.claim: row.wanted or None for row in connection.execute(ours.where(ATTEMPTS.c.state == "running"))
            }

        return self._database.do(change, patience=0)

    def reap(self) -> None:
        """Marks workers as dead whose lease has run out, or whose process on this machine is gone. From then on others
        may take their attempts."""

        def change(connection: sa.Connection) -> None:
            now = self._database.now(connection)
            others = connection.execute(sa.select(WORKERS).where(~WORKERS.c.dead, ~self._own)).all()
            gone = [row.worker for row in others if row.until < now or has_gone(row.machine, row.pid, row.born)]
            if gone:
                connection.execute(sa.update(WORKERS).where(WORKERS.c.worker.in_(gone)).values(dead=True))
            dead = sa.select(WORKERS.c.worker).where(WORKERS.c.dead)
            end_calls(connection, CALLS.c.worker.in_(dead), now)
            move_forsaken(connection, now, self.lease)

        self._database.do(change, patience=0)


def _origin(task: FleetTask) -> str:
    return task.remote or task.repository


def _this(fleet: str, task: str, number: int) -> sa.ColumnElement[bool]:
    return (ATTEMPTS.c.fleet == fleet) & (ATTEMPTS.c.task == task) & (ATTEMPTS.c.number == number)
