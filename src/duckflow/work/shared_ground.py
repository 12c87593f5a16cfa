"""The work folder, shared by agents that change things at the same time: whose a file is, and whose turn it is."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from itertools import takewhile
from pathlib import Path, PurePosixPath

from duckflow.state.agent import AgentState
from duckflow.state.schedule import held, touched
from duckflow.tools.pausing import PausableTimeout

WILD = re.compile(r"[*?\[]")


class SharedGround:
    """A file belongs to the agent that named or changed it first, until that one ends. Edits of different files go on
    side by side; a command may touch anything, so it runs while nothing else of the agents changes something."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._owners: dict[PurePosixPath, str] = {}
        self._moved = asyncio.Condition()
        self._editing = 0
        self._alone = False

    def claim(self, agent: str, paths: Iterable[str]) -> tuple[str, str] | None:
        """Take the files, or none of them: then the first that is somebody else's, and whose."""
        wanted = [self._plain(path) for path in paths]
        for path in wanted:
            if owner := self._owner(agent, path):
                return str(path), owner
        self._owners |= dict.fromkeys(wanted, agent)
        return None

    def release(self, agent: str) -> None:
        self._owners = {path: owner for path, owner in self._owners.items() if owner != agent}

    def within(self, path: str, files: Iterable[str]) -> bool:
        """Whether the path is one of these, or lies below one."""
        plain = self._plain(path)
        return any(plain.is_relative_to(self._plain(one)) for one in files)

    @asynccontextmanager
    async def changing(self, alone: bool, timeout: PausableTimeout | None) -> AsyncGenerator[None]:
        """Inside something is changed: `alone`, when it cannot be told what. To wait for that takes no time."""
        if timeout:
            timeout.hold()
        try:
            async with self._moved:
                await self._moved.wait_for(lambda: not self._alone and not (alone and self._editing))
                self._alone, self._editing = alone, self._editing + 1
        finally:
            if timeout:
                timeout.release()
        try:
            yield
        finally:
            self._alone, self._editing = False, self._editing - 1
            await asyncio.shield(self._tell())

    async def _tell(self) -> None:
        async with self._moved:
            self._moved.notify_all()

    def _owner(self, agent: str, path: PurePosixPath) -> str:
        for other, owner in self._owners.items():
            if owner != agent and (path.is_relative_to(other) or other.is_relative_to(path)):
                return owner
        for job in self._state.live_jobs():
            plan = self._state.plans.get(job.plan_id)
            for step in plan.steps if plan else ():
                if step.status == "in_progress" and str(path) in touched(step, named=True) | held(step):
                    return job.name
        return ""

    def _plain(self, path: str) -> PurePosixPath:
        """Below the work folder, wherever links and `..` lead. A pattern stands for the folder that it looks in."""
        folder = os.path.realpath(self._state.folder)
        meant = Path.home() / path[2:] if path.startswith("~/") else Path(folder, path)
        real = os.path.relpath(os.path.realpath(meant), folder)
        return PurePosixPath(*takewhile(lambda part: not WILD.search(part), real.split("/")))
