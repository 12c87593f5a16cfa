"""Limits and budgets of calls to models, over all workers, and the log line when more was used."""

import asyncio
import time
from pathlib import Path

import pytest

from duckflow.allowance import CallUsed, CallWanted
from duckflow.errors import BudgetSpent
from duckflow.fleet.allowance import MINUTE, CallLedger, Granted
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.engine import FleetOrder, Limit
from duckflow.fleet.task import AttemptOrder, AttemptPort, AttemptReport, FleetTask
from tests.fleet.postgres import own_postgres, postgres_programs
from tests.fleet.stand_in import open_engine
from tests.fleet.yard import MemoryDesk, Yard, write

LONGEST = 60.0


class Books:
    """A fleet in a database, and workers that want to call models."""

    def __init__(self, place: Path | str, limit: str = "", **budgets: float) -> None:
        address = place if isinstance(place, str) else str(place / "fleet.db")
        self.engine = open_engine(address, "here", 2, 3.0, carry_out)
        self.task = FleetTask(name="t", repository="/r", prompt="p")
        limits = [Limit.read(limit)] if limit else []
        order = FleetOrder([self.task], limits=limits)._replace(**budgets)
        self.order = AttemptOrder(fleet=self.engine.start(order), task=self.task, number=1)
        self._database = FleetDatabase(address)
        self.ledger = CallLedger(self._database, "w")

    def ask(self, prompt: int = 10, reply: int = 10, dollars: float | None = 0.0, worker: str = "w") -> Granted:
        wanted = CallWanted(model="m:x", prompt=prompt, reply=reply, dollars=dollars)
        return CallLedger(self._database, worker).ask(self.order, wanted)

    def settle(self, granted: Granted, tokens: int, dollars: float = 0.0) -> None:
        self.ledger.settle(self.order, granted.call, CallUsed(tokens=tokens, dollars=dollars))

    def told(self) -> list[str]:
        return [line.said.key for line in self.engine.logs(self.order.fleet)]


async def carry_out(order: AttemptOrder, link: AttemptPort) -> AttemptReport:
    raise NotImplementedError


def test_requests_of_a_minute_are_counted_over_all_workers(tmp_path: Path) -> None:
    books = Books(tmp_path, "m:*=/2")
    first, second, third = books.ask(worker="one"), books.ask(worker="two"), books.ask()
    assert first.call and second.call and first.call != second.call
    assert not third.call and 0 < third.wait <= MINUTE
    # Ended calls make no room: a minute has to pass since they were begun.
    books.settle(first, 5)
    assert books.ask().wait > 0


def test_tokens_of_a_minute_count_as_expected_and_then_as_really_used(tmp_path: Path) -> None:
    books = Books(tmp_path, "m:*=//100")
    first = books.ask(prompt=40, reply=40)
    assert first.call and books.ask(prompt=20, reply=10).wait > 0
    books.settle(first, 50)
    second = books.ask(prompt=20, reply=10)
    assert second.call and books.told() == []
    # A reply that is longer than expected is logged, and keeps the next call waiting.
    books.settle(second, 70)
    assert books.told() == ["fleet.limit_over"]
    assert books.ask(prompt=1, reply=1).wait > 0
    refused = books.ask(prompt=101)
    assert refused.refused and refused.refused.key == "fleet.limit_small"


def test_a_budget_is_checked_before_a_call_and_the_last_call_is_made_alone(tmp_path: Path) -> None:
    books = Books(tmp_path, budget_usd=1.0)
    books.settle(books.ask(prompt=50, reply=50, dollars=0.1), 100, 0.5)
    # At that price two calls of 60 tokens do not fit together: the second waits until the first has ended.
    first = books.ask(prompt=50, reply=10, dollars=0.1)
    assert first.call and books.ask(prompt=50, reply=10, dollars=0.1).wait > 0
    books.settle(first, 60, 0.7)
    assert books.told() == ["fleet.budget_over"]
    refused = books.ask(prompt=1, reply=1)
    assert refused.over == "fleet" and refused.refused and refused.refused.key == "fleet.budget_spent"
    (state,) = books.engine.fleets()
    assert (round(state.cost_usd, 2), state.tokens) == (1.2, 160)


@pytest.mark.slow
def test_budgets_hold_on_postgres_too() -> None:
    if (programs := postgres_programs()) is None:
        pytest.skip("There is no Postgres on this machine.")
    with own_postgres(programs) as postgres:
        books = Books(postgres.address, "m:*=//500", budget_usd=1.0, budget_tokens=1000)
        books.settle(books.ask(prompt=50, reply=50, dollars=0.1), 100, 0.5)
        books.settle(books.ask(prompt=50, reply=10, dollars=0.1), 60, 0.7)
        assert books.told() == ["fleet.budget_over"] and books.ask(prompt=1, reply=1).over == "fleet"
        (state,) = books.engine.fleets()
        assert (round(state.cost_usd, 2), state.tokens) == (1.2, 160)
        books.engine.close()


def test_a_budget_of_money_refuses_a_model_without_a_known_price(tmp_path: Path) -> None:
    refused = Books(tmp_path, budget_usd=1.0).ask(dollars=None)
    assert refused.refused and refused.refused.key == "fleet.no_price" and not refused.over


def test_a_budget_of_tokens_needs_no_price(tmp_path: Path) -> None:
    books = Books(tmp_path, budget_tokens=100)
    books.settle(books.ask(prompt=50, reply=40, dollars=None), 80)
    assert books.ask(prompt=21, dollars=None).over == "fleet"
    assert books.ask(prompt=20, dollars=None).call


async def test_open_calls_of_a_dead_worker_count_as_expected(tmp_path: Path) -> None:
    books = Books(tmp_path, "m:*=//100")
    assert books.ask(prompt=40, reply=40, worker="gone").call

    async def end_at_once(order: AttemptOrder, link: AttemptPort) -> AttemptReport:
        return AttemptReport(order=order, outcome="failed")

    working = open_engine(str(tmp_path / "fleet.db"), "here", 2, 3.0, end_at_once)
    await asyncio.wait_for(working.work(books.order.fleet), LONGEST)
    (attempt,) = working.attempts(books.order.fleet)
    assert (attempt.state, attempt.tokens) == ("failed", 80)
    working.close()


class StrictDesk(MemoryDesk):
    """A link that grants calls after a while, or not at all."""

    def __init__(self, seconds: float, refuses: bool = False) -> None:
        super().__init__()
        self._wait = seconds
        self._refuses = refuses

    async def allow(self, wanted: CallWanted) -> int:
        await asyncio.sleep(self._wait)
        if self._refuses:
            raise BudgetSpent("fleet.budget_spent", what="fleet")
        return await super().allow(wanted)


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    return Yard(tmp_path, monkeypatch)


async def test_an_attempt_asks_before_each_call_and_waiting_costs_no_time(yard: Yard) -> None:
    link, began = StrictDesk(4.0), time.monotonic()
    report = await yard.carry_out(yard.task([write("tax.py", "TAX = 2\n")], minutes=0.1), link)
    assert report.outcome == "done", (report.open, link.notes)
    assert len(link.calls) >= 1 and link.calls[0].model.startswith("scripted") and link.calls[0].prompt > 100
    assert time.monotonic() - began > 4.0 and report.seconds < time.monotonic() - began - 3.9


async def test_an_attempt_ends_where_no_call_is_granted(yard: Yard) -> None:
    report = await yard.carry_out(yard.task([write("tax.py", "TAX = 2\n")]), StrictDesk(0.0, refuses=True))
    assert report.outcome == "budget" and report.open and report.open.key == "fleet.budget_spent", report
