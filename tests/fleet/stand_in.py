"""A stand-in for attempts: processes that hold a lock while they run, so that two at once would be noticed.

`python -m tests.fleet.stand_in ADDRESS PLACE AT_ONCE LEASE LEDGER SECONDS [FLEET]` is a worker with it.
"""

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.allowance import CallUsed, CallWanted
from duckflow.fleet.host import MARK
from duckflow.fleet.task import Asked, AttemptOrder, AttemptPort, AttemptReport, CarryOut
from duckflow.state.data import say
from duckflow.state.question import Question

if TYPE_CHECKING:
    from duckflow.fleet.database_engine import Engine

CHILD = """
import fcntl, os, sys, time
ledger, attempt, seconds = sys.argv[1:]
lock = open(f"{ledger}.{attempt}.lock", "w")
def write(word):
    with open(ledger, "a") as file:
        file.write(f"{word} {attempt} {os.getpid()} {time.time():.3f}\\n")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    write("TWICE")
write("begin")
time.sleep(float(seconds))
write("end")
"""


def hold_a_lock(ledger: Path, seconds: float) -> CarryOut:
    """Returns a way to carry out attempts that writes into the ledger when they begin and end."""

    async def carry_out(order: AttemptOrder, link: AttemptPort) -> AttemptReport:
        """Carries out an attempt; one at a task named `asks` asks first."""
        link.progress("working")
        call = await link.allow(CallWanted(model=order.task.model, prompt=60, reply=40, dollars=0.01))
        await link.used(call, CallUsed(tokens=100, dollars=0.01))
        said = (await link.ask(ask_whether(order))).text if order.task.name == "asks" else ""
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-S", "-E", "-c", CHILD, str(ledger), order.attempt_id, str(seconds)),
            env={**os.environ, MARK: order.attempt_id},
            start_new_session=True,
        )
        code = await child.wait()
        outcome = "done" if code == 0 else "failed"
        return AttemptReport(order=order, outcome=outcome, branch=order.branch, commit="0" * 40, said=said)

    return carry_out


def ask_whether(order: AttemptOrder) -> Asked:
    return Asked(
        fleet=order.fleet,
        task=order.task.name,
        attempt=order.number,
        question=Question(kind="gate", title=say("gate.title")),
        same="the same",
    )


def pick_first(reports: Sequence[AttemptReport], more: bool) -> int | None:
    """Returns the first attempt that may be merged, once all have ended."""
    return next((each.order.number for each in reports if each.passed and not more), None)


def open_engine(address: str, place: str, at_once: int, lease: float, carry_out: CarryOut) -> "Engine":
    """Opens an engine. The database library is imported only here, so that collecting tests stays fast."""
    from duckflow.fleet.database_engine import Engine
    from duckflow.fleet.worker import Workplace

    return Engine(address, carry_out, pick_first, Workplace(place, at_once, lease))


async def work(address: str, place: str, at_once: int, lease: float, carry_out: CarryOut, fleet: str) -> None:
    engine = open_engine(address, place, at_once, lease, carry_out)
    try:
        await engine.work(fleet)
    finally:
        engine.close()


def start_together(address: str, workers: int, ledger: Path, longest: float) -> float:
    """Starts workers at once on an emptied Postgres, and returns the seconds until all have worked and left. Raises if
    one hangs or fails."""
    import sqlalchemy as sa

    engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(sa.text("DROP SCHEMA public CASCADE"))
        connection.execute(sa.text("CREATE SCHEMA public"))
    engine.dispose()
    # There is no such fleet, so that a worker leaves as soon as it has started.
    figures = ("here", "4", "30", str(ledger), "0", "none")
    began = time.monotonic()
    started = [
        subprocess.Popen([sys.executable, "-m", "tests.fleet.stand_in", address, *figures]) for _ in range(workers)
    ]
    try:
        codes = [process.wait(longest) for process in started]
    finally:
        for process in started:
            process.kill()
    assert codes == [0] * workers, codes
    return time.monotonic() - began


if __name__ == "__main__":
    logging.basicConfig(level="WARNING")
    address, place, at_once, lease, ledger, seconds, *fleet = sys.argv[1:]
    carry_out = hold_a_lock(Path(ledger), float(seconds))
    asyncio.run(work(address, place, int(at_once), float(lease), carry_out, *fleet or ("",)))
