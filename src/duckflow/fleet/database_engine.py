"""The engine over rows: a SQLite file for one machine, a Postgres for many.

Whatever is to be done is a row. A worker takes an attempt by writing its own claim into the row, and what a dead worker
left is taken by others in the same way: there is nothing besides the rows that could disagree with them.
"""

import asyncio
import secrets
from itertools import cycle

import sqlalchemy as sa

from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.endings import Endings
from duckflow.fleet.engine import Choose, FleetOrder, Happening, Notify, TaskState
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.store import FleetStore
from duckflow.fleet.task import Answered, Asked, CarryOut
from duckflow.fleet.worker import Worker, Workplace


def tell_nobody(_: Happening) -> None:
    """Where nobody wants to hear of it."""


class Engine(FleetStore):
    """What `duckflow fleet` and the page know of fleets, on a SQLite file or a Postgres. All but `work` answer within
    milliseconds."""

    def __init__(
        self, address: str, carry_out: CarryOut, choose: Choose, workplace: Workplace, notify: Notify = tell_nobody
    ) -> None:
        super().__init__(FleetDatabase(address))
        self._database.prepare()
        self._carry_out = carry_out
        self._workplace = workplace
        self._questions = QuestionStore(self._database)
        self._endings = Endings(self._database, choose, notify)

    def close(self) -> None:
        self._database.close()

    def start(self, order: FleetOrder) -> str:
        """A new fleet; its id. A task whose name another one in its repository has gets a number."""
        fleet = f"fleet_{secrets.token_hex(4)}"
        places = order.places or (self._workplace.place,)

        def change(connection: sa.Connection) -> None:
            for limit in order.limits:
                self.limit(connection, limit)
            states = [
                TaskState(fleet=fleet, task=task, place=place, state="waiting", picked=None, merged="")
                for task, place in zip(self.name_apart(connection, order.tasks), cycle(places), strict=False)
            ]
            self.add(connection, fleet, states, order)

        self._database.do(change)
        return fleet

    async def work(self, fleet: str = "") -> None:
        """Be a worker of this machine, until that fleet has ended, or for ever. Raises `LeaseLost` if it took so long
        to say that it lives that others may have taken over; whatever it did has been ended then."""
        worker = Worker(self._database, self._carry_out, self._endings, self._workplace)
        await asyncio.to_thread(worker.claims.enter)
        try:
            await worker.stay(fleet)
        finally:
            await worker.leave()

    def inbox(self, fleet: str = "") -> tuple[Asked, ...]:
        """Every question that waits for an answer, the oldest first."""
        return self._questions.open(fleet)

    def answer(self, answered: Answered) -> int:
        """How many questions that has answered; 0 where somebody else was faster."""
        return self._questions.answer(answered)

    def cancel(self, fleet: str, task: str = "", attempt: int = 0) -> int:
        """End what runs, with all its processes, and never begin what waits. How many attempts had not ended before."""
        return self._endings.cancel(fleet, task, attempt)

    def pick(self, fleet: str, task: str, attempt: int) -> None:
        self.change_task(fleet, task, state="done", picked=attempt)

    def merged(self, fleet: str, task: str, commit: str) -> None:
        """Note that the picked attempt is on the user's branch now."""
        self.change_task(fleet, task, state="merged", merged=commit)

    def delivered(self, fleet: str, task: str, where: str) -> None:
        """Note where the result of a task has been brought."""
        self.change_task(fleet, task, delivered=where)

    def forget(self, fleet: str) -> tuple[str, ...]:
        """Take a fleet that is over out of the database, once all its machines have said so: those that have not."""
        return self.take_out(fleet, self._workplace.place)
