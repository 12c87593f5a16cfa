"""Decides who may write a file, while steps of plans and agents work side by side."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager, nullcontext
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from duckflow.agent.session import Session
from duckflow.clock import PausableTimeout
from duckflow.events.types import Noticed
from duckflow.safety.ignore_rules import Wildcard
from duckflow.state.data import Phrase, say, shorten
from duckflow.state.plan import ANYTHING, Step, clash, held, lies_in, next_command, touched
from duckflow.state.progress import LINE

WILD = r"[*?\[]"


class TakenFile(NamedTuple):
    """A file that may not be changed now, because it belongs to another step or agent."""

    path: str
    owner: str


class Obstacle(NamedTuple):
    """The step or agent that a step waits for, and the reason: a file that both change, or a command."""

    owner: str
    file: str = ""
    runner: str = ""
    """The step that runs the command: the waiting one or the other one."""
    command: str = ""

    def notice(self, step: str) -> Phrase:
        if self.file:
            return say("job.step_waits_file", step=step, other=self.owner, file=self.file)
        command = shorten(self.command, LINE)
        return say("job.step_waits_command", step=step, other=self.owner, runner=self.runner, command=command)


class FileLocks:
    """A file belongs to the step or agent that changed or named it first, until that step or agent has ended.

    A step waits until its files are free. Where all steps wait for each other, the first step of the plan goes on: the
    other steps stand still, and no file is overwritten that changed since it was read. An agent does not wait but is
    refused the file, because two agents could wait for each other.

    A command may change anything: a step's command runs while no other step runs its tasks, and an agent's command runs
    while no other agent changes something."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._begun: dict[str, str] = {}
        """The steps that are being carried out, with the names of their jobs."""
        self._running: set[str] = set()
        """The steps whose tasks are running now."""
        self._waiting: set[str] = set()
        self._announced: set[tuple[str, str]] = set()
        """The steps that wait, or have waited, and the owners they waited for, as far as the user was told."""
        self._claims: dict[str, frozenset[str]] = {}
        """The files that each agent has reserved."""
        self._changing: dict[str, frozenset[str]] = {}
        """The files that each agent changes at this moment."""
        self._freed = asyncio.Event()

    @contextmanager
    def holding(self, step_id: str, job: str) -> Generator[None]:
        """Marks the step as being carried out. The files that it has changed stay reserved for it."""
        self._begun[step_id] = job
        try:
            yield
        finally:
            del self._begun[step_id]
            self._announced = {wait for wait in self._announced if wait[0] != step_id}
            self._tell()

    @asynccontextmanager
    async def when_free(self, step_id: str) -> AsyncGenerator[None]:
        """Waits until the files of the step's open tasks are free. The tasks may run inside this context."""
        self._waiting.add(step_id)
        self._tell()
        try:
            while (step := self._step(step_id)) and (obstacle := self._in_the_way(step)):
                if (step_id, obstacle.owner) not in self._announced:
                    self._announced.add((step_id, obstacle.owner))
                    self._session.emit(Noticed(what=obstacle.notice(step.name)))
                await self._freed.wait()
        finally:
            self._waiting.discard(step_id)
        self._running.add(step_id)
        try:
            yield
        finally:
            self._running.discard(step_id)
            self._tell()

    def claim(self, agent: str, paths: Iterable[str]) -> TakenFile | None:
        """Takes these files for an agent. If a file belongs to somebody else, takes none and returns that file with its
        owner."""
        wanted_paths = [self._place(path) for path in paths]
        for path in wanted_paths:
            if owner := self._owner(agent, path):
                return TakenFile(path, owner)
        self._claims[agent] = self._claims.get(agent, frozenset()).union(wanted_paths)
        return None

    def release(self, agent: str) -> None:
        """Frees the files of an agent that has ended."""
        self._claims.pop(agent, None)
        self._tell()

    def within(self, path: str, files: Iterable[str]) -> bool:
        """Says whether the path is one of these files, matches a pattern among them, or lies in a folder among them."""
        real_path = self._real(path)
        path_and_parents = [real_path, *map(str, PurePosixPath(real_path).parents)]
        patterns = [self._real(file) for file in files if file.strip()]
        return any(
            any(map(Wildcard(pattern).matches, path_and_parents))
            if re.search(WILD, pattern)
            else lies_in(real_path, pattern)
            for pattern in patterns
        )

    @asynccontextmanager
    async def changing(self, agent: str, paths: Iterable[str], timeout: PausableTimeout | None) -> AsyncGenerator[None]:
        """Marks these files as being changed by the agent; without paths, all files are marked. The time that the agent
        waits for them is not counted against it."""
        wanted_paths = frozenset(map(self._place, paths)) or frozenset((ANYTHING,))
        with timeout.standing_still() if timeout else nullcontext():
            while any(clash(wanted_paths, files) for files in self._changing.values()):
                await self._freed.wait()
        self._changing[agent] = wanted_paths
        try:
            yield
        finally:
            del self._changing[agent]
            self._tell()

    def _in_the_way(self, step: Step) -> Obstacle | None:
        """Returns the step or agent that has reserved files which this step would change, with the reason; None if
        there is none."""
        wanted_files, named_files = self._files(touched(step)), self._files(touched(step, named=True))
        for agent, files in self._claims.items():
            if file := _shared_file(named_files, files):
                return Obstacle(agent, file)
        other_steps = [other for other in self._steps() if other.step_id in self._begun and other is not step]
        for other in other_steps:
            other_files = self._files(touched(other) | held(other))
            if other.step_id in self._running and clash(wanted_files, other_files):
                runner = step if ANYTHING in wanted_files else other
                return Obstacle(other.name, _shared_file(wanted_files, other_files), runner.name, next_command(runner))
        if all(other.step_id in self._waiting for other in other_steps) and self._is_first(step):
            return None
        held_files = ((other.name, _shared_file(named_files, self._files(held(other)))) for other in other_steps)
        return next((Obstacle(name, file) for name, file in held_files if file), None)

    def _owner(self, agent: str, path: str) -> str:
        wanted_paths = frozenset((path,))
        for other_agent, files in self._claims.items():
            if other_agent != agent and clash(wanted_paths, files):
                return other_agent
        for step in self._steps():
            job = self._begun.get(step.step_id)
            if job and clash(wanted_paths, self._files(touched(step, named=True) | held(step))):
                return job
        return ""

    def _steps(self) -> list[Step]:
        return [step for plan in self._session.state.plans.values() for step in plan.steps]

    def _step(self, step_id: str) -> Step | None:
        return next((step for step in self._steps() if step.step_id == step_id), None)

    def _is_first(self, step: Step) -> bool:
        return next((other for other in self._steps() if other.step_id in self._waiting), None) is step

    def _tell(self) -> None:
        self._freed.set()
        self._freed = asyncio.Event()

    def _files(self, names: Iterable[str]) -> frozenset[str]:
        """Returns these files as plain paths. The mark that stands for any file is kept."""
        return frozenset(name if name == ANYTHING else self._real(name) for name in names)

    def _place(self, path: str) -> str:
        """Returns the plain path. For a pattern this is the folder in which the pattern searches."""
        plain_parts = takewhile(lambda part: not re.search(WILD, part), self._real(path).split("/"))
        return "/".join(plain_parts) or "."

    def _real(self, path: str) -> str:
        """Returns the path relative to the work folder, after following links and `..`."""
        folder = os.path.realpath(self._session.state.folder)
        full_path = Path.home() / path[2:] if path.startswith("~/") else Path(folder, path)
        return os.path.relpath(os.path.realpath(full_path), folder)


def _shared_file(paths: Iterable[str], others: frozenset[str]) -> str:
    """Returns the first of the paths that the others contain, too; an empty text if there is none, or if one of both
    may touch any file."""
    if ANYTHING in others:
        return ""
    return next((path for path in sorted(paths) if path != ANYTHING and clash(frozenset((path,)), others)), "")
