"""How work comes into the queues of DBOS again: when its worker died, and when its machine has no worker left."""

import math
from collections.abc import Iterable
from itertools import cycle
from operator import methodcaller
from typing import Any, cast

import sqlalchemy as sa
from dbos import DBOS

from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.flows import attempts_queue, model_queue, tasks_queue
from duckflow.fleet.questions import ASKING
from duckflow.fleet.store import ENDED_TASKS, FleetStore
from duckflow.fleet.tables import ATTEMPTS, FLEETS, QUESTIONS, TASKS, WORKERS
from duckflow.fleet.worker import Workplace

PATIENCE_WITH_PLACES = 2
"""Leases in which a machine may be without a worker before another of the fleet's machines gets its tasks."""
MOST_WAITING = 4
"""Times as many attempts as may run at once may wait for a person; each of them is a process that takes memory."""
OF_ATTEMPT = (
    (ATTEMPTS.c.fleet == QUESTIONS.c.fleet)
    & (ATTEMPTS.c.task == QUESTIONS.c.task)
    & (ATTEMPTS.c.number == QUESTIONS.c.attempt)
)


class DbosQueues:
    """`HandOn`, in the process of one worker. Doing any of it twice does no harm: an attempt has one claim."""

    def __init__(self, dbos: DBOS, database: FleetDatabase, workplace: Workplace) -> None:
        self._dbos = dbos
        self._database = database
        self._store = FleetStore(database)
        self._workplace = workplace
        self._room = 0

    def recover(self, worker: str) -> None:
        # DBOS does this at the start of a process for what the same process left; it has no public name.
        methodcaller("_recover_pending_workflows", [worker])(DBOS)

    def make_room(self) -> None:
        """All workers of a machine reckon the same, so it does not matter who says it to the queue."""
        place, at_once = self._workplace.place, self._workplace.at_once
        living = (WORKERS.c.place == place) & ~WORKERS.c.dead
        asking = sa.select(QUESTIONS.c.fleet, QUESTIONS.c.task, QUESTIONS.c.attempt).distinct()
        asking = asking.join(ATTEMPTS, OF_ATTEMPT).join(WORKERS, WORKERS.c.worker == ATTEMPTS.c.worker)
        waiting = len(self._database.read(asking.where(ASKING, ATTEMPTS.c.state == "running", living), patience=0))
        workers = len(self._database.read(sa.select(WORKERS.c.worker).where(living), patience=0)) if waiting else 1
        room = min(math.ceil(waiting / max(workers, 1)), at_once * MOST_WAITING)
        queue = DBOS.retrieve_queue(attempts_queue(place)) if room != self._room else None
        if queue:
            queue.set_worker_concurrency(at_once + room)
            self._room = room

    def move(self) -> None:
        self.listen_to_models()
        if forsaken := self._database.do(self._move_tasks, patience=0):
            self._requeue(forsaken)

    def listen_to_models(self) -> None:
        """Limits may be set while we run, and DBOS can be told what to listen to only before it is launched: it looks
        at its list anew every second."""
        listening = cast("list[str]", vars(self._dbos)["_listening_queues"])
        known = set(listening)
        listening += [name for limit in self._store.limits() if (name := model_queue(limit.model)) not in known]

    def _move_tasks(self, connection: sa.Connection) -> list[str]:
        """Give the tasks of machines without a worker to others of their fleet; the places that are forsaken."""
        now = self._database.now(connection)
        last_seen: dict[str, float] = {}
        for row in connection.execute(sa.select(WORKERS.c.place, WORKERS.c.until, WORKERS.c.dead)):
            last_seen[row.place] = max(last_seen.get(row.place, 0.0), row.until)
        living = {row.place for row in connection.execute(sa.select(WORKERS.c.place).where(~WORKERS.c.dead).distinct())}
        open_tasks = sa.select(TASKS.c.fleet, TASKS.c.name, TASKS.c.place, FLEETS.c.places, FLEETS.c.started)
        open_tasks = open_tasks.join(FLEETS, FLEETS.c.fleet == TASKS.c.fleet)
        open_tasks = open_tasks.where(TASKS.c.state.notin_(ENDED_TASKS), TASKS.c.place.notin_(living))
        forsaken: set[str] = set()
        targets: dict[str, Any] = {}
        for row in connection.execute(open_tasks).all():
            others = [place for place in cast("list[str]", row.places) if place in living]
            if (
                others
                and now - last_seen.get(row.place, float(row.started)) > self._workplace.lease * PATIENCE_WITH_PLACES
            ):
                target = next(targets.setdefault(row.fleet, cycle(others)))
                this = (TASKS.c.fleet == row.fleet) & (TASKS.c.name == row.name)
                connection.execute(sa.update(TASKS).where(this).values(place=target))
                forsaken.add(row.place)
        return sorted(forsaken | self._moved_from(connection, living))

    def _moved_from(self, connection: sa.Connection, living: set[str]) -> set[str]:
        """Places without a worker of fleets that are not over: what waits there may be left from an earlier move."""
        open_fleets = sa.select(TASKS.c.fleet).where(TASKS.c.state.notin_(ENDED_TASKS))
        rows = connection.execute(sa.select(FLEETS.c.places).where(FLEETS.c.fleet.in_(open_fleets))).scalars()
        several = (cast("list[str]", places) for places in rows)
        return {place for places in several if len(places) > 1 for place in places} - living

    def _requeue(self, forsaken: Iterable[str]) -> None:
        for place in forsaken:
            for name in (tasks_queue, attempts_queue):
                for waiting in DBOS.list_workflows(queue_name=name(place), status="ENQUEUED", load_output=False):
                    fleet, task = cast("dict[str, list[str]]", waiting.input)["args"][:2]
                    for state in self._store.tasks(fleet, task):
                        if state.place != place:
                            DBOS.resume_workflow(waiting.workflow_id, queue_name=name(state.place))
