"""Budgets and limits for calls to models, over all workers. The row of a call is written before the call is made.

A call that does not fit into the limits of its model waits. Near the end of a budget calls are made one after the
other, so only the last call can use more than is left of the budget; the log mentions the excess then.
"""

from typing import Any, NamedTuple

import sqlalchemy as sa

from duckflow.allowance import CallUsed, CallWanted
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.engine import Limit
from duckflow.fleet.store import read_limits, write_notes
from duckflow.fleet.tables import ATTEMPTS, CALLS, FLEETS, attempt_row
from duckflow.fleet.task import AttemptOrder, Note
from duckflow.state.data import Phrase, say

ALLOWING = 2026_2206
"""The lock of the database under which calls are granted."""
MINUTE = 62.0
"""Seconds that count as a minute. They include a margin, because a call is made a little after it was granted."""
ANOTHER_LOOK = 1.0
LONGEST_WAIT = 5.0
OPEN = CALLS.c.ended.is_(None)


class Granted(NamedTuple):
    """The answer to a wanted call: the call may be made, has to wait, or may not be made."""

    call: int = 0
    wait: float = 0.0
    refused: Phrase | None = None
    over: str = ""
    """The kind of the used-up budget ("task" or "fleet"); empty if no budget is used up."""


class Budget(NamedTuple):
    """The budget of a task or a fleet, the amount spent so far, and the usage expected of its open calls."""

    what: str
    usd: float
    tokens: int
    spent_usd: float
    spent_tokens: int
    open_usd: float
    open_tokens: int

    def excess(self) -> str:
        """Returns the amount spent beyond the budget, as shown to people; an empty text within the budget."""
        excess_texts = [f"${self.spent_usd - self.usd:.4f}"] if self.usd and self.spent_usd > self.usd else []
        excess_texts += (
            [f"{self.spent_tokens - self.tokens} tokens"] if self.tokens and self.spent_tokens > self.tokens else []
        )
        return ", ".join(excess_texts)


class CallLedger:
    """Grants calls and records their usage. Rows exist for the open calls and for the calls of the last minute."""

    def __init__(self, database: FleetDatabase, worker: str) -> None:
        self._database = database
        self._worker = worker

    def ask(self, order: AttemptOrder, wanted: CallWanted) -> Granted:
        def change(connection: sa.Connection) -> Granted:
            self._database.one_at_a_time(connection, ALLOWING)
            now = self._database.now(connection)
            connection.execute(sa.delete(CALLS).where(CALLS.c.ended < now - MINUTE, CALLS.c.at < now - MINUTE))
            budgets = _budgets(connection, order)
            dollars = max([wanted.dollars or 0.0, *(_likely_cost(budget, wanted) for budget in budgets)])
            for budget in budgets:
                if answer := _within(budget, wanted, dollars):
                    return answer
            if answer := _within_limits(connection, wanted, now):
                return answer
            call_row = {"fleet": order.fleet, "task": order.task.name, "attempt": order.number, "worker": self._worker}
            call_values = {"model": wanted.model, "tokens": wanted.tokens, "dollars": dollars, "at": now}
            insert_query = sa.insert(CALLS).values(**call_row, **call_values).returning(CALLS.c.call)
            return Granted(connection.execute(insert_query).scalar_one())

        return self._database.do(change)

    def settle(self, order: AttemptOrder, call: int, used: CallUsed | None) -> None:
        """Ends a call and records its usage. Without `used` the usage is unknown, and the expected usage counts."""

        def change(connection: sa.Connection) -> None:
            for call_row in connection.execute(sa.select(CALLS).where(OPEN, CALLS.c.call == call)).all():
                now = self._database.now(connection)
                end_call(connection, call_row, now, used)
                phrases = _overshoot(connection, order, call_row.model, now) if used else []
                notes = [Note(order.fleet, order.task.name, order.number, phrase) for phrase in phrases]
                write_notes(self._database, connection, notes)

        self._database.do(change)


def end_calls(connection: sa.Connection, which: sa.ColumnElement[bool], now: float) -> None:
    """Ends calls whose process or worker is gone; their expected usage counts."""
    for call_row in connection.execute(sa.select(CALLS).where(OPEN, which)).all():
        end_call(connection, call_row, now, None)


def end_call(connection: sa.Connection, row: sa.Row[Any], now: float, used: CallUsed | None) -> None:
    used = used or CallUsed(tokens=row.tokens, dollars=row.dollars)
    ended_values = {"ended": now, "tokens": used.tokens, "dollars": used.dollars}
    # Two processes may end the same call; its usage counts once.
    if connection.execute(sa.update(CALLS).where(OPEN, CALLS.c.call == row.call).values(ended_values)).rowcount:
        spent_values = {"cost_usd": ATTEMPTS.c.cost_usd + used.dollars, "tokens": ATTEMPTS.c.tokens + used.tokens}
        is_this_attempt = attempt_row(row.fleet, row.task, row.attempt)
        connection.execute(sa.update(ATTEMPTS).where(is_this_attempt).values(spent_values))


