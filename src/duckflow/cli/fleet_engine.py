"""The engine of this machine's fleets."""

import importlib.util
import os
import platform
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.cli.parser import Options
from duckflow.errors import DuckflowError, UsageError
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths, private_folder

if TYPE_CHECKING:
    from duckflow.fleet.database_engine import DatabaseEngine
    from duckflow.fleet.engine import Happening

DATABASE = "DUCKFLOW_FLEET_DATABASE"
HOOK = "DUCKFLOW_FLEET_HOOK"
"""A command of the user's; a file with tasks cannot name one, since it may lie in a repository."""
FILE = "fleet.db"
PART = "sqlalchemy"


def folder_of(name: str) -> str:
    return str(Path(name).expanduser().resolve()) if name else ""


def clones_of(paths: Paths) -> Path:
    """Where repositories are cloned to that tasks name by their address. Commands must not see Duckflow's own data."""
    return paths.worktrees.with_name(f"{paths.data.name}-clones")


def call_hook(words: Words, happening: "Happening") -> None:
    """Starts the user's own command, and does not wait for it."""
    if not (command := os.environ.get(HOOK)):
        return
    told = happening._asdict() | {"said": words.phrase(happening.said) if happening.said else ""}
    variables = {f"DUCKFLOW_{name.upper()}": str(value) for name, value in told.items()}
    nowhere = subprocess.DEVNULL
    subprocess.Popen(
        ("/bin/sh", "-c", command),
        env={**os.environ, **variables},
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        start_new_session=True,
    )


def open_engine(options: Options, words: Words, paths: Paths) -> "DatabaseEngine":
    if not importlib.util.find_spec(PART):
        raise UsageError("fleet.not_installed", module=PART)
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    from duckflow.cli.fleet_workshop import make_workshop
    from duckflow.fleet.attempt import Attempts
    from duckflow.fleet.database_engine import DatabaseEngine
    from duckflow.fleet.ranking import choose
    from duckflow.fleet.worker import Workplace

    private_folder(paths.data)
    given = options.database or os.environ.get(DATABASE, "")
    address = given.removeprefix("sqlite:///") or str(paths.data / FILE)
    below = folder_of(options.repositories or "")
    place = Workplace(options.place or platform.node(), options.at_once, options.lease, below, str(clones_of(paths)))
    try:
        carry_out, notify = Attempts(make_workshop(words, paths)).carry_out, partial(call_hook, words)
        return DatabaseEngine(address, carry_out, choose, place, notify)
    except (SQLAlchemyError, ValueError) as problem:
        reason = str(problem.orig if isinstance(problem, DBAPIError) else problem).strip()
        raise DuckflowError("fleet.database_away", reason=reason.split("\n")[0]) from problem
