"""Records which worker carries out an attempt. An attempt is queued, or it runs under the name of one worker.

A worker takes a queued attempt by writing its name into the row. It may change only running attempts under its own
name. When a worker is dead, `recover` puts its attempts back into the queue, so all later reports of that worker are
ignored. No other function puts attempts back.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from duckflow.fleet.allowance import CallLedger, end_calls
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.host import end_worker
from duckflow.fleet.lease import DEAD, Lease, bury
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.store import read_limits, write_notes
from duckflow.fleet.tables import ATTEMPTS, CALLS, FLEETS, OF_TASK, TASKS, WORKERS, attempt_row, task_row
from duckflow.fleet.task import (
    AttemptOrder,
    AttemptOutcome,
    AttemptReport,
    FleetTask,
    Note,
    id_of_attempt,
    read_row,
)
from duckflow.state.data import say

TAKING = 2026_2205
"""The database lock under which attempts are taken. It is needed because limits count the attempts of other workers."""
PAGE = 50
PATIENCE_WITH_PLACES = 3
"""A machine that shows no sign of life for this many leases loses its tasks to the other machines of the fleet."""
MOST_GOES = 10
"""The most times that an attempt is begun. If its workers keep dying, the attempt itself may kill them."""
WAITS = (ATTEMPTS.c.state == "queued") & (ATTEMPTS.c.wanted == "")


def recover(database: FleetDatabase, connection: sa.Connection) -> list[str]:
    """Puts the attempts of dead workers back into the queue. Ends queued attempts that somebody wants to end or whose
    workers keep dying, and returns the ids of those that had been begun: their processes may still run."""
    now = database.now(connection)
    bury(connection, now)
    end_calls(connection, CALLS.c.worker.in_(DEAD), now)
    is_of_dead_worker = (ATTEMPTS.c.state == "running") & ATTEMPTS.c.worker.in_(DEAD)
    wanted_outcome = sa.case(
        (ATTEMPTS.c.wanted != "", ATTEMPTS.c.wanted), (ATTEMPTS.c.goes >= MOST_GOES, "failed"), else_=""
    )
    # The row keeps the name of the dead worker, because the worker's process may have to be ended first.
    requeue_update = sa.update(ATTEMPTS).where(is_of_dead_worker).values(state="queued", wanted=wanted_outcome)
    for row in connection.execute(requeue_update.returning(*ATTEMPTS.c)).all():
        phrases = [say("fleet.worker_died", worker=row.worker)]
        phrases += [say("fleet.most_goes", count=row.goes)] if row.wanted == "failed" else []
        write_notes(database, connection, [Note(row.fleet, row.task, row.number, phrase) for phrase in phrases])
    end = sa.update(ATTEMPTS).where(ATTEMPTS.c.state == "queued", ATTEMPTS.c.wanted != "")
    end = end.values(state=ATTEMPTS.c.wanted, ended=now).returning(*ATTEMPTS.c)
    return [id_of_attempt(row.fleet, row.task, row.number) for row in connection.execute(end).all() if row.worker]


class Claims:
    """The attempts of one worker: takes them from the queue, records their progress, and stores their reports."""

    def __init__(self, database: FleetDatabase, lease: Lease) -> None:
        self._database = database
        self._lease = lease
        self._is_own = (ATTEMPTS.c.worker == lease.worker) & (ATTEMPTS.c.state == "running")
        self.questions = QuestionStore(database)
        self.calls = CallLedger(database, lease.worker)
        self.notes: deque[Note] = deque()
        """Log lines that have yet to be written to the database."""

    def take(self) -> AttemptOrder | None:
        """Takes the next attempt that may run on this machine, or returns None."""

        def change(connection: sa.Connection) -> AttemptOrder | None:
            self._database.one_at_a_time(connection, TAKING)
            attempt_and_task, now = self._next(connection), self._database.now(connection)
            if attempt_and_task is None:
                return None
            row, task = attempt_and_task
            lives = sa.select(WORKERS.c.worker).where(WORKERS.c.worker == self._lease.worker, WORKERS.c.until > now)
            take_query = sa.update(ATTEMPTS).where(attempt_row(row.fleet, row.task, row.number), WAITS, lives.exists())
            claim_values = {"worker": self._lease.worker, "goes": row.goes + 1, "taken": now}
            if not connection.execute(take_query.values(state="running", doing="", **claim_values)).rowcount:
                return None
            connection.execute(sa.update(TASKS).where(task_row(row.fleet, row.task)).values(place=self._lease.place))
            if row.worker:
                # The attempt's worker is dead, but the worker's process may still exist, stopped or stuck.
                end_worker(row.machine, row.pid, row.born)
                note = Note(row.fleet, row.task, row.number, say("fleet.goes_on", worker=self._lease.worker))
                write_notes(self._database, connection, [note])
            return AttemptOrder(fleet=row.fleet, task=task, number=row.number, go=row.goes + 1, mend=row.mend)

        return self._database.do(change, patience=0) if self._database.read(self._queued().limit(1), 0) else None

    def finish(self, report: AttemptReport) -> None:
        """Stores the report of an attempt. The report is ignored if another worker has the attempt by now."""
        order = report.order
        attempt = order.fleet, order.task.name, order.number
        ended_values = {"state": str(report.outcome), "report": report.model_dump_json()}
        if order.mend and not report.passed:
            # The attempt's earlier result is still on its branch, so the attempt still counts as done.
            ended_values = {"state": "done"}
            phrases = report.open or say("fleet.stopped"), say("fleet.mend_failed")
            self.notes.extend(Note(*attempt, phrase) for phrase in phrases)

        def change(connection: sa.Connection) -> None:
            now = self._database.now(connection)
            end_update = sa.update(ATTEMPTS).where(attempt_row(*attempt), self._is_own)
            if connection.execute(end_update.values(**ended_values, ended=now)).rowcount:
                call_keys = sa.tuple_(CALLS.c.fleet, CALLS.c.task, CALLS.c.attempt)
                end_calls(connection, call_keys == attempt, now)

        self._database.do(change)

    def record(self, doing: Mapping[str, str]) -> dict[str, AttemptOutcome | None]:
        """Stores log lines, and the progress of this worker's attempts by their ids. Returns the attempts that the
        worker still has, each with the outcome that a person wants it to end with, or None."""
        notes = list(self.notes)

        def change(connection: sa.Connection) -> dict[str, AttemptOutcome | None]:
            write_notes(self._database, connection, notes)
            rows = connection.execute(sa.select(ATTEMPTS).where(self._is_own)).all()
            outcomes: dict[str, AttemptOutcome | None] = {}
            for row in rows:
                attempt_id = id_of_attempt(row.fleet, row.task, row.number)
                outcomes[attempt_id] = row.wanted or None
                # An attempt that this process does not know was taken while the database went away. The attempt is put
                # back.
                attempt_values = {"doing": doing[attempt_id]} if attempt_id in doing else {"state": "queued"}
                is_this_attempt = attempt_row(row.fleet, row.task, row.number)
                connection.execute(sa.update(ATTEMPTS).where(is_this_attempt, self._is_own).values(attempt_values))
            return outcomes

        outcomes = self._database.do(change, patience=0)
        for _ in notes:
            self.notes.popleft()
        return outcomes

    def _queued(self) -> sa.Select[Any]:
        """Selects the queued attempts of this machine in the order in which they are to be begun, and after them the
        attempts of machines that have had no worker for a while."""
        place, long_ago = self._lease.place, self._database.clock - self._lease.seconds * PATIENCE_WITH_PLACES
        is_here = TASKS.c.place == place
        recently_seen_places = sa.select(WORKERS.c.place).where(WORKERS.c.seen > long_ago)
        is_at_lost_place = TASKS.c.place.notin_(recently_seen_places) & (FLEETS.c.started < long_ago)
        of_tasks = TASKS.c.task.label("task_json"), TASKS.c.model, TASKS.c.after, TASKS.c.place, FLEETS.c.places
        query = sa.select(ATTEMPTS, *of_tasks, WORKERS.c.machine, WORKERS.c.pid, WORKERS.c.born).join(TASKS, OF_TASK)
        query = query.join(FLEETS, FLEETS.c.fleet == ATTEMPTS.c.fleet)
        query = query.outerjoin(WORKERS, WORKERS.c.worker == ATTEMPTS.c.worker).where(WAITS, is_here | is_at_lost_place)
        queue_order = TASKS.c.priority.desc(), FLEETS.c.started, TASKS.c.position, ATTEMPTS.c.number
        return query.order_by(is_here.desc(), *queue_order)

    def _next(self, connection: sa.Connection) -> tuple[sa.Row[Any], FleetTask] | None:
        """Returns the next attempt that limits and needed tasks allow, and its task with the base to start from. The
        caller must hold the lock `TAKING`."""
        running = sa.select(TASKS.c.model).join(ATTEMPTS, OF_TASK).where(ATTEMPTS.c.state == "running")
        models, limits = connection.execute(running).scalars().all(), read_limits(connection)
        full_limits = [limit for limit in limits if limit.at_once and sum(map(limit.covers, models)) >= limit.at_once]
        with connection.execute(self._queued().execution_options(yield_per=PAGE)) as rows:
            for row in rows:
                is_for_us = self._lease.place in (row.place, *row.places)
                is_limited = any(limit.covers(row.model) for limit in full_limits)
                needed_tasks = _needed_tasks(connection, row) if row.after and is_for_us and not is_limited else ()
                waits_for_task = any(needed_task.state not in ("done", "merged") for needed_task in needed_tasks)
                if not is_for_us or is_limited or waits_for_task:
                    continue
                task = read_row(FleetTask, row.task_json)
                results = [other for other in needed_tasks if read_row(FleetTask, other.task).origin == task.origin]
                result = results[0] if len(results) == 1 and results[0].report else None
                if (home_place := self._home(connection, row, result)) == self._lease.place:
                    base_commit = read_row(AttemptReport, result.report).commit if result else task.base
                    # From now on the task names only the task that it builds on, not all tasks that it has waited for.
                    return row, task.model_copy(update={"base": base_commit, "after": (result.name,) if result else ()})
                is_at_other_place = task_row(row.fleet, row.task) & (TASKS.c.place != home_place)
                connection.execute(sa.update(TASKS).where(is_at_other_place).values(place=home_place))
        return None

    def _home(self, connection: sa.Connection, attempt: sa.Row[Any], result: sa.Row[Any] | None) -> str:
        """Returns the machine with the branches that the attempt needs: earlier results of its task, or the result on
        which it builds. If it needs none, this is the worker's own machine."""
        if not self._database.on_many or (attempt.place == self._lease.place and not result):
            return self._lease.place
        has_result = (ATTEMPTS.c.state == "done") | (ATTEMPTS.c.mend != "")
        is_of_same_task = (ATTEMPTS.c.fleet == attempt.fleet) & (ATTEMPTS.c.task == attempt.task)
        if connection.execute(sa.select(ATTEMPTS.c.number).where(is_of_same_task, has_result).limit(1)).first():
            return str(attempt.place)
        return str(result.place) if result else self._lease.place


def _needed_tasks(connection: sa.Connection, attempt: sa.Row[Any]) -> Sequence[sa.Row[Any]]:
    """Returns the tasks that must be done before the attempt, each with the report of its picked attempt."""
    columns: list[sa.Column[Any]] = [TASKS.c.name, TASKS.c.place, TASKS.c.task, TASKS.c.state, ATTEMPTS.c.report]
    is_picked_attempt = OF_TASK & (ATTEMPTS.c.number == TASKS.c.picked)
    query = sa.select(*columns).outerjoin(ATTEMPTS, is_picked_attempt)
    return connection.execute(query.where(TASKS.c.fleet == attempt.fleet, TASKS.c.name.in_(attempt.after))).all()
