"""The engine on a SQLite file: attempts run, ask, are cancelled and cost money, and workers die."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from duckflow.allowance import CallUsed, CallWanted
from duckflow.errors import BudgetSpent, UsageError
from duckflow.fleet.engine import FleetOrder, Limit
from duckflow.fleet.host import MARK
from duckflow.fleet.task import Answered, AttemptOrder, AttemptPort, AttemptReport, FleetTask
from tests.fleet.stand_in import ask_whether, hold_a_lock, open_engine

LONGEST = 60.0
LEASE = 3.0


def task(name: str, attempts: int = 1, budget_usd: float = 0.0) -> FleetTask:
    return FleetTask(
        name=name, repository="/r", prompt="p", attempts=attempts, pick="best", budget_usd=budget_usd, minutes=1
    )


async def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def carry_out(order: AttemptOrder, link: AttemptPort) -> AttemptReport:
    """Carries out an attempt that does what the name of its task says."""
    said = ""
    match order.task.name.partition("-")[0]:
        case "asks":
            said = (await link.ask(ask_whether(order))).text
        case "sleeps":
            child = await asyncio.create_subprocess_exec(
                "sh", "-c", "sleep 61.5 & sleep 61.5", env={**os.environ, MARK: order.attempt_id}
            )
            link.note(f"pid {child.pid}")
            await child.wait()
        case "spends":
            with suppress(BudgetSpent):
                for _ in range(2):
                    call = await link.allow(CallWanted(model="m", prompt=500, dollars=0.1))
                    await asyncio.sleep(0.2)
                    await link.used(call, CallUsed(tokens=1000, dollars=0.6))
                return AttemptReport(order=order, outcome="failed")
            await asyncio.sleep(LONGEST)
        case "breaks":
            raise ValueError("no")
        case "once" if order.number > 1:
            return AttemptReport(order=order, outcome="failed")
        case _:
            link.note("hello")
    await link.used(await link.allow(CallWanted(model="m", prompt=10)), CallUsed(tokens=10, dollars=0.1))
    return AttemptReport(order=order, outcome="done", branch=order.branch, commit="0" * 40, said=said)


async def test_attempts_are_carried_out_ask_are_cancelled_and_cost_money(tmp_path: Path) -> None:
    engine = open_engine(str(tmp_path / "fleet.db"), "here", 3, LEASE, carry_out)
    names = ("plain", "asks-1", "asks-2", "sleeps", "spends", "breaks")
    fleet = engine.start(FleetOrder([task(name, 2 if name == "asks-1" else 1, budget_usd=0.5) for name in names]))
    assert {each.state for each in engine.tasks(fleet)} == {"waiting"}
    work = asyncio.create_task(engine.work(fleet))

    # Attempts that wait for a person do not block others.
    # Three attempts ask the same: one answer is enough, and nobody can answer twice.
    await until(lambda: len(engine.inbox()) == 3)
    answer = Answered(asked_id=engine.inbox(fleet)[1].asked_id, text="yes", for_all_same=True)
    assert engine.answer(answer) == 3
    assert engine.answer(answer) == 0

    # After the cancellation the children of its processes are gone too.
    await until(lambda: bool(engine.logs(fleet, "sleeps")))
    assert sleeping()
    engine.cancel(fleet, "sleeps")
    await asyncio.wait_for(work, LONGEST)
    assert not sleeping()

    states = {each.task.name: (each.state, each.picked) for each in engine.tasks(fleet)}
    assert states == {
        "plain": ("done", 1),
        "asks-1": ("done", 1),
        "asks-2": ("done", 1),
        "sleeps": ("cancelled", None),
        "spends": ("failed", None),
        "breaks": ("failed", None),
    }
    attempts = {(each.task, each.number): each for each in engine.attempts(fleet)}
    assert attempts["spends", 1].state == "budget"
    spent = attempts["spends", 1].report
    assert spent and spent.open and spent.open.key == "fleet.out_of_budget"
    assert attempts["spends", 1].cost_usd == 0.6
    report = attempts["asks-1", 2].report
    assert report and report.said == "yes"
    broken = attempts["breaks", 1].report
    assert broken and broken.open and "ValueError: no" in str(broken.open.values["reason"])
    assert [line.said.values["text"] for line in engine.logs(fleet, "plain", 1)] == ["hello"]
    (state,) = engine.fleets()
    assert (state.ended, round(state.cost_usd, 2)) == (True, 1.0)

    # The retry has a new number. The answer for all equal questions still holds.
    engine.retry(fleet, "asks-2")
    await asyncio.wait_for(engine.work(fleet), LONGEST)
    assert [(each.number, each.state) for each in engine.attempts(fleet, "asks-2")] == [(1, "done"), (2, "done")]
    engine.merged(fleet, "asks-2", "c" * 40)
    assert [each.merged for each in engine.tasks(fleet) if each.state == "merged"] == ["c" * 40]
    engine.close()


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("m:*=8", (8, None, None)),
        ("m=8/60", (8, 60, None)),
        ("m=/60/900", (None, 60, 900)),
        ("m=//900", (None, None, 900)),
        ("m=", (None, None, None)),
    ],
)
def test_a_limit_is_read_and_can_be_taken_away(text: str, figures: tuple[int | None, ...]) -> None:
    limit = Limit.read(text)
    assert (limit.at_once, limit.requests, limit.tokens) == figures
    assert limit.covers("m:a" if "*" in text else "m")
    for wrong in ("m", "=8", "m=0", "m=x/1", "m=1/2/3/4", "m=2147483648", "m=//99999999999"):
        with pytest.raises(UsageError):
            Limit.read(wrong)


@pytest.mark.slow
async def test_cancelling_takes_effect_at_once_where_no_worker_runs(tmp_path: Path) -> None:
    engine = open_engine(str(tmp_path / "fleet.db"), "here", 2, LEASE, carry_out)
    fleet = engine.start(FleetOrder([task("plain-1", 2), task("plain-2", 2), task("plain-3")]))
    assert [engine.cancel(fleet, "plain-1"), engine.cancel(fleet, "plain-2", 2)] == [2, 1]
    assert engine.cancel(fleet, "plain-1") == 0
    assert [each.state for each in engine.tasks(fleet)] == ["cancelled", "waiting", "waiting"]
    # A worker that comes later does the rest, and only the rest.
    await asyncio.wait_for(engine.work(fleet), LONGEST)
    assert [each.state for each in engine.tasks(fleet)] == ["cancelled", "done", "done"]
    assert [each.goes for each in engine.attempts(fleet)] == [0, 0, 1, 0, 1]
    # A cancelled task can be tried again.
    engine.retry(fleet, "plain-1")
    await asyncio.wait_for(engine.work(fleet), LONGEST)
    assert [each.picked for each in engine.tasks(fleet)] == [3, 1, 1]
    engine.close()


async def test_a_retry_that_fails_leaves_the_earlier_result_to_be_picked(tmp_path: Path) -> None:
    engine = open_engine(str(tmp_path / "fleet.db"), "here", 2, LEASE, carry_out)
    fleet = engine.start(FleetOrder([task("once")]))
    await asyncio.wait_for(engine.work(fleet), LONGEST)
    engine.retry(fleet, "once")
    await asyncio.wait_for(engine.work(fleet), LONGEST)
    assert [each.state for each in engine.attempts(fleet)] == ["done", "failed"]
    assert [(each.state, each.picked) for each in engine.tasks(fleet)] == [("choose", 1)]
    # Until somebody picks it, it is no result.
    assert [(row.state, row.result) for row in engine.figures(fleet)] == [("choose", "")]
    engine.retry(fleet, "once")
    engine.cancel(fleet, "once")
    assert [(each.state, each.picked) for each in engine.tasks(fleet)] == [("choose", 1)]
    engine.close()


async def test_a_task_waits_for_others_and_starts_from_their_result(tmp_path: Path) -> None:
    engine = open_engine(str(tmp_path / "fleet.db"), "here", 3, LEASE, carry_out)
    first, last, vain = task("plain-1"), task("plain-2"), task("plain-3")
    tasks = [vain, last.model_copy(update={"after": ("plain-1",)}), first, task("breaks")]
    tasks[0] = vain.model_copy(update={"after": ("breaks",), "priority": 9})
    fleet = engine.start(FleetOrder(tasks))
    await asyncio.wait_for(engine.work(fleet), LONGEST)
    states = {each.task.name: each.state for each in engine.tasks(fleet)}
    assert states == {"plain-1": "done", "plain-2": "done", "plain-3": "cancelled", "breaks": "failed"}
    attempts = {each.task: each for each in engine.attempts(fleet)}
    assert attempts["plain-1"].ended <= attempts["plain-2"].taken and attempts["plain-3"].goes == 0
    report = attempts["plain-2"].report
    assert report and report.order.task.base == "0" * 40
    engine.close()


@pytest.mark.slow
async def test_the_budget_of_a_fleet_ends_all_of_it(tmp_path: Path) -> None:
    engine = open_engine(str(tmp_path / "fleet.db"), "here", 2, LEASE, carry_out)
    # Two attempts at once spend 1.2 together. The waiting ones never begin then.
    fleet = engine.start(FleetOrder([task(f"spends-{number}") for number in range(5)], budget_usd=1.0))
    await asyncio.wait_for(engine.work(fleet), LONGEST / 2)
    attempts = engine.attempts(fleet)
    assert [each.cost_usd for each in attempts if each.cost_usd] == [0.6, 0.6]
    assert {each.state for each in attempts if each.cost_usd} == {"budget"}
    assert "done" not in {each.state for each in engine.tasks(fleet)}
    (state,) = engine.fleets()
    assert (state.ended, round(state.cost_usd, 2)) == (True, 1.2)
    engine.close()


@pytest.mark.slow
async def test_a_worker_that_is_killed_is_noticed_and_its_attempt_goes_on_elsewhere_once(tmp_path: Path) -> None:
    ledger, database = tmp_path / "ledger", tmp_path / "fleet.db"
    engine = open_engine(str(database), "here", 2, LEASE, hold_a_lock(ledger, 0.1))
    fleet = engine.start(FleetOrder([task("long")]))
    program = [sys.executable, "-m", "tests.fleet.stand_in", str(database), "here", "2", str(LEASE), str(ledger), "60"]
    killed = await asyncio.create_subprocess_exec(*program)
    try:
        await until(lambda: "begin" in text_of(ledger))
    finally:
        killed.send_signal(signal.SIGKILL)
        await killed.wait()
    # The process of the attempt survives its worker. The worker that goes on ends it first.
    await asyncio.wait_for(engine.work(fleet), LONGEST)
    (attempt,) = engine.attempts(fleet)
    assert (attempt.state, attempt.goes) == ("done", 2)
    assert attempt.report and attempt.report.order.go == 2
    assert [line.split()[0] for line in text_of(ledger).splitlines()] == ["begin", "begin", "end"]
    assert [line.said.key for line in engine.logs(fleet)] == ["fleet.worker_died", "fleet.goes_on"]
    engine.close()


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def sleeping() -> list[str]:
    """Returns the processes of the attempt that sleeps."""
    listed = [path / "cmdline" for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [str(path) for path in listed if b"61.5" in read_bytes(path)]


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
