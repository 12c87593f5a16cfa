"""The lease of a worker: it counts as alive as long as it renews its row in time. No other file decides who is dead.

Once a worker is marked dead, it stays so: its process may come back, but only as another worker. A worker that could
not renew its lease for a while ends what it does before others may mark it.
"""

import os
import secrets
import threading
import time
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.host import born_at, has_gone, this_machine
from duckflow.fleet.tables import WORKERS

BEAT = 1.0
SAFE_PART = 0.75
"""Part of a lease after which a worker that cannot renew it ends its attempts, before others take them."""
DEAD = sa.select(WORKERS.c.worker).where(WORKERS.c.dead)


class WorkerProcess(NamedTuple):
    """The process of a worker, running or not."""

    machine: str
    pid: int
    born: str


def is_gone(worker: sa.Row[Any], now: float) -> bool:
    """Says whether others may go on with a worker's attempts: it is marked dead, its lease has run out, or its process
    on this machine has ended."""
    return bool(worker.dead) or worker.until < now or has_gone(worker.machine, worker.pid, worker.born)


def mark_dead(connection: sa.Connection, now: float, but: str = "") -> None:
    """Marks the workers that are gone, except the worker `but`: it finds out about itself when it renews its lease."""
    other_workers = connection.execute(sa.select(WORKERS).where(~WORKERS.c.dead, WORKERS.c.worker != but)).all()
    if gone_workers := [row.worker for row in other_workers if is_gone(row, now)]:
        connection.execute(sa.update(WORKERS).where(WORKERS.c.worker.in_(gone_workers)).values(dead=True))


def process_of(connection: sa.Connection, worker: str) -> WorkerProcess | None:
    """Returns the process of a dead worker; None if it left in order, or lives on as another worker."""
    row = connection.execute(sa.select(WORKERS).where(WORKERS.c.worker == worker)).one_or_none()
    if row is None or not row.pid:
        return None
    is_same_process = (WORKERS.c.machine == row.machine) & (WORKERS.c.pid == row.pid) & (WORKERS.c.born == row.born)
    living_worker = connection.execute(sa.select(WORKERS.c.worker).where(is_same_process, ~WORKERS.c.dead)).first()
    return None if living_worker else WorkerProcess(row.machine, row.pid, row.born)


class Lease(threading.Thread):
    """Renews the lease of one worker in a thread that does nothing else, so that nothing can delay it."""

    def __init__(self, database: FleetDatabase, place: str, seconds: float) -> None:
        super().__init__(name="fleet-lease", daemon=True)
        self._database = database
        self.place = place
        self.seconds = seconds
        self.worker = f"{place}-{os.getpid()}-{secrets.token_hex(3)}"
        self._own = WORKERS.c.worker == self.worker
        self._good_until = 0.0
        self._stopped = threading.Event()

    @property
    def holds(self) -> bool:
        """Says whether this worker may go on. It must be asked often, also while the database does not answer."""
        return time.monotonic() < self._good_until

    def enter(self) -> None:
        """Writes the worker down and begins to renew its lease."""
        start_time, pid = time.monotonic(), os.getpid()
        row = {"worker": self.worker, "place": self.place, "machine": this_machine(), "pid": pid, "born": born_at(pid)}

        def change(connection: sa.Connection) -> None:
            if not self.is_alive_in(connection):
                now = self._database.now(connection)
                connection.execute(sa.insert(WORKERS).values(**row, until=now + self.seconds, seen=now))

        self._database.do(change)
        self._good_until = start_time + self.seconds * SAFE_PART
        self.start()

    def is_alive_in(self, connection: sa.Connection) -> bool:
        """Says whether the database has this worker, and nobody has marked it dead."""
        return connection.execute(sa.select(WORKERS.c.worker).where(self._own, ~WORKERS.c.dead)).first() is not None

    def run(self) -> None:
        while not self._stopped.wait(min(BEAT, self.seconds / 6)):
            start_time = time.monotonic()
            try:
                is_alive = self._database.do(self._renew, patience=0, urgent=True)
            except SQLAlchemyError:
                # The database is away. `holds` says how long that may last.
                continue
            self._good_until = start_time + self.seconds * SAFE_PART if is_alive else 0.0
            if not is_alive:
                return

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=10)

    def give_up(self, connection: sa.Connection) -> None:
        """Marks this worker as gone, so that others need not wait until its lease has run out."""
        connection.execute(sa.update(WORKERS).where(self._own).values(dead=True, pid=0))

    def _renew(self, connection: sa.Connection) -> int:
        now = self._database.now(connection)
        update = sa.update(WORKERS).where(self._own, ~WORKERS.c.dead)
        return connection.execute(update.values(until=now + self.seconds, seen=now)).rowcount