def _budgets(connection: sa.Connection, order: AttemptOrder) -> list[Budget]:
    fleet_query = sa.select(FLEETS.c.budget_usd, FLEETS.c.budget_tokens).where(FLEETS.c.fleet == order.fleet)
    fleet_row, task = connection.execute(fleet_query).one(), order.task
    limits = {"task": (task.budget_usd, task.budget_tokens), "fleet": (fleet_row.budget_usd, fleet_row.budget_tokens)}
    budgets: list[Budget] = []
    for kind, limit in limits.items():
        if any(limit):
            spent_query = sa.select(*_sums(ATTEMPTS.c.cost_usd, ATTEMPTS.c.tokens)).where(
                ATTEMPTS.c.fleet == order.fleet
            )
            open_usage = sa.select(*_sums(CALLS.c.dollars, CALLS.c.tokens)).where(OPEN, CALLS.c.fleet == order.fleet)
            if kind == "task":
                spent_query = spent_query.where(ATTEMPTS.c.task == task.name)
                open_usage = open_usage.where(CALLS.c.task == task.name)
            spent_figures, open_usage = (_figures(connection.execute(sums).one()) for sums in (spent_query, open_usage))
            budgets.append(Budget(kind, *limit, *spent_figures, *open_usage))
    return budgets


def _sums(dollars: sa.Column[Any], tokens: sa.Column[Any]) -> list[sa.Label[Any]]:
    columns = {"dollars": dollars, "tokens": tokens}
    return [sa.func.coalesce(sa.func.sum(column), 0).label(name) for name, column in columns.items()]


def _figures(sums: sa.Row[Any]) -> tuple[float, int]:
    """Converts sums to plain numbers, because Postgres returns sums of large integers as decimals."""
    return float(sums.dollars), int(sums.tokens)


def _likely_cost(budget: Budget, wanted: CallWanted) -> float:
    """Estimates the cost of a call at the average price of tokens so far."""
    return wanted.tokens * budget.spent_usd / budget.spent_tokens if budget.spent_tokens else 0.0


def _within(budget: Budget, wanted: CallWanted, dollars: float) -> Granted | None:
    """Returns None if the call fits the budget. Otherwise the call is refused, or it must wait, if it might fit once
    other calls have ended."""
    if budget.usd and wanted.dollars is None:
        return Granted(refused=say("fleet.no_price", model=wanted.model, limit=budget.usd))
    left_usd, left_tokens = budget.usd - budget.spent_usd, budget.tokens - budget.spent_tokens
    lacks_money = budget.usd and (left_usd <= 0 or (wanted.dollars or 0.0) > left_usd)
    if lacks_money or (budget.tokens and wanted.prompt > left_tokens):
        return Granted(refused=say("fleet.budget_spent", what=budget.what), over=budget.what)
    is_nearly_spent = budget.usd and budget.open_usd + dollars > left_usd
    if (is_nearly_spent or (budget.tokens and budget.open_tokens + wanted.tokens > left_tokens)) and budget.open_tokens:
        return Granted(wait=ANOTHER_LOOK)
    return None


def _within_limits(connection: sa.Connection, wanted: CallWanted, now: float) -> Granted | None:
    wait_seconds = 0.0
    for limit in read_limits(connection):
        if limit.covers(wanted.model):
            if limit.tokens and wanted.prompt > limit.tokens:
                return Granted(refused=say("fleet.limit_small", tokens=wanted.prompt, limit=limit.tokens))
            wait_seconds = max(wait_seconds, _wait_for(limit, wanted, _recent(connection, limit), now))
    return Granted(wait=min(wait_seconds, LONGEST_WAIT)) if wait_seconds else None


def _recent(connection: sa.Connection, limit: Limit) -> list[sa.Row[Any]]:
    return [call_row for call_row in connection.execute(sa.select(CALLS)) if limit.covers(call_row.model)]


def _wait_for(limit: Limit, wanted: CallWanted, calls: list[sa.Row[Any]], now: float) -> float:
    """Returns the seconds until the limit may have room for the call."""
    wait_seconds = 0.0
    start_times = sorted(call.at for call in calls if call.at > now - MINUTE)
    if limit.requests and len(start_times) >= limit.requests:
        wait_seconds = start_times[-limit.requests] + MINUTE - now
    if limit.tokens:
        excess_tokens = _used_tokens(calls, now) + min(wanted.tokens, limit.tokens) - limit.tokens
        for call in sorted((call for call in calls if call.ended), key=lambda call: call.ended):
            if excess_tokens > 0 and call.ended > now - MINUTE:
                excess_tokens -= call.tokens
                wait_seconds = max(wait_seconds, call.ended + MINUTE - now)
        wait_seconds = max(wait_seconds, ANOTHER_LOOK) if excess_tokens > 0 else wait_seconds
    return wait_seconds


def _used_tokens(calls: list[sa.Row[Any]], now: float) -> int:
    return sum(call.tokens for call in calls if call.ended is None or call.ended > now - MINUTE)


def _overshoot(connection: sa.Connection, order: AttemptOrder, model: str, now: float) -> list[Phrase]:
    """Returns a log line for each limit or budget that was exceeded."""
    phrases: list[Phrase] = []
    for limit in read_limits(connection):
        if limit.tokens and limit.covers(model):
            excess = _used_tokens(_recent(connection, limit), now) - limit.tokens
            phrases += (
                [say("fleet.limit_over", model=limit.model, limit=limit.tokens, over=excess)] if excess > 0 else []
            )
    for budget in _budgets(connection, order):
        if excess := budget.excess():
            phrases.append(say("fleet.budget_over", what=budget.what, over=excess))
    return phrases
