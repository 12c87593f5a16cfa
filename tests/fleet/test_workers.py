"""Workers that lose their lease, machines without a worker, models with a limit: with processes of their own."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa

from duckflow.fleet.engine import FleetOrder, Limit
from duckflow.fleet.task import Answered, FleetTask
from tests.fleet.postgres import own_postgres, postgres_programs
from tests.fleet.stand_in import hold_a_lock, open_engine, start_together

LEASE = 3.0
LONGEST = 120.0
pytestmark = pytest.mark.slow


class Yard:
    """A database, a ledger, and an engine that may work too."""

    def __init__(self, folder: Path, address: str = "") -> None:
        self.address = address or str(folder / "fleet.db")
        self.ledger = folder / "ledger"
        self.engine = open_engine(self.address, "here", 4, LEASE, hold_a_lock(self.ledger, 0.1))

    def start(self, *names: str, places: tuple[str, ...] = (), limits: tuple[Limit, ...] = ()) -> str:
        tasks = [
            FleetTask(
                name=name, repository="/r", prompt="p", model="m", pick="best", attempts=1, budget_usd=0, minutes=1
            )
            for name in names
        ]
        return self.engine.start(FleetOrder(tasks, 0.0, places, limits))

    @asynccontextmanager
    async def worker(self, seconds: float, address: str = "") -> AsyncGenerator[asyncio.subprocess.Process]:
        """Starts a worker, which reaches the database by another address if one is given."""
        command = (sys.executable, "-m", "tests.fleet.stand_in", address or self.address, "here", "4", str(LEASE))
        worker = await asyncio.create_subprocess_exec(*command, str(self.ledger), str(seconds))
        try:
            yield worker
        finally:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()

    def written(self) -> list[list[str]]:
        return [line.split() for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []

    def ended(self, line: int) -> bool:
        """Says whether the process that wrote it has ended, even if its parent has not noticed."""
        stat = Path(f"/proc/{self.written()[line][2]}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"

    def words(self) -> list[str]:
        return [line[0] for line in self.written()]


async def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def test_a_worker_that_is_stopped_for_too_long_is_ended_before_its_attempt_goes_on(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    fleet = yard.start("long")
    async with yard.worker(60) as stopped:
        await until(lambda: yard.words() == ["begin"])
        stopped.send_signal(signal.SIGSTOP)
        await asyncio.wait_for(yard.engine.work(fleet), LONGEST)
        assert await stopped.wait() == -signal.SIGKILL
    assert yard.words() == ["begin", "begin", "end"]
    assert [each.goes for each in yard.engine.attempts(fleet)] == [2]
    yard.engine.close()


async def test_attempts_of_a_killed_local_worker_go_on_before_its_lease_runs_out(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    yard.engine.close()
    yard.engine = open_engine(yard.address, "here", 4, 600.0, hold_a_lock(yard.ledger, 0.1))
    fleet = yard.start("long")
    command = (sys.executable, "-m", "tests.fleet.stand_in", yard.address, "here", "4", "600", str(yard.ledger), "60")
    killed = await asyncio.create_subprocess_exec(*command)
    await until(lambda: yard.words() == ["begin"])
    killed.kill()
    await asyncio.wait_for(yard.engine.work(fleet), 60)
    await killed.wait()
    assert yard.words() == ["begin", "begin", "end"]
    yard.engine.close()


async def test_a_worker_that_others_take_for_dead_stops_itself_and_all_it_started(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    fleet = yard.start("long")
    async with yard.worker(60) as fenced:
        await until(lambda: yard.words() == ["begin"])
        # Another machine, which cannot reach this one, would mark the worker in this way.
        from sqlalchemy import update

        from duckflow.fleet.database import FleetDatabase
        from duckflow.fleet.tables import WORKERS

        database = FleetDatabase(yard.address)
        database.do(lambda connection: connection.execute(update(WORKERS).values(until=0.0)))
        database.close()
        assert await asyncio.wait_for(fenced.wait(), LONGEST)
    pid = yard.written()[0][2]
    assert not Path(f"/proc/{pid}").exists()
    (attempt,) = yard.engine.attempts(fleet)
    assert attempt.state == "queued"
    await asyncio.wait_for(yard.engine.work(fleet), LONGEST)
    assert [each.state for each in yard.engine.attempts(fleet)] == ["done"]
    assert "TWICE" not in yard.words()
    yard.engine.close()


class Cable:
    """A TCP connection to a database that can be held up: nothing arrives any more, and nobody is told."""

    def __init__(self, address: str) -> None:
        self._url = sa.make_url(address)
        self._flows = asyncio.Event()
        self._flows.set()

    async def lay(self) -> str:
        """Returns the address of the database at this end."""
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        return self._url.set(port=server.sockets[0].getsockname()[1]).render_as_string(hide_password=False)

    def hold_up(self) -> None:
        self._flows.clear()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(self._url.host, self._url.port)
        with suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(self._carry(reader, there_writer), self._carry(there_reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while some := await reader.read(65536):
            await self._flows.wait()
            writer.write(some)
        writer.close()


async def test_a_worker_whose_database_falls_silent_has_ended_its_attempts_before_another_begins(
    tmp_path: Path,
) -> None:
    if (programs := postgres_programs()) is None:
        pytest.skip("There is no Postgres on this machine.")
    with own_postgres(programs) as postgres:
        yard = Yard(tmp_path, postgres.address)
        fleet = yard.start("one", "two")
        cable = Cable(postgres.address)
        async with yard.worker(60, await cable.lay()):
            await until(lambda: yard.words().count("begin") == 2)
            # It has room for two more, so it also asks the silent database for work.
            cable.hold_up()
            await until(lambda: all(yard.ended(line) for line in range(2)))
            assert all(each.goes == 1 for each in yard.engine.attempts(fleet))
            await asyncio.wait_for(yard.engine.work(fleet), LONGEST)
        assert sorted(yard.words()) == ["begin"] * 4 + ["end"] * 2
        yard.engine.close()


async def test_a_question_outlives_its_worker_and_is_asked_once(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    fleet = yard.start("asks")
    async with yard.worker(0) as killed:
        await until(lambda: len(yard.engine.inbox()) == 1)
        killed.kill()
        await killed.wait()
    (asked,) = yard.engine.inbox()
    assert yard.engine.answer(Answered(asked_id=asked.asked_id, text="yes")) == 1
    await asyncio.wait_for(yard.engine.work(fleet), LONGEST)
    assert yard.engine.inbox() == ()
    report = yard.engine.attempts(fleet)[0].report
    assert report and report.said == "yes"
    yard.engine.close()


async def test_attempts_of_a_dead_or_stopped_worker_are_cancelled_at_once(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    fleet = yard.start("asks", "long")
    async with yard.worker(60) as killed:
        await until(lambda: len(yard.engine.inbox()) == 1 and yard.words() == ["begin"])
        killed.kill()
        await killed.wait()
    yard.engine.cancel(fleet, "asks")
    assert [each.state for each in yard.engine.tasks(fleet)] == ["cancelled", "waiting"] and not yard.engine.inbox()
    yard.engine.cancel(fleet)
    assert [each.state for each in yard.engine.tasks(fleet)] == ["cancelled", "cancelled"]
    assert yard.ended(0)
    # A worker that was stopped for longer than its lease does not go on when it wakes up.
    fleet = yard.start("slow")
    async with yard.worker(60) as stopped:
        await until(lambda: len(yard.written()) == 2)
        stopped.send_signal(signal.SIGSTOP)
        await asyncio.sleep(LEASE * 1.5)
        yard.engine.cancel(fleet)
        assert [each.state for each in yard.engine.attempts(fleet)] == ["cancelled"]
        assert yard.ended(1)
        stopped.send_signal(signal.SIGCONT)
        # The worker has noticed that its process is gone.
        await until(lambda: not Path(f"/proc/{yard.written()[1][2]}").exists())
    assert [each.state for each in yard.engine.tasks(fleet)] == ["cancelled"] and len(yard.written()) == 2
    yard.engine.close()


async def test_requests_to_a_model_are_limited_per_minute(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    fleet = yard.start("t1", "t2", "t3", limits=(Limit(model="m", requests=2),))
    await asyncio.wait_for(yard.engine.work(fleet), LONGEST)
    assert yard.words().count("begin") == 3 and "TWICE" not in yard.words()
    first, second, third = sorted(float(line[3]) for line in yard.written() if line[0] == "begin")
    # Two start at once, whatever the load; the third waits until a minute has passed since the first.
    assert second - first < 30 and third - first > 50
    yard.engine.close()


async def test_a_limited_model_is_used_by_one_attempt_at_a_time_over_all_workers(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    fleet = yard.start(*(f"t{number}" for number in range(5)), limits=(Limit(model="m", at_once=1),))
    async with yard.worker(0.3), yard.worker(0.3):
        await until(lambda: all(each.state == "done" for each in yard.engine.tasks(fleet)))
    assert yard.words() == ["begin", "end"] * 5
    yard.engine.close()


async def test_tasks_of_a_machine_without_a_worker_go_to_another_of_the_fleet(tmp_path: Path) -> None:
    yard = Yard(tmp_path)
    fleet = yard.start("one", "two", "three", places=("gone", "here"))
    await asyncio.wait_for(yard.engine.work(fleet), LONGEST)
    assert [(each.state, each.place) for each in yard.engine.tasks(fleet)] == [("done", "here")] * 3
    yard.engine.close()


@pytest.mark.parametrize("together", [2, 4, 8])
def test_workers_that_start_together_on_an_empty_postgres_all_start(tmp_path: Path, together: int) -> None:
    if (programs := postgres_programs()) is None:
        pytest.skip("There is no Postgres on this machine.")
    with own_postgres(programs) as postgres:
        for _ in range(5):
            start_together(postgres.address, together, tmp_path / "ledger", LONGEST)
