"""The lease of a worker: a worker is alive as long as it renews its row in time. No other file decides who is dead.

A lease that has run out cannot be renewed: the process may come back, but only as another worker. A worker that could
not renew its lease for a while ends its attempts before other workers may take them.
"""

import os
import secrets
import threading
import time
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.host import born_at, has_gone, this_machine
from duckflow.fleet.tables import WORKERS

BEAT = 1.0
SAFE_PART = 0.75
"""The part of a lease after which a worker that cannot renew it ends its attempts. Other workers may take the attempts
only after the whole lease."""
DEAD = sa.select(WORKERS.c.worker).where(WORKERS.c.until == 0)
OVER: dict[str, Any] = {"until": 0.0, "pid": 0}
"""The values that are written into the row of a worker that has left. They say that the worker is dead, and that nobody
has to end its process."""


def is_gone(worker: sa.Row[Any], now: float) -> bool:
    """Says whether others may take over a worker's attempts: its lease or its process on this machine has ended."""
    return worker.until <= now or has_gone(worker.machine, worker.pid, worker.born)


def bury(connection: sa.Connection, now: float) -> None:
    """Ends the leases of workers that are gone. A worker that renews its lease at this moment stays alive."""
    workers = connection.execute(sa.select(WORKERS).where(WORKERS.c.until > now)).all()
    is_over = (WORKERS.c.until <= now) | WORKERS.c.worker.in_([row.worker for row in workers if is_gone(row, now)])
    connection.execute(sa.update(WORKERS).where(WORKERS.c.until > 0, is_over).values(until=0.0))


class Lease:
    """The lease of one worker. A thread that does nothing else renews the lease, so that nothing delays the renewal."""

    def __init__(self, database: FleetDatabase, place: str, seconds: float) -> None:
        self._database = database
        self.place = place
        self.seconds = seconds
        self.worker = f"{place}-{os.getpid()}-{secrets.token_hex(3)}"
        self._own_row = WORKERS.c.worker == self.worker
        self._good_until = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._renew_in_time, name="fleet-lease", daemon=True)

    @property
    def holds(self) -> bool:
        """Says whether this worker may go on. It must be checked often, also while the database does not answer."""
        return time.monotonic() < self._good_until

    def enter(self) -> None:
        """Adds the worker's row and begins to renew its lease. An earlier worker of this process has left by now."""
        start_time, machine, pid = time.monotonic(), this_machine(), os.getpid()
        worker_row = {"worker": self.worker, "place": self.place, "machine": machine, "pid": pid, "born": born_at(pid)}
        is_this_process = (WORKERS.c.machine == machine) & (WORKERS.c.pid == pid)

        def change(connection: sa.Connection) -> None:
            now = self._database.now(connection)
            connection.execute(sa.delete(WORKERS).where(self._own_row))
            connection.execute(sa.update(WORKERS).where(is_this_process).values(OVER))
            connection.execute(sa.insert(WORKERS).values(**worker_row, until=now + self.seconds, seen=now))

        self._database.do(change)
        self._good_until = start_time + self.seconds * SAFE_PART
        self._thread.start()

    def leave(self) -> None:
        """Ends the lease, so that other workers need not wait until it has run out."""
        self._stopped.set()
        self._thread.join(timeout=10)
        worker_update = sa.update(WORKERS).where(self._own_row).values(OVER)
        with suppress(SQLAlchemyError):
            self._database.do(lambda connection: connection.execute(worker_update), patience=self.seconds / 4)

    def _renew_in_time(self) -> None:
        while not self._stopped.wait(min(BEAT, self.seconds / 6)):
            start_time = time.monotonic()
            # A renewal fails while the database is away. `holds` says how long this worker may go on without one.
            with suppress(SQLAlchemyError):
                is_alive = self._database.do(self._renew, patience=0, urgent=True)
                self._good_until = start_time + self.seconds * SAFE_PART if is_alive else 0.0

    def _renew(self, connection: sa.Connection) -> int:
        now = self._database.now(connection)
        worker_update = sa.update(WORKERS).where(self._own_row, WORKERS.c.until > now)
        return connection.execute(worker_update.values(until=now + self.seconds, seen=now)).rowcount
