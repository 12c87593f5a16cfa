"""Which attempt comes next on a machine: in order, within the limits of its model, after the tasks it waits for."""

from collections.abc import Iterator
from itertools import count, cycle
from typing import Any, cast

import sqlalchemy as sa

from duckflow.fleet.store import ENDED_TASKS, read_limits
from duckflow.fleet.tables import ATTEMPTS, FLEETS, TASKS, WORKERS

PAGE = 50
PATIENCE_WITH_PLACES = 2
"""Leases in which a machine may be without a worker before another of the fleet's machines gets its tasks."""

OF_TASK = (TASKS.c.fleet == ATTEMPTS.c.fleet) & (TASKS.c.name == ATTEMPTS.c.task)
HELD = (ATTEMPTS.c.state == "running") & ~WORKERS.c.dead
"""A worker that lives carries the attempt out."""


def attempts_to_take(place: str) -> sa.Select[Any]:
    """Attempts of a machine that nobody carries out: new ones, and those whose worker is dead."""
    free = (ATTEMPTS.c.state == "queued") | ((ATTEMPTS.c.state == "running") & WORKERS.c.dead)
    chosen = sa.select(ATTEMPTS, TASKS.c.task.label("task_json"), TASKS.c.model, TASKS.c.after)
    chosen = chosen.join(TASKS, OF_TASK).join(FLEETS, FLEETS.c.fleet == ATTEMPTS.c.fleet)
    chosen = chosen.outerjoin(WORKERS, WORKERS.c.worker == ATTEMPTS.c.worker)
    return chosen.where(TASKS.c.place == place, free).order_by(
        TASKS.c.priority.desc(), FLEETS.c.started, TASKS.c.position, ATTEMPTS.c.number
    )


def next_attempt(connection: sa.Connection, place: str) -> sa.Row[Any] | None:
    """The caller is the only one who takes an attempt at this moment."""
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
    """Says whether a task that must be done before is not."""
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
