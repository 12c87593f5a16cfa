"""The engine of this machine's fleets: opened for a command, or for the page when it looks into the inbox."""

import asyncio
import importlib.util
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckflow.cli.parser import Options
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths

if TYPE_CHECKING:
    from duckflow.fleet.dbos_engine import DbosEngine
    from duckflow.fleet.engine import Engine

DATABASE = "DUCKFLOW_FLEET_DATABASE"
FILE = "fleet.db"
SHOWN = 5
"""Fleets that the page lists."""
PART = "dbos"


def folder_of(name: str) -> str:
    return str(Path(name).expanduser().resolve()) if name else ""


def open_engine(options: Options, words: Words, paths: Paths) -> "DbosEngine":
    if not importlib.util.find_spec(PART):
        raise UsageError("fleet.not_installed", module=PART)
    from duckflow.cli.fleet_workshop import make_workshop
    from duckflow.fleet.attempt import Attempts
    from duckflow.fleet.dbos_engine import DbosEngine
    from duckflow.fleet.ranking import choose
    from duckflow.fleet.worker import Workplace

    paths.data.mkdir(parents=True, exist_ok=True)
    given = options.database or os.environ.get(DATABASE, "")
    address = given.removeprefix("sqlite:///") or str(paths.data / FILE)
    below = folder_of(options.repositories or "")
    place = Workplace(options.place or platform.node(), options.at_once, options.lease, below)
    return DbosEngine(address, Attempts(make_workshop(words, paths)).carry_out, choose, place)


class PageInbox:
    """What the page sees of the fleets. Opened at the first look at which there is one."""

    def __init__(self, there: Callable[[], bool], make: "Callable[[], Engine]") -> None:
        self._there = there
        self._make = make
        self._made: Engine | None = None
        self._alone = asyncio.Lock()

    async def inbox(self) -> Sequence[Mapping[str, Any]]:
        engine = await self._engine()
        asked = await asyncio.to_thread(engine.inbox) if engine else ()
        return [one.model_dump(mode="json") for one in asked]

    async def fleets(self) -> Sequence[Mapping[str, Any]]:
        engine = await self._engine()
        return await asyncio.to_thread(_listed, engine) if engine else ()

    async def answer(self, asked_id: str, text: str, choice: str, for_all_same: bool) -> bool:
        from duckflow.fleet.task import Answered

        answered = Answered(asked_id=asked_id, text=text, choice=choice, for_all_same=for_all_same)
        engine = await self._engine()
        return bool(engine and await asyncio.to_thread(engine.answer, answered))

    async def _engine(self) -> "Engine | None":
        async with self._alone:
            if self._made is None and self._there():
                self._made = await asyncio.to_thread(self._make)
            return self._made


def _listed(engine: "Engine") -> list[dict[str, Any]]:
    latest = sorted(engine.fleets(), key=lambda one: one.started)[: -SHOWN - 1 : -1]
    return [
        fleet.model_dump(mode="json")
        | {
            "tasks": [
                {
                    "name": state.task.name,
                    "prompt": state.task.prompt,
                    "state": state.state,
                    "picked": state.picked,
                    "merged": state.merged,
                    "attempts": [one.model_dump(mode="json") for one in engine.attempts(fleet.fleet, state.task.name)],
                }
                for state in engine.tasks(fleet.fleet)
            ]
        }
        for fleet in latest
    ]


def page_inbox(words: Words, paths: Paths) -> PageInbox | None:
    """Nothing where the parts of a fleet are not installed."""
    if not importlib.util.find_spec(PART):
        return None

    def there() -> bool:
        return bool(os.environ.get(DATABASE)) or (paths.data / FILE).exists()

    def make() -> "Engine":
        from duckflow.cli.arguments import make_parser

        return open_engine(make_parser("fleet", words).read([]), words, paths)

    return PageInbox(there, make)
