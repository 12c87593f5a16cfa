"""The attempts that a worker is carrying out, and the link through which each of them talks to the fleet."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from duckflow.allowance import CallUsed, CallWanted
from duckflow.errors import BudgetSpent
from duckflow.fleet.allowance import CallLedger
from duckflow.fleet.endings import Endings
from duckflow.fleet.engine import Happening
from duckflow.fleet.host import end_processes
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.task import Answered, Asked, AttemptOrder, AttemptOutcome, AttemptReport, CarryOut, Note
from duckflow.state.phrase import SAID, Phrase, say

TIDYING = 10.0
"""Seconds in which a cancelled attempt may tidy up by itself before all its processes are killed."""


class Slot:
    """A place among the attempts that may run at once. An attempt that waits for a person gives it to another."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._held = False
        self._taking = asyncio.Lock()

    async def take(self) -> None:
        async with self._taking:
            if not self._held:
                await self._slots.acquire()
                self._held = True

    def free(self) -> None:
        if self._held:
            self._held = False
            self._slots.release()


class WorkerStores(NamedTuple):
    """Things that the links of one worker share."""

    worker: str
    questions: QuestionStore
    calls: CallLedger
    endings: Endings
    notes: deque[Note]


class AttemptLink:
    """Takes notes, progress and questions of an attempt. The worker's WorkerBookkeeper writes them to the database."""

    def __init__(self, order: AttemptOrder, claim: str, office: WorkerStores, slot: Slot) -> None:
        self.doing = ""
        self.waiting: dict[str, asyncio.Future[Answered]] = {}
        self.claim = claim
        self._order = order
        self._office = office
        self._questions = office.questions
        self._slot = slot

    async def ask(self, asked: Asked) -> Answered:
        if answered := await asyncio.to_thread(self._questions.ask, asked, self.claim):
            return answered
        happening = Happening("waiting", asked.fleet, asked.task, asked.attempt, asked.question.title)
        await asyncio.to_thread(self._office.endings.notify, happening)
        future = self.waiting[asked.asked_id] = asyncio.get_running_loop().create_future()
        self._slot.free()
        try:
            answered = await future
        finally:
            del self.waiting[asked.asked_id]
        await self._slot.take()
        return answered

    def withdraw(self, asked: Asked) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._questions.close, asked.asked_id)

    def hear(self, answers: dict[str, Answered]) -> None:
        for asked_id, answered in answers.items():
            if (future := self.waiting.get(asked_id)) and not future.done():
                future.set_result(answered)

    def note(self, text: str) -> None:
        self.say(say(SAID, text=text))

    def say(self, said: Phrase) -> None:
        self._office.notes.append(Note(self._order.fleet, self._order.task.name, self._order.number, said))

    def progress(self, doing: str) -> None:
        self.doing = doing

    async def allow(self, wanted: CallWanted) -> int:
        order, office, doing = self._order, self._office, self.doing
        while True:
            answer = await asyncio.to_thread(office.calls.ask, order, office.worker, wanted)
            if answer.over:
                self.say(say("fleet.budget_spent", what=answer.over))
                task = order.task.name if answer.over == "task" else ""
                await asyncio.to_thread(office.endings.cancel, order.fleet, task, 0, "budget")
            if answer.refused:
                raise BudgetSpent(answer.refused.key, **answer.refused.values)
            if not answer.wait:
                break
            self.doing = "limited"
            await asyncio.sleep(answer.wait)
        self.doing = doing
        return answer.call

    async def used(self, call: int, used: CallUsed | None) -> None:
        await asyncio.to_thread(self._office.calls.settle, self._order, call, used)


class RunningAttempt:
    """One attempt while it is carried out. It can be ended from outside, with everything it has started."""

    def __init__(self, order: AttemptOrder, link: AttemptLink) -> None:
        self.order = order
        self.link = link
        self.ended = asyncio.Event()
        self.wanted: AttemptOutcome | None = None
        self._task: asyncio.Task[AttemptReport] | None = None
        self._loop = asyncio.get_running_loop()

    async def carry_out(self, carry_out: CarryOut) -> AttemptReport:
        async def work() -> AttemptReport:
            return await carry_out(self.order, self.link)

        if self.wanted is not None:
            return AttemptReport(order=self.order, outcome=self.wanted, rating=0)
        self._task = asyncio.create_task(work())
        try:
            await asyncio.wait({self._task})
            return self._report()
        finally:
            await end_processes(self.order.attempt_id)
            self.ended.set()

    def end(self, outcome: AttemptOutcome) -> None:
        """Ends the attempt. It may be called from any thread."""
        self._loop.call_soon_threadsafe(self._end, outcome)

    def do(self, work: Callable[[], None]) -> None:
        """Runs work in the attempt's event loop. It may be called from any thread."""
        self._loop.call_soon_threadsafe(work)

    def _end(self, outcome: AttemptOutcome) -> None:
        if self.wanted is None:
            self.wanted = outcome
            if self._task is not None:
                self._task.cancel()
                self._loop.call_later(TIDYING, self._kill)

    def _kill(self) -> None:
        if self._task is not None and not self._task.done():
            self._killing = asyncio.create_task(end_processes(self.order.attempt_id))
            self._task.cancel()

    def _report(self) -> AttemptReport:
        assert self._task is not None
        if self._task.cancelled():
            outcome, problem = self.wanted or "cancelled", None
        elif error := self._task.exception():
            outcome, problem = self.wanted or "failed", say("fleet.broke", reason=f"{type(error).__name__}: {error}")
        else:
            report = self._task.result()
            return report.model_copy(update={"outcome": self.wanted}) if self.wanted else report
        return AttemptReport(order=self.order, outcome=outcome, open=problem)
