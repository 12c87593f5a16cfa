"""Many tasks under bad conditions: are all done, none twice at once, none lost? How much does the fleet itself cost?

Usage: python -m benchmarks.fleet [--tasks 200] [--kills 20] [--postgres] [--restart] [--places 1] [...]

Workers are processes of their own that are killed with -9 at random moments and started again; on Postgres the server
is stopped and started once. Attempts are stand-ins: a process that holds a lock for some time, so that two at once are
found out. Prints what came of it, and the figures.
"""

import argparse
import asyncio
import json
import random
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from duckflow.fleet.dbos_engine import DbosEngine
from duckflow.fleet.engine import AttemptState, Limit
from duckflow.fleet.task import FleetTask
from duckflow.fleet.worker import Workplace
from tests.fleet.postgres import Postgres, own_postgres, postgres_programs
from tests.fleet.stand_in import hold_a_lock, pick_first

LEASE = 6.0
MODEL = "scripted"


class Conditions(NamedTuple):
    """How many, and how bad it gets."""

    tasks: int = 200
    attempts: int = 2
    workers: int = 3
    at_once: int = 4
    limit: int = 8
    """Attempts at once over all workers; 0: as many as they take."""
    kills: int = 20
    places: int = 1
    seed: int = 22
    seconds: float = 1.0
    """That a stand-in takes."""
    postgres: bool = False
    restart: bool = False
    warm: bool = False
    """Workers are up before the time is taken."""


class Crew:
    """The worker processes: one that is gone is replaced."""

    def __init__(self, command: Sequence[str], places: Sequence[str]) -> None:
        self._command = command
        self._places = places
        self._workers: list[asyncio.subprocess.Process] = []
        self.memory: list[int] = []

    async def start(self) -> None:
        for place in self._places:
            self._workers.append(await self._one(place))

    async def kill(self, randomness: random.Random) -> None:
        number = randomness.randrange(len(self._workers))
        self._workers[number].kill()
        await self._workers[number].wait()
        self._workers[number] = await self._one(self._places[number])

    async def look(self) -> None:
        """Replace who has ended by itself, and note how large the others are."""
        for number, worker in enumerate(self._workers):
            if worker.returncode is not None:
                self._workers[number] = await self._one(self._places[number])
            status = Path(f"/proc/{worker.pid}/status")
            if status.exists() and "VmRSS:" in (text := status.read_text()):
                self.memory.append(int(text.split("VmRSS:")[1].split()[0]))

    async def stop(self) -> None:
        for worker in self._workers:
            if worker.returncode is None:
                worker.send_signal(signal.SIGKILL)
                await worker.wait()

    async def _one(self, place: str) -> asyncio.subprocess.Process:
        command = [word.replace("{place}", place) for word in self._command]
        return await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.fleet.stand_in", *command)


async def run(options: Conditions, folder: Path, postgres: Postgres | None) -> dict[str, object]:
    address = postgres.address if postgres else str(folder / "fleet.db")
    ledger = folder / "ledger"
    randomness = random.Random(options.seed)
    places = [f"machine-{number + 1}" for number in range(options.places)]
    workplace = Workplace(places[0], options.at_once, LEASE)
    engine = DbosEngine(address, hold_a_lock(ledger, 0), pick_first, workplace)
    tasks = [
        FleetTask(
            name=f"task-{number}",
            repository=f"repository-{number % 5}",
            prompt="p",
            attempts=options.attempts,
            pick="best",
            model=MODEL,
            budget_usd=0,
            minutes=5,
        )
        for number in range(options.tasks)
    ]
    crew_places = [places[number % len(places)] for number in range(options.workers)]
    command = [address, "{place}", str(options.at_once), str(LEASE), str(ledger), str(options.seconds)]
    crew = Crew(command, crew_places)
    await crew.start()
    if options.warm:
        await asyncio.sleep(5)
    began = time.monotonic()
    limits = [Limit(model=MODEL, at_once=options.limit)] if options.limit else []
    fleet = engine.start(tasks, places=places, limits=limits)
    enqueued = time.monotonic() - began
    all_attempts = options.tasks * options.attempts
    moments = sorted(randomness.randrange(int(all_attempts * 0.9)) for _ in range(options.kills))
    restart_at = all_attempts // 2 if postgres and options.restart else None
    connections = 0
    try:
        while not all(state in ("done", "failed", "choose") for state in engine.fleets()[0].tasks):
            ended = Counter(each.state for each in engine.attempts(fleet))["done"]
            if moments and ended >= moments[0]:
                moments.pop(0)
                await asyncio.sleep(randomness.random())
                await crew.kill(randomness)
            if postgres and restart_at is not None and ended >= restart_at:
                restart_at = None
                await asyncio.to_thread(postgres.stop)
                await asyncio.sleep(1)
                await asyncio.to_thread(postgres.start)
            await crew.look()
            connections = max(connections, await asyncio.to_thread(count_connections, address) if postgres else 0)
            await asyncio.sleep(0.5)
        elapsed = time.monotonic() - began
    finally:
        await crew.stop()
    figures = judge(engine.attempts(fleet), Counter(each.state for each in engine.tasks(fleet)), ledger, options)
    engine.close()
    return {
        "database": "postgres" if postgres else "sqlite",
        **figures,
        "seconds to enqueue": round(enqueued, 2),
        "seconds": round(elapsed, 1),
        "tasks a minute": round(options.tasks / elapsed * 60, 1),
        "kills left": len(moments),
        "largest worker MB": max(crew.memory, default=0) // 1024,
        "most connections": connections,
    }


def judge(
    attempts: Sequence[AttemptState], tasks: Counter[str], ledger: Path, options: Conditions
) -> dict[str, object]:
    words = Counter(line.split()[0] for line in ledger.read_text().splitlines())
    took = [each.ended - each.started - options.seconds for each in attempts if each.goes == 1]
    return {
        "tasks": dict(tasks),
        "attempts": dict(Counter(each.state for each in attempts)),
        "without a report": sum(each.report is None for each in attempts),
        "begun": words["begin"],
        "ended": words["end"],
        "two at once": words["TWICE"],
        "begun again": sum(each.goes > 1 for each in attempts),
        "most goes": max(each.goes for each in attempts),
        "overhead of an attempt, median s": round(statistics.median(took), 3),
    }


def count_connections(address: str) -> int:
    engine = sa.create_engine(address.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)
    try:
        with engine.connect() as connection:
            return connection.execute(
                sa.text("SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL")
            ).scalar_one()
    except OperationalError:
        return 0


def try_it(options: Conditions) -> dict[str, object]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        postgres = None
        if options.postgres:
            if (programs := postgres_programs()) is None:
                raise SystemExit("There is no Postgres on this machine.")
            postgres = stack.enter_context(own_postgres(programs))
        return asyncio.run(run(options, folder, postgres))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in Conditions()._asdict().items():
        option = f"--{name.replace('_', '-')}"
        if value is False:
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, type=float if name == "seconds" else int, default=value)
    print(json.dumps(try_it(Conditions(**vars(parser.parse_args()))), indent=2))


if __name__ == "__main__":
    main()
