"""Steps side by side: a conflict is seen before it happens, and the step that would make it waits."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from duckflow.agent.session import Session
from duckflow.events.types import Noticed
from duckflow.state.phrase import say
from duckflow.state.plan import Step
from duckflow.state.schedule import clash, held, touched


class Lanes:
    """One list of tasks at a time for each file. What a step has changed stays its own until it is over; a command may
    change anything, so it runs while no other list does. Where all wait for each other, the first of the plan goes on:
    it finds the others standing still, and no file is overwritten that changed since it was read."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._begun: set[str] = set()
        self._active: set[str] = set()
        self._waiting: set[str] = set()
        self._changed = asyncio.Event()

    def begin(self, step_id: str) -> None:
        self._begun.add(step_id)

    def end(self, step_id: str) -> None:
        self._begun.discard(step_id)
        self._tell()

    @asynccontextmanager
    async def through(self, step_id: str) -> AsyncGenerator[None]:
        """Inside, the open tasks of the step can be run."""
        told: set[str] = set()
        self._waiting.add(step_id)
        self._tell()
        try:
            while other := self._in_the_way(step_id):
                if other.step_id not in told and (step := self._step(step_id)):
                    self._session.emit(Noticed(what=say("job.step_waits", step=step.name, other=other.name)))
                told.add(other.step_id)
                await self._changed.wait()
        finally:
            self._waiting.discard(step_id)
        self._active.add(step_id)
        try:
            yield
        finally:
            self._active.discard(step_id)
            self._tell()

    def _in_the_way(self, step_id: str) -> Step | None:
        step = self._step(step_id)
        if step is None:
            return None
        wants, named = touched(step), touched(step, named=True)
        others = [one for one in self._steps() if one.step_id in self._begun and one.step_id != step_id]
        for other in others:
            if other.step_id in self._active and clash(wants, touched(other) | held(other)):
                return other
        if all(one.step_id in self._waiting for one in others) and self._first(step_id):
            return None
        return next((other for other in others if clash(named, held(other))), None)

    def _steps(self) -> list[Step]:
        return [step for plan in self._session.state.plans.values() for step in plan.steps]

    def _first(self, step_id: str) -> bool:
        return next((one.step_id for one in self._steps() if one.step_id in self._waiting), "") == step_id

    def _step(self, step_id: str) -> Step | None:
        return next((one for one in self._steps() if one.step_id == step_id), None)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
