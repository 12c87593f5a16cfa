"""The tables of the fleets. What is a noun elsewhere is kept as its JSON."""

import sqlalchemy as sa

from duckflow.fleet.database import METADATA

FLEETS = sa.Table(
    "fleet_fleets",
    METADATA,
    sa.Column("fleet", sa.String, primary_key=True),
    sa.Column("started", sa.Float, nullable=False),
    sa.Column("budget_usd", sa.Float, nullable=False),
    sa.Column("places", sa.JSON, nullable=False),
)

TASKS = sa.Table(
    "fleet_tasks",
    METADATA,
    sa.Column("fleet", sa.String, primary_key=True),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("place", sa.String, nullable=False, index=True),
    sa.Column("state", sa.String, nullable=False, server_default="waiting"),
    # How often attempts were started for it: a workflow each time.
    sa.Column("round", sa.Integer, nullable=False, server_default="1"),
    sa.Column("picked", sa.Integer),
    sa.Column("merged", sa.String, nullable=False, server_default=""),
)

ATTEMPTS = sa.Table(
    "fleet_attempts",
    METADATA,
    sa.Column("fleet", sa.String, primary_key=True),
    sa.Column("task", sa.String, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("mend", sa.String, nullable=False, server_default=""),
    sa.Column("state", sa.String, nullable=False, server_default="queued"),
    sa.Column("doing", sa.String, nullable=False, server_default=""),
    # An outcome that it is to have: whoever runs it ends it.
    sa.Column("wanted", sa.String, nullable=False, server_default=""),
    sa.Column("worker", sa.String, index=True),
    # Made anew each time that a worker takes it; without it nothing of the attempt can be changed.
    sa.Column("claim", sa.String),
    sa.Column("goes", sa.Integer, nullable=False, server_default="0"),
    sa.Column("started", sa.Float, nullable=False, server_default="0"),
    sa.Column("ended", sa.Float, nullable=False, server_default="0"),
    # Of this go, and of those before it.
    sa.Column("cost_usd", sa.Float, nullable=False, server_default="0"),
    sa.Column("cost_before", sa.Float, nullable=False, server_default="0"),
    sa.Column("tokens", sa.Integer, nullable=False, server_default="0"),
    sa.Column("tokens_before", sa.Integer, nullable=False, server_default="0"),
    sa.Column("report", sa.Text),
)

WORKERS = sa.Table(
    "fleet_workers",
    METADATA,
    sa.Column("worker", sa.String, primary_key=True),
    sa.Column("place", sa.String, nullable=False, index=True),
    sa.Column("machine", sa.String, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("born", sa.String, nullable=False),
    sa.Column("until", sa.Float, nullable=False),
    # Its lease ran out, or it has left: it never comes back under this name.
    sa.Column("dead", sa.Boolean, nullable=False, server_default=sa.false()),
    # What it was doing has been handed on.
    sa.Column("buried", sa.Boolean, nullable=False, server_default=sa.false()),
)

QUESTIONS = sa.Table(
    "fleet_questions",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("asked_id", sa.String, nullable=False, unique=True),
    sa.Column("fleet", sa.String, nullable=False, index=True),
    sa.Column("task", sa.String, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("same", sa.String, nullable=False),
    sa.Column("asked", sa.Text, nullable=False),
    sa.Column("answered", sa.Text),
    # The claim that has heard the answer: a later go at the attempt hears it again.
    sa.Column("heard", sa.String, nullable=False, server_default=""),
    # Nobody waits for an answer any more.
    sa.Column("closed", sa.Boolean, nullable=False, server_default=sa.false()),
)

LINES = sa.Table(
    "fleet_lines",
    METADATA,
    sa.Column("line", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("fleet", sa.String, nullable=False, index=True),
    sa.Column("task", sa.String, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("said", sa.Text, nullable=False),
)

LIMITS = sa.Table(
    "fleet_limits",
    METADATA,
    sa.Column("model", sa.String, primary_key=True),
    sa.Column("at_once", sa.Integer),
    sa.Column("per_minute", sa.Integer),
)
