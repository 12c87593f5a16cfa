"""Many tasks under bad conditions: are all done, none twice at once, none lost? How much does the fleet itself cost?

Usage: python -m benchmarks.fleet [--tasks 200] [--kills 20] [--postgres] [--restart] [--places 1] [--real | --remote]
       [--repositories 5] [--requests 0] [--tokens 0] [--together 0] [...]

Workers are processes of their own that are killed with -9 at random moments and started again; on Postgres the server
is stopped and started once. Attempts are stand-ins: a process that holds a lock for some time, so that two at once are
found out; with --real they are the whole program with a scripted model in five repositories, and what they made is
merged. With --remote the model is behind HTTP and notes when it was called, and what is done is delivered to shared
bare repositories. Prints what came of it, and the figures.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from benchmarks.fleet_remote import SharedRemotes
from benchmarks.fleet_trial import Conditions, StandIns, Trial, WholeProgram, look_at_attempts
from duckflow.fleet.database_engine import Engine
from duckflow.fleet.worker import Workplace
from tests.fleet.postgres import Postgres, own_postgres, postgres_programs
from tests.fleet.stand_in import hold_a_lock, pick_first, start_together

ROUNDS = 20
LONGEST = 120.0
TOLD = ("fleet.limit_over", "fleet.budget_over", "fleet.worker_died")
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL"
COMMITTED = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


class Crew:
    """The worker processes: one that is gone is replaced."""

    def __init__(self, trial: Trial, places: Sequence[str]) -> None:
        self._trial = trial
        self._places = places
        self._workers: list[asyncio.subprocess.Process] = []
        self.memory: list[int] = []
        self.attempts_memory: list[int] = []
        self.looks, self.twice, self.killed = 0, 0, 0

    async def start(self) -> None:
        for place in self._places:
            self._workers.append(await self._one(place))

    async def kill(self, randomness: random.Random) -> None:
        number = randomness.randrange(len(self._workers))
        if self._workers[number].returncode is None:
            self._workers[number].kill()
            self.killed += 1
            await self._workers[number].wait()
        self._workers[number] = await self._one(self._places[number])

    async def look(self) -> None:
        """Replaces the workers that have ended by themselves, and notes how large the others are."""
        for number, worker in enumerate(self._workers):
            if worker.returncode is not None:
                self._workers[number] = await self._one(self._places[number])
            status = Path(f"/proc/{worker.pid}/status")
            if status.exists() and "VmRSS:" in (text := status.read_text()):
                self.memory.append(int(text.split("VmRSS:")[1].split()[0]))
        seen = await asyncio.to_thread(look_at_attempts)
        self.attempts_memory += seen.sizes
        self.looks += 1
        self.twice += seen.twice

    async def stop(self) -> None:
        for worker in self._workers:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()

    async def _one(self, place: str) -> asyncio.subprocess.Process:
        call = self._trial.call(place)
        return await asyncio.create_subprocess_exec(
            *call.command, env=call.environment, stderr=asyncio.subprocess.DEVNULL
        )


async def run(options: Conditions, folder: Path, postgres: Postgres | None) -> dict[str, object]:
    address = postgres.address if postgres else str(folder / "fleet.db")
    randomness = random.Random(options.seed)
    places = [f"machine-{number + 1}" for number in range(options.places)]
    workplace = Workplace(places[0], options.at_once, options.lease)
    engine = Engine(address, hold_a_lock(folder / "unused", 0), pick_first, workplace)
    trial: Trial = StandIns(options, address, folder)
    if options.real or options.remote:
        trial = (SharedRemotes if options.remote else WholeProgram)(options, address, folder)
        trial.prepare(places)
    crew = Crew(trial, [places[number % len(places)] for number in range(options.workers)])
    await crew.start()
    if options.warm:
        await asyncio.sleep(5)
    if options.idle and postgres:
        return await do_nothing(options, crew, address)
    began = time.monotonic()
    size, committed = size_of(address, bool(postgres)), ask_postgres(address, COMMITTED) if postgres else 0
    fleet = trial.start(engine, places)
    enqueued = time.monotonic() - began
    all_attempts = options.tasks * options.attempts
    moments = sorted(randomness.randrange(int(all_attempts * 0.9)) for _ in range(options.kills))
    restart_at = all_attempts // 2 if postgres and options.restart else None
    connections, restarts, load = 0, 0, round(os.getloadavg()[0], 1)
    try:
        while not engine.fleets()[0].ended:
            ended = sum(not each.live for each in engine.attempts(fleet))
            if moments and ended >= moments[0]:
                moments.pop(0)
                await asyncio.sleep(randomness.random())
                await crew.kill(randomness)
            if postgres and restart_at is not None and ended >= restart_at:
                restart_at = None
                await asyncio.to_thread(postgres.stop)
                await asyncio.sleep(1)
                await asyncio.to_thread(postgres.start)
                restarts += 1
            await crew.look()
            if postgres:
                connections = max(connections, await asyncio.to_thread(ask_postgres, address, CONNECTIONS))
            await asyncio.sleep(0.5)
        elapsed = time.monotonic() - began
    finally:
        await crew.stop()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    attempts = engine.attempts(fleet)
    took = [each.ended - each.taken for each in attempts if each.goes == 1]
    figures = {
        "conditions": options._asdict(),
        "tasks": Counter(each.state for each in engine.tasks(fleet)),
        "attempts": Counter(each.state for each in attempts),
        "without a report": sum(each.report is None for each in attempts),
        "begun again": sum(each.goes > 1 for each in attempts),
        "most goes": max(each.goes for each in attempts),
        "from taken to ended, median s": round(statistics.median(took), 3) if took else None,
        "seconds to enqueue": round(enqueued, 2),
        "seconds": round(elapsed, 1),
        "tasks a minute": round(options.tasks / elapsed * 60, 1),
        "CPU seconds an attempt, all in all": round((used.ru_utime + used.ru_stime) / all_attempts, 3),
        "kills left": len(moments),
        "workers killed, restarts of the database": (crew.killed, restarts),
        "looks at all processes, attempts seen twice at once": (crew.looks, crew.twice),
        "load, before and after": (load, round(os.getloadavg()[0], 1)),
        "worker MB, largest": max(crew.memory, default=0) // 1024,
        "attempt MB, median and largest": (
            int(statistics.median(crew.attempts_memory or [0])) // 1024,
            max(crew.attempts_memory, default=0) // 1024,
        ),
        "connections, most": connections,
        "KB in the database, a task": round((size_of(address, bool(postgres)) - size) / 1024 / options.tasks, 1),
        "transactions a task": round((ask_postgres(address, COMMITTED) - committed) / options.tasks)
        if postgres
        else None,
        "told in the log": Counter(line.said.key for line in engine.logs(fleet) if line.said.key in TOLD),
        **trial.judge(fleet, attempts),
    }
    engine.close()
    return figures


async def do_nothing(options: Conditions, crew: Crew, address: str) -> dict[str, object]:
    """Measures what workers cost that have nothing to do."""
    await asyncio.sleep(10)
    before = ask_postgres(address, COMMITTED)
    await asyncio.sleep(options.idle)
    committed = ask_postgres(address, COMMITTED) - before
    await crew.look()
    connections = ask_postgres(address, CONNECTIONS)
    await crew.stop()
    return {
        "transactions a second, a worker": round(committed / options.idle / options.workers, 1),
        "connections a worker": (connections - 1) / options.workers,
        "worker MB": max(crew.memory) // 1024,
    }


def ask_postgres(address: str, question: str) -> int:
    engine = sa.create_engine(address.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)
    try:
        with engine.connect() as connection:
            return int(connection.execute(sa.text(question)).scalar_one())
    except OperationalError:
        return 0


def size_of(address: str, postgres: bool) -> int:
    if postgres:
        return ask_postgres(address, "SELECT pg_database_size(current_database())")
    return sum(path.stat().st_size for path in Path(address).parent.glob("fleet.db*"))


def try_it(options: Conditions) -> dict[str, object]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        postgres = None
        if options.postgres or options.together:
            if (programs := postgres_programs()) is None:
                raise SystemExit("There is no Postgres on this machine.")
            postgres = stack.enter_context(own_postgres(programs))
        if postgres and options.together:
            rounds = [
                start_together(postgres.address, options.together, folder / "ledger", LONGEST) for _ in range(ROUNDS)
            ]
            return {
                "workers": options.together,
                "times that all have started": len(rounds),
                "seconds, median and longest": (round(statistics.median(rounds), 1), round(max(rounds), 1)),
                "load": round(os.getloadavg()[0], 1),
            }
        return asyncio.run(run(options, folder, postgres))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in Conditions()._asdict().items():
        option = f"--{name.replace('_', '-')}"
        if value is False:
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, type=float if isinstance(value, float) else int, default=value)
    print(json.dumps(try_it(Conditions(**vars(parser.parse_args()))), indent=2))


if __name__ == "__main__":
    main()
