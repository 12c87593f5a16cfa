"""The records of who carries out an attempt: it is queued, or running under the claim of one worker.

A worker takes a queued attempt by writing a new claim into its row, and only the holder of the claim may change the
attempt. When a worker is dead, its attempts are put back into the queue and lose their claims, so that all its later
reports are ignored. `recover` is the only place that does this.
"""

import secrets
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, cast

import sqlalchemy as sa

from duckflow.fleet.allowance import end_calls
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.engine import LIVE
from duckflow.fleet.lease import DEAD, Lease, WorkerProcess, mark_dead, process_of
from duckflow.fleet.questions import close_questions
from duckflow.fleet.store import ENDED_TASKS, read_limits, write_notes
from duckflow.fleet.tables import ATTEMPTS, CALLS, FLEETS, TASKS, WORKERS
from duckflow.fleet.task import AttemptOutcome, AttemptReport, FleetTask, Note, read_row
from duckflow.state.phrase import say

TAKING = 2026_2205
"""The database lock under which attempts are taken, because limits count the attempts of others."""
PAGE = 50
PATIENCE_WITH_PLACES = 2
"""Number of leases that a machine may be without a worker before other machines of the fleet get its tasks."""
MOST_GOES = 10
"""Number of times an attempt is begun at most. If its workers keep dying, the attempt itself may kill them."""
OF_TASK = (TASKS.c.fleet == ATTEMPTS.c.fleet) & (TASKS.c.name == ATTEMPTS.c.task)


class AttemptKey(NamedTuple):
    """Names one attempt."""

    fleet: str
    task: str
    number: int

    @property
    def row(self) -> sa.ColumnElement[bool]:
        """Selects its row."""
        return (ATTEMPTS.c.fleet == self.fleet) & (ATTEMPTS.c.task == self.task) & (ATTEMPTS.c.number == self.number)


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


def end_attempt(
    connection: sa.Connection, attempt: AttemptKey, claim: str | None, now: float, **values: object
) -> bool:
    """Ends an attempt with these values if it has this claim; None means that nobody has it. Then its calls are over,
    and nobody waits for answers to its questions. Says whether it has ended now."""
    is_of_claim = attempt.row & (ATTEMPTS.c.claim == claim) & ATTEMPTS.c.state.in_(LIVE)
    end_values = {**values, "ended": now, "doing": "", "wanted": "", "claim": None}
    if not connection.execute(sa.update(ATTEMPTS).where(is_of_claim).values(end_values)).rowcount:
        return False
    is_of_attempt = (
        (CALLS.c.fleet == attempt.fleet) & (CALLS.c.task == attempt.task) & (CALLS.c.attempt == attempt.number)
    )
    end_calls(connection, is_of_attempt, now)
    close_questions(connection, *attempt)
    return True


def recover(database: FleetDatabase, connection: sa.Connection, but: str = "") -> None:
    """Marks workers that are gone, and puts their attempts back into the queue. An attempt ends instead if somebody
    wants that, or if its workers keep dying. The worker `but` is left alone."""
    now = database.now(connection)
    mark_dead(connection, now, but)
    end_calls(connection, CALLS.c.worker.in_(DEAD), now)
    left_attempts = sa.select(ATTEMPTS).where(ATTEMPTS.c.state == "running", ATTEMPTS.c.worker.in_(DEAD))
    for row in connection.execute(left_attempts).all():
        attempt, phrases = AttemptKey(row.fleet, row.task, row.number), [say("fleet.worker_died", worker=row.worker)]
        if row.wanted:
            changed_count = end_attempt(connection, attempt, row.claim, now, state=row.wanted)
        elif row.goes >= MOST_GOES:
            phrases.append(say("fleet.most_goes", count=row.goes))
            changed_count = end_attempt(connection, attempt, row.claim, now, state="failed")
        else:
            # The row keeps the name of its worker, whose process may have to be ended first.
            update = sa.update(ATTEMPTS).where(attempt.row, ATTEMPTS.c.claim == row.claim)
            changed_count = connection.execute(update.values(state="queued", doing="", claim=None)).rowcount
        write_notes(database, connection, [Note(*attempt, phrase) for phrase in phrases if changed_count])


