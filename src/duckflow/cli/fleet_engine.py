"""The engine of this machine's fleets."""

import importlib.util
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.cli.parser import Options
from duckflow.errors import DuckflowError, UsageError
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths, private_folder

if TYPE_CHECKING:
    from duckflow.fleet.database_engine import DatabaseEngine

DATABASE = "DUCKFLOW_FLEET_DATABASE"
FILE = "fleet.db"
PART = "sqlalchemy"


def folder_of(name: str) -> str:
    return str(Path(name).expanduser().resolve()) if name else ""


def clones_of(paths: Paths) -> Path:
    """Where repositories are cloned to that tasks name by their address. Commands must not see Duckflow's own data."""
    return paths.worktrees.with_name(f"{paths.data.name}-clones")


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
        return DatabaseEngine(address, Attempts(make_workshop(words, paths)).carry_out, choose, place)
    except (SQLAlchemyError, ValueError) as problem:
        reason = str(problem.orig if isinstance(problem, DBAPIError) else problem).strip()
        raise DuckflowError("fleet.database_away", reason=reason.split("\n")[0]) from problem
