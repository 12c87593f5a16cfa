"""The database of fleets: a SQLite file for one machine, a Postgres server for many."""

import contextlib
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.event import listen
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.schema import CreateColumn

from duckflow.errors import UsageError

Result = TypeVar("Result")

METADATA = sa.MetaData()
POSTGRES = ("postgresql://", "postgres://")
CONNECTIONS = 8
"""The most connections of one process, besides the connection for renewing the lease."""
PREPARING = 2026_2203
PRIMARY_CODE = 0xFF
"""Bits of a SQLite error code that hold the kind of error; higher bits only give details."""
LOCKED = 30_000
"""Milliseconds that a change waits for a lock before it is begun anew."""
OPENING = 5.0
"""Seconds to wait for a database that is being opened. The wait is short, because the database may not exist at all."""
PATIENCE = 120.0
"""Seconds to wait for a database to come back before a change is given up."""


class FleetDatabase:
    """The database: a SQLite file that one machine uses, or a Postgres server for many machines."""

    def __init__(self, address: str) -> None:
        """`address` is a postgresql:// address, or the path of a file."""
        self.on_many = address.startswith(POSTGRES)
        if self.on_many:
            self.url = sa.make_url(address).set(drivername="postgresql+psycopg")
        else:
            _require_database(address)
            Path(address).parent.mkdir(parents=True, exist_ok=True)
            # The file holds questions, messages and answers that steer attempts, so only the user may read or write it.
            Path(address).touch(0o600)
            Path(address).chmod(0o600)
            self.url = sa.URL.create("sqlite", database=address)
        self.engine = self._connect(CONNECTIONS)
        # Renewing a worker's lease must not wait for a free connection.
        self._urgent = self._connect(1)

    def _connect(self, connections: int) -> sa.Engine:
        pool_options = {"pool_size": connections, "max_overflow": 0, "pool_timeout": 60}
        if self.on_many:
            options = {
                "connect_timeout": 10,
                "application_name": "duckflow-fleet",
                "options": f"-c lock_timeout={LOCKED}",
            }
            return sa.create_engine(self.url, pool_pre_ping=True, connect_args=options, **pool_options)
        engine = sa.create_engine(self.url, **pool_options)
        listen(engine, "connect", _set_up_sqlite)
        return engine

    def prepare(self) -> None:
        """Makes the tables, and adds columns that tables of an older version lack, one process at a time."""

        def change(connection: sa.Connection) -> None:
            self.one_at_a_time(connection, PREPARING)
            METADATA.create_all(connection)
            inspector = sa.inspect(connection)
            for table in METADATA.sorted_tables:
                names = {column["name"] for column in inspector.get_columns(table.name)}
                for column in (column for column in table.columns if column.name not in names):
                    connection.execute(
                        sa.DDL(f"ALTER TABLE {table.name} ADD COLUMN {CreateColumn(column).compile(connection)}")
                    )

        self.do(change, OPENING)

    def close(self) -> None:
        self.engine.dispose()
        self._urgent.dispose()

    def do(self, work: Callable[[sa.Connection], Result], patience: float = PATIENCE, urgent: bool = False) -> Result:
        """Runs a transaction and repeats it while the database is away, so `work` must be safe to run twice."""
        engine = self._urgent if urgent else self.engine

        def transact() -> Result:
            with engine.begin() as connection:
                if not self.on_many:
                    # The write lock is taken first, so that the values read stay true until the new values are written.
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                return work(connection)

        return _patiently(transact, patience)

    def read(self, statement: sa.Executable, patience: float = PATIENCE) -> list[sa.Row[Any]]:
        def fetch() -> list[sa.Row[Any]]:
            with self.engine.connect() as connection:
                return list(connection.execute(statement))

        return _patiently(fetch, patience)

    def one_at_a_time(self, connection: sa.Connection, lock: int) -> None:
        """Waits for the lock, and holds it to the end of this transaction. A SQLite file runs only one transaction at a
        time anyway, so it needs no lock."""
        if self.on_many:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": lock})

    def time(self) -> float:
        return self.do(self.now)

    def now(self, connection: sa.Connection) -> float:
        return float(connection.execute(sa.select(self.clock)).scalar_one())

    @property
    def clock(self) -> sa.ColumnElement[float]:
        """The time by one clock for all machines: the clock of the Postgres server, or of the only machine."""
        if not self.on_many:
            return sa.literal(time.time())
        return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Float)


def _require_database(address: str) -> None:
    """Refuses a file that is no database before anything is changed: the user may have named the file by mistake."""
    if "://" in address:
        raise UsageError("fleet.database_kind", address=address.partition("://")[0])
    if not Path(address).exists():
        return
    # Only SQLite may open the file: closing a handle of our own would release the locks that this process holds on the
    # file.
    try:
        with contextlib.closing(
            sqlite3.connect(f"{Path(address).absolute().as_uri()}?mode=rw", uri=True)
        ) as connection:
            connection.execute("PRAGMA schema_version")
    except sqlite3.DatabaseError as problem:
        if problem.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            raise UsageError("fleet.database_file", file=address) from None


def _patiently(work: Callable[[], Result], patience: float) -> Result:
    end_time = time.monotonic() + patience
    while True:
        try:
            return work()
        except DBAPIError as error:
            if not _is_away(error) or time.monotonic() > end_time:
                raise
            time.sleep(0.25)


def _is_away(error: DBAPIError) -> bool:
    """Says whether waiting can help: a server may come back, a file may be in use. An unreadable file stays so."""
    if isinstance(error.orig, sqlite3.Error):
        return error.orig.sqlite_errorcode & PRIMARY_CODE in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)


def _set_up_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = "IMMEDIATE"
    cursor = connection.cursor()
    for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