def move_forsaken(connection: sa.Connection, now: float, lease: float) -> None:
    """Gives the tasks of machines that have no worker to other machines of their fleet."""
    workers = connection.execute(sa.select(WORKERS).order_by(WORKERS.c.until)).all()
    living_places = {row.place for row in workers if not row.dead}
    last_seen = {row.place: row.until for row in workers}
    open_tasks = sa.select(TASKS.c.fleet, TASKS.c.name, TASKS.c.place, FLEETS.c.places, FLEETS.c.started)
    open_tasks = open_tasks.join(FLEETS, FLEETS.c.fleet == TASKS.c.fleet)
    open_tasks = open_tasks.where(TASKS.c.state.notin_(ENDED_TASKS), TASKS.c.place.notin_(living_places))
    for number, row in enumerate(connection.execute(open_tasks).all()):
        other_places = [place for place in cast("list[str]", row.places) if place in living_places]
        if other_places and now - last_seen.get(row.place, row.started) > lease * PATIENCE_WITH_PLACES:
            is_this_task = (TASKS.c.fleet == row.fleet) & (TASKS.c.name == row.name)
            connection.execute(
                sa.update(TASKS).where(is_this_task).values(place=other_places[number % len(other_places)])
            )


class Claims:
    """The attempts that one worker takes, reports on and gives back."""

    def __init__(self, database: FleetDatabase, lease: Lease) -> None:
        self._database = database
        self._lease = lease

    def take(self) -> TakenAttempt | None:
        """Takes the next attempt that may run on this machine, or returns None."""

        def change(connection: sa.Connection) -> TakenAttempt | None:
            self._database.one_at_a_time(connection, TAKING)
            row = _next_attempt(connection, self._lease.place) if self._lease.is_alive_in(connection) else None
            if row is None:
                return None
            now, claim, goes = self._database.now(connection), secrets.token_hex(8), row.goes + 1
            process_before = process_of(connection, row.worker) if row.worker else None
            claim_values = {"worker": self._lease.worker, "claim": claim, "goes": goes, "state": "running"}
            time_values = {"started": row.started or now, "taken": now}
            is_this_attempt = AttemptKey(row.fleet, row.task, row.number).row
            connection.execute(sa.update(ATTEMPTS).where(is_this_attempt).values(**claim_values, **time_values))
            is_waiting_task = (TASKS.c.fleet == row.fleet) & (TASKS.c.name == row.task) & (TASKS.c.state == "waiting")
            connection.execute(sa.update(TASKS).where(is_waiting_task).values(state="running"))
            task = _on_top(connection, row.fleet, read_row(FleetTask, row.task_json))
            return TakenAttempt(claim, row.fleet, row.number, task, goes, row.mend, bool(row.worker), process_before)

        if not self._database.read(_queued(self._lease.place).limit(1), patience=0):
            return None
        return self._database.do(change, patience=0)

    def finish(self, claim: str, report: AttemptReport) -> None:
        """Stores the report of an attempt. It is ignored if the attempt is not ours any more."""
        order = report.order
        attempt = AttemptKey(order.fleet, order.task.name, order.number)

        def change(connection: sa.Connection) -> None:
            now = self._database.now(connection)
            if order.mend and not report.passed:
                # Its earlier result is still on its branch, so it counts as done as before.
                if end_attempt(connection, attempt, claim, now, state="done"):
                    phrases = (report.open or say("fleet.stopped"), say("fleet.mend_failed"))
                    write_notes(self._database, connection, [Note(*attempt, phrase) for phrase in phrases])
            elif end_attempt(connection, attempt, claim, now, state=report.outcome):
                # What its calls took is known only when all of them are over.
                spent_query = sa.select(ATTEMPTS.c.cost_usd, ATTEMPTS.c.tokens).where(attempt.row)
                cost, tokens = connection.execute(spent_query).one()
                whole_report = report.model_copy(update={"cost_usd": cost, "tokens": tokens})
                connection.execute(sa.update(ATTEMPTS).where(attempt.row).values(report=whole_report.model_dump_json()))

        self._database.do(change)

    def record(self, doing: Mapping[str, str], notes: Sequence[Note]) -> dict[str, AttemptOutcome | None]:
        """Stores the progress of our attempts. Returns the claims that are still ours, each with the outcome that
        somebody wants for it, if it is to end."""

        def change(connection: sa.Connection) -> dict[str, AttemptOutcome | None]:
            for claim, word in doing.items():
                connection.execute(sa.update(ATTEMPTS).where(ATTEMPTS.c.claim == claim).values(doing=word))
            write_notes(self._database, connection, notes)
            is_running = (ATTEMPTS.c.worker == self._lease.worker) & (ATTEMPTS.c.state == "running")
            own_rows = connection.execute(sa.select(ATTEMPTS.c.claim, ATTEMPTS.c.wanted).where(is_running))
            return {row.claim: row.wanted or None for row in own_rows}

        return self._database.do(change, patience=0)

    def look_after_others(self) -> None:
        """Goes on for workers and machines that are gone."""

        def change(connection: sa.Connection) -> None:
            recover(self._database, connection, but=self._lease.worker)
            move_forsaken(connection, self._database.now(connection), self._lease.seconds)

        self._database.do(change, patience=0)

    def give_back(self) -> None:
        """Puts everything back that this worker has, which leaves."""

        def change(connection: sa.Connection) -> None:
            self._lease.give_up(connection)
            recover(self._database, connection)

        self._database.do(change, patience=self._lease.seconds / 4)


