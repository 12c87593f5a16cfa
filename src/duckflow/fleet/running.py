"""An attempt while a worker carries it out: it reports to the fleet, and can be ended from outside."""

import asyncio
from pathlib import Path

from duckflow.allowance import CallUsed, CallWanted
from duckflow.errors import BudgetSpent
from duckflow.fleet.claims import Claims
from duckflow.fleet.endings import Endings
from duckflow.fleet.engine import Happening
from duckflow.fleet.host import end_processes
from duckflow.fleet.task import Answered, Asked, AttemptOrder, AttemptOutcome, AttemptReport, CarryOut, Note
from duckflow.state.data import SAID, say

TIDYING = 10.0
"""Seconds in which a cancelled attempt may tidy up by itself before all its processes are killed."""


class RunningAttempt:
    """One attempt that a worker has taken. It collects notes, progress and questions, and its worker brings the
    answers. An attempt that waits for a person does not count among the attempts that may run at once."""

    def __init__(self, order: AttemptOrder, claims: Claims, endings: Endings) -> None:
        self.order = order
        self.doing = ""
        self.waiting: dict[str, asyncio.Future[Answered]] = {}
        """The questions that wait for an answer, by their ids."""
        self._claims = claims
        self._endings = endings
        self._wanted: asyncio.Future[AttemptOutcome] = asyncio.get_running_loop().create_future()

    async def ask(self, asked: Asked) -> Answered:
        if known_answer := await asyncio.to_thread(self._claims.questions.ask, asked, self.order.go):
            return known_answer
        happening = Happening("waiting", asked.fleet, asked.task, asked.attempt, asked.question.title)
        await asyncio.to_thread(self._endings.notify, happening)
        answer_future = self.waiting[asked.asked_id] = asyncio.get_running_loop().create_future()
        try:
            return await answer_future
        finally:
            self.waiting.pop(asked.asked_id, None)

    def withdraw(self, asked: Asked) -> None:
        asyncio.get_running_loop().run_in_executor(None, self._claims.questions.close, asked.asked_id)

    def hear(self, asked_id: str, answered: Answered) -> None:
        if (answer_future := self.waiting.pop(asked_id, None)) and not answer_future.done():
            answer_future.set_result(answered)

    def note(self, text: str) -> None:
        note = Note(self.order.fleet, self.order.task.name, self.order.number, say(SAID, text=text))
        self._claims.notes.append(note)

    def progress(self, doing: str) -> None:
        self.doing = doing

    async def allow(self, wanted: CallWanted) -> int:
        order, doing_before = self.order, self.doing
        while (answer := await asyncio.to_thread(self._claims.calls.ask, order, wanted)).wait:
            self.doing = "limited"
            await asyncio.sleep(answer.wait)
        self.doing = doing_before
        if answer.over:
            task = order.task.name if answer.over == "task" else ""
            await asyncio.to_thread(self._endings.cancel, order.fleet, task, 0, "budget")
        if answer.refused:
            raise BudgetSpent(answer.refused.key, **answer.refused.values)
        return answer.call

    async def used(self, call: int, used: CallUsed | None) -> None:
        await asyncio.to_thread(self._claims.calls.settle, self.order, call, used)

    def end(self, outcome: AttemptOutcome) -> None:
        """Ends the attempt with this outcome. It first gets time to end by itself, and is then ended by force."""
        if not self._wanted.done():
            self._wanted.set_result(outcome)

    async def carry_out(self, carry_out: CarryOut, repository: Path) -> AttemptReport:
        """Carries the attempt out in its repository on this machine, and ends all processes that it has started."""
        task = self.order.task.model_copy(update={"repository": str(repository)})
        self.order = self.order.model_copy(update={"task": task})
        carrying_task = asyncio.ensure_future(carry_out(self.order, self))
        await asyncio.wait({carrying_task, self._wanted}, return_when=asyncio.FIRST_COMPLETED)
        has_tidied_up = False
        while not has_tidied_up:
            carrying_task.cancel()
            has_tidied_up = bool((await asyncio.wait({carrying_task}, timeout=TIDYING))[0])
            await end_processes(self.order.attempt_id)
        outcome = self._wanted.result() if self._wanted.done() else None
        problem = say("fleet.out_of_budget") if outcome == "budget" else None
        if carrying_task.cancelled():
            return AttemptReport(order=self.order, outcome=outcome or "cancelled", open=problem)
        if error := carrying_task.exception():
            problem = say("fleet.broke", reason=f"{type(error).__name__}: {error}")
            return AttemptReport(order=self.order, outcome=outcome or "failed", open=problem)
        report = carrying_task.result()
        return report.model_copy(update={"outcome": outcome, "open": report.open or problem}) if outcome else report
