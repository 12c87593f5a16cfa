"""An attempt while a worker carries it out: it talks to the fleet, and can be ended from outside."""

import asyncio
from collections import deque
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


class WorkerStores(NamedTuple):
    """Things that the attempts of one worker share."""

    worker: str
    questions: QuestionStore
    calls: CallLedger
    endings: Endings
    notes: deque[Note]
    """Log lines that the worker has yet to write to the database."""


class RunningAttempt:
    """One attempt under its claim. It takes notes, progress and questions, and its worker brings it the answers."""

    def __init__(self, order: AttemptOrder, claim: str, stores: WorkerStores) -> None:
        self.order = order
        self.claim = claim
        self.doing = ""
        self.waiting: dict[str, asyncio.Future[Answered]] = {}
        """The questions that wait for an answer, by their ids."""
        self._stores = stores
        self._wanted: AttemptOutcome | None = None
        self._task: asyncio.Task[AttemptReport] | None = None

    async def ask(self, asked: Asked) -> Answered:
        if known_answer := await asyncio.to_thread(self._stores.questions.ask, asked, self.claim):
            return known_answer
        happening = Happening("waiting", asked.fleet, asked.task, asked.attempt, asked.question.title)
        await asyncio.to_thread(self._stores.endings.notify, happening)
        answer_future = self.waiting[asked.asked_id] = asyncio.get_running_loop().create_future()
        try:
            return await answer_future
        finally:
            self.waiting.pop(asked.asked_id, None)

    @property
    def needs_place(self) -> bool:
        """Says whether it takes a place among the attempts that may run at once. One that waits for a person does
        not."""
        return not self.waiting

    def withdraw(self, asked: Asked) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._stores.questions.close, asked.asked_id)

    def hear(self, asked_id: str, answered: Answered) -> None:
        if (answer_future := self.waiting.pop(asked_id, None)) and not answer_future.done():
            answer_future.set_result(answered)

    def note(self, text: str) -> None:
        self.say(say(SAID, text=text))

    def say(self, said: Phrase) -> None:
        self._stores.notes.append(Note(self.order.fleet, self.order.task.name, self.order.number, said))

    def progress(self, doing: str) -> None:
        self.doing = doing

    async def allow(self, wanted: CallWanted) -> int:
        order, stores, doing_before = self.order, self._stores, self.doing
        while True:
            answer = await asyncio.to_thread(stores.calls.ask, order, stores.worker, wanted)
            if answer.over:
                task = order.task.name if answer.over == "task" else ""
                await asyncio.to_thread(stores.endings.cancel, order.fleet, task, 0, "budget")
            if answer.refused:
                raise BudgetSpent(answer.refused.key, **answer.refused.values)
            if not answer.wait:
                break
            self.doing = "limited"
            await asyncio.sleep(answer.wait)
        self.doing = doing_before
        return answer.call

    async def used(self, call: int, used: CallUsed | None) -> None:
        await asyncio.to_thread(self._stores.calls.settle, self.order, call, used)

    async def carry_out(self, carry_out: CarryOut) -> AttemptReport:
        """Carries the attempt out, and ends everything that it has started."""

        async def work() -> AttemptReport:
            return await carry_out(self.order, self)

        if self._wanted is not None:
            return AttemptReport(order=self.order, outcome=self._wanted, rating=0)
        self._task = asyncio.create_task(work())
        try:
            await asyncio.wait({self._task})
            return self._report(self._task)
        finally:
            await end_processes(self.order.attempt_id)

    def end(self, outcome: AttemptOutcome) -> None:
        """Ends the attempt with this outcome, in time by itself, else by force."""
        if self._wanted is None:
            self._wanted = outcome
            if self._task is not None:
                self._task.cancel()
                asyncio.get_running_loop().call_later(TIDYING, self._kill)

    def _kill(self) -> None:
        if self._task is not None and not self._task.done():
            self._killing = asyncio.create_task(end_processes(self.order.attempt_id))
            self._task.cancel()

    def _report(self, task: asyncio.Task[AttemptReport]) -> AttemptReport:
        if task.cancelled():
            return AttemptReport(order=self.order, outcome=self._wanted or "cancelled")
        if error := task.exception():
            problem = say("fleet.broke", reason=f"{type(error).__name__}: {error}")
            return AttemptReport(order=self.order, outcome=self._wanted or "failed", open=problem)
        return task.result().model_copy(update={"outcome": self._wanted} if self._wanted else {})