def _queued(place: str) -> sa.Select[Any]:
    """Selects the queued attempts of a machine, those first that are to be begun first."""
    query = sa.select(ATTEMPTS, TASKS.c.task.label("task_json"), TASKS.c.model, TASKS.c.after)
    query = query.join(TASKS, OF_TASK).join(FLEETS, FLEETS.c.fleet == ATTEMPTS.c.fleet)
    query = query.where(TASKS.c.place == place, ATTEMPTS.c.state == "queued")
    return query.order_by(TASKS.c.priority.desc(), FLEETS.c.started, TASKS.c.position, ATTEMPTS.c.number)


def _next_attempt(connection: sa.Connection, place: str) -> sa.Row[Any] | None:
    """Returns the next attempt that limits and order allow. The caller must hold the lock `TAKING`."""
    model_query = sa.select(TASKS.c.model).join(ATTEMPTS, OF_TASK).where(ATTEMPTS.c.state == "running")
    models = connection.execute(model_query).scalars().all()
    full_limits = [
        limit for limit in read_limits(connection) if limit.at_once and sum(map(limit.covers, models)) >= limit.at_once
    ]
    for page in count():
        rows = connection.execute(_queued(place).limit(PAGE).offset(page * PAGE)).all()
        for row in rows:
            if not any(limit.covers(row.model) for limit in full_limits) and not _waits(connection, row):
                return row
        if len(rows) < PAGE:
            break
    return None


def _waits(connection: sa.Connection, attempt: sa.Row[Any]) -> bool:
    """Says whether the attempt waits for a task that must be done before."""
    if not attempt.after:
        return False
    needed_tasks = sa.select(TASKS.c.name).where(TASKS.c.fleet == attempt.fleet, TASKS.c.name.in_(attempt.after))
    return connection.execute(needed_tasks.where(TASKS.c.state.notin_(("done", "merged"))).limit(1)).first() is not None


def _on_top(connection: sa.Connection, fleet: str, task: FleetTask) -> FleetTask:
    """Returns the task with a new base if it waited for another in its repository: the result of that one."""
    is_picked = (ATTEMPTS.c.number == TASKS.c.picked) & (ATTEMPTS.c.task == TASKS.c.name)
    rows = sa.select(TASKS.c.task, ATTEMPTS.c.report).join(TASKS, (ATTEMPTS.c.fleet == TASKS.c.fleet) & is_picked)
    rows = connection.execute(rows.where(TASKS.c.fleet == fleet, TASKS.c.name.in_(task.after))).all()
    same_origin_reports = [
        row.report for row in rows if row.report and _origin(read_row(FleetTask, row.task)) == _origin(task)
    ]
    commit = read_row(AttemptReport, same_origin_reports[0]).commit if len(same_origin_reports) == 1 else ""
    return task.model_copy(update={"base": commit}) if commit else task


def _origin(task: FleetTask) -> str:
    return task.remote or task.repository
