"""The tables of the fleets' database. Models such as FleetTask are stored as their JSON."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeEngine

from duckflow.fleet.database import METADATA
from duckflow.fleet.engine import LIVE

Kind = type[TypeEngine[Any]]


def _key(name: str, kind: Kind = sa.String) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True)


def _given(name: str, kind: Kind = sa.String, default: str | None = None, index: bool = False) -> sa.Column[Any]:
    """Makes a column that is never null."""
    return sa.Column(name, kind, nullable=False, server_default=default, index=index)


FLEETS = sa.Table(
    "fleet_fleets",
    METADATA,
    _key("fleet"),
    _given("started", sa.Float),
    _given("budget_usd", sa.Float),
    _given("budget_tokens", sa.BigInteger, default="0"),
    _given("places", sa.JSON),
)

TASKS = sa.Table(
    "fleet_tasks",
    METADATA,
    _key("fleet"),
    _key("name"),
    _given("position", sa.Integer),
    _given("task", sa.Text),
    _given("model", default=""),
    _given("priority", sa.Integer, default="0"),
    _given("after", sa.JSON, default="[]"),
    _given("place", index=True),
    _given("state", default="waiting"),
    # Number of times that attempts were started for the task.
    _given("round", sa.Integer, default="1"),
    sa.Column("picked", sa.Integer),
    _given("merged", default=""),
    # The remote and branch to which the task's result was pushed, or the address of its pull request.
    _given("delivered", default=""),
)

ATTEMPTS = sa.Table(
    "fleet_attempts",
    METADATA,
    _key("fleet"),
    _key("task"),
    _key("number", sa.Integer),
    _given("round", sa.Integer),
    _given("mend", default=""),
    _given("state", default="queued"),
    _given("doing", default=""),
    # The outcome that somebody wants for the attempt. The worker that runs the attempt ends it with this outcome.
    _given("wanted", default=""),
    # The worker that runs the attempt, or ran it last.
    sa.Column("worker", sa.String, index=True),
    _given("goes", sa.Integer, default="0"),
    # The time when the latest worker took the attempt.
    _given("taken", sa.Float, default="0"),
    _given("ended", sa.Float, default="0"),
    # The usage of the attempt's calls that have ended.
    _given("cost_usd", sa.Float, default="0"),
    _given("tokens", sa.BigInteger, default="0"),
    sa.Column("report", sa.Text),
)

WORKERS = sa.Table(
    "fleet_workers",
    METADATA,
    _key("worker"),
    _given("place", index=True),
    _given("machine"),
    _given("pid", sa.Integer),
    _given("born"),
    # The end of the worker's lease; 0 when others have noticed the end. A worker never comes back under the same name.
    _given("until", sa.Float),
    # The time of the lease's last renewal.
    _given("seen", sa.Float, default="0"),
)

QUESTIONS = sa.Table(
    "fleet_questions",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("asked_id", sa.String, nullable=False, unique=True),
    _given("fleet", index=True),
    _given("task"),
    _given("attempt", sa.Integer),
    _given("same"),
    _given("asked", sa.Text),
    sa.Column("answered", sa.Text),
    # The go (the number of the try) at the attempt in which the question was last asked. A later go gets the same
    # answer.
    _given("go", sa.Integer, default="0"),
    # True for a question that was taken back.
    sa.Column("closed", sa.Boolean, nullable=False, server_default=sa.false()),
)

LINES = sa.Table(
    "fleet_lines",
    METADATA,
    sa.Column("line", sa.Integer, primary_key=True, autoincrement=True),
    _given("at", sa.Float),
    _given("fleet", index=True),
    _given("task"),
    _given("attempt", sa.Integer),
    _given("said", sa.Text),
)

HISTORY = sa.Table(
    "fleet_history",
    METADATA,
    _key("fleet"),
    _key("position", sa.Integer),
    _given("figures", sa.Text),
)

LIMITS = sa.Table(
    "fleet_limits",
    METADATA,
    _key("model"),
    sa.Column("at_once", sa.Integer),
    sa.Column("requests", sa.Integer),
    sa.Column("tokens", sa.Integer),
)

CALLS = sa.Table(
    "fleet_calls",
    METADATA,
    sa.Column("call", sa.Integer, primary_key=True, autoincrement=True),
    _given("fleet", index=True),
    _given("task"),
    _given("attempt", sa.Integer),
    _given("worker", index=True),
    _given("model"),
    _given("at", sa.Float),
    sa.Column("ended", sa.Float),
    # The expected usage while the call is open, then the real one.
    _given("tokens", sa.Integer),
    _given("dollars", sa.Float),
)

OF_TASK = (TASKS.c.fleet == ATTEMPTS.c.fleet) & (TASKS.c.name == ATTEMPTS.c.task)
"""The condition that joins attempts with their task."""
IS_LIVE = ATTEMPTS.c.state.in_(LIVE)


def task_row(fleet: str, name: str) -> sa.ColumnElement[bool]:
    return (TASKS.c.fleet == fleet) & (TASKS.c.name == name)


def attempt_row(fleet: str, task: str, number: int) -> sa.ColumnElement[bool]:
    return (ATTEMPTS.c.fleet == fleet) & (ATTEMPTS.c.task == task) & (ATTEMPTS.c.number == number)
