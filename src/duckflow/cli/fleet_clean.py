"""`duckflow fleet clean`: removes branches, worktrees and rows of fleets, once the user has agreed."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.cli.fleet_table import agreed, tell
from duckflow.cli.fleet_workshop import folder_of
from duckflow.cli.parser import Options
from duckflow.errors import UsageError
from duckflow.fleet.attempt import Workshop
from duckflow.fleet.clean import Leftover, RepositoryCleaner
from duckflow.fleet.task import FleetTask
from duckflow.fleet.worktree import clone_place, repository_in
from duckflow.state.data import said
from duckflow.ui.streams import print_out

if TYPE_CHECKING:
    from duckflow.fleet.database_engine import Engine


class FleetClean:
    """Cleans up after one fleet, or after all fleets that do not run."""

    def __init__(self, engine: "Engine", options: Options, workshop: Workshop, clones: Path) -> None:
        self._engine = engine
        self._options = options
        self._workshop = workshop
        self._words = workshop.words
        self._below = folder_of(options.repositories)
        self._clones = clones
        self._cleaners: dict[Path, RepositoryCleaner | None] = {}
        self._found: list[Leftover] = []
        self._over: list[str] = []
        self._kept: list[str] = []

    async def run(self, fleet: str) -> int:
        await self._look(fleet)
        if not (self._found or self._over) or not self._agreed():
            self._tell([])
            return 0
        if not self._options.yes:
            # Somebody may have retried a task while the user was asked. Only leftovers that were shown may be removed.
            shown_leftovers, shown_fleets = self._found, self._over
            await self._look(fleet)
            self._found = [candidate for candidate in self._found if candidate in shown_leftovers]
            self._over = [candidate for candidate in self._over if candidate in shown_fleets]
        self._tell(await self._remove())
        return 0

    async def _look(self, fleet: str) -> None:
        self._found, self._over, self._kept, self._cleaners = [], [], [], {}
        for state in self._engine.fleets():
            if fleet not in ("", state.fleet):
                continue
            if not state.ended:
                self._kept.append(self._words("fleet.clean.runs", fleet=state.fleet))
                continue
            may_touch_all = await self._look_at(state.fleet)
            self._over += [state.fleet] if state.over and may_touch_all else []

    async def _look_at(self, fleet: str) -> bool:
        """Looks for leftovers of a fleet, and says whether all its repositories may be touched."""
        attempts = self._engine.attempts(fleet)
        may_touch_all = True
        for task in self._engine.tasks(fleet):
            try:
                repository_cleaner = self._cleaner(task.task)
            except UsageError as problem:
                may_touch_all, text = False, self._words.phrase(said(problem))
                self._kept += [text] if text not in self._kept else []
                continue
            if repository_cleaner:
                leftovers = await repository_cleaner.look(
                    task, [attempt for attempt in attempts if attempt.task == task.task.name]
                )
                self._found += leftovers.found
                self._kept += map(self._words.phrase, leftovers.kept)
        return may_touch_all

    def _cleaner(self, task: FleetTask) -> RepositoryCleaner | None:
        """Returns the cleaner of the task's repository, or None if that is on another machine. Raises UsageError where
        the repository must not be touched."""
        repository = (
            clone_place(task.remote, self._clones) if task.remote else repository_in(self._below, task.repository)
        )
        if repository not in self._cleaners:
            self._workshop.admit(repository)
            is_repository = (repository / ".git").exists()
            self._cleaners[repository] = (
                RepositoryCleaner(repository, self._workshop.worktrees) if is_repository else None
            )
        return self._cleaners[repository]

    def _agreed(self) -> bool:
        """Shows the leftovers and fleets that would be removed, and asks the user."""
        if self._options.yes:
            return True
        if not self._options.json:
            for line in (*map(self._line, self._found), *map(self._rows, self._over)):
                tell(line)
        if self._options.json or not sys.stdin.isatty():
            raise UsageError("fleet.clean.unasked")
        return agreed("fleet.clean.sure", self._words)

    async def _remove(self) -> list[str]:
        """Removes the leftovers and returns a line for each. A branch with somebody else's new work is kept."""
        removed_lines: list[str] = []
        for leftover in self._found:
            repository_cleaner = self._cleaners[leftover.repository]
            if repository_cleaner and await repository_cleaner.remove(leftover):
                removed_lines.append(self._line(leftover))
            else:
                self._kept.append(self._words("fleet.clean.moved", branch=leftover.branch or str(leftover.folder)))
        for fleet in self._over:
            if other_places := self._engine.forget(fleet):
                self._kept.append(self._words("fleet.clean.elsewhere", fleet=fleet, places=", ".join(other_places)))
            else:
                removed_lines.append(self._rows(fleet))
        return removed_lines

    def _line(self, each: Leftover) -> str:
        if each.folder:
            return self._words("fleet.clean.worktree", folder=str(each.folder))
        return self._words("fleet.clean.branch", branch=each.branch, repository=str(each.repository))

    def _rows(self, fleet: str) -> str:
        return self._words("fleet.clean.rows", fleet=fleet)

    def _tell(self, removed: list[str]) -> None:
        if self._options.json:
            print_out(json.dumps({"removed": removed, "kept": self._kept}, ensure_ascii=False))
            return
        for line in self._kept:
            tell(line)
        for line in removed:
            tell(self._words("fleet.clean.removed", what=line))
        if not removed:
            tell(self._words("fleet.clean.nothing"))
