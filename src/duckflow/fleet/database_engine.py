"""The engine of fleets on a database: a SQLite file for one machine, a Postgres for many.

Everything that is to be done is a row. A worker takes an attempt by writing its claim into the row, and others take the
attempts of a dead worker in the same way. There is no state besides the rows that could disagree with them.
"""

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
    """Ignores the event; used where nobody wants to be notified."""


class Engine(FleetStore):
    """The interface of fleets for `duckflow fleet` and the page, on a SQLite file or a Postgres. All methods except
    `work` answer within milliseconds."""

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
        """Starts a fleet and returns its id. A task gets a number if another in its repository has the same name."""
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
        """Works as a worker of this machine until that fleet has ended, or for ever without one. Raises `LeaseLost` if
        it renewed its lease too late, so that others may have taken over; all its attempts are ended then."""
        await Worker(self._database, self._carry_out, self._endings, self._workplace).work(fleet)

    def is_here(self, task: TaskState) -> bool:
        """Says whether the branches of a task are on this machine. A file is used by one machine only."""
        return not self._database.on_many or task.place == self._workplace.place

    def inbox(self, fleet: str = "") -> tuple[Asked, ...]:
        """Returns every question that waits for an answer, the oldest first."""
        return self._questions.open(fleet)

    def answer(self, answered: Answered) -> int:
        """Stores an answer, and returns how many questions it answers; 0 where somebody else was faster."""
        return self._questions.answer(answered)

    def cancel(self, fleet: str, task: str = "", attempt: int = 0) -> int:
        """Ends attempts with all their processes, and drops waiting ones. Returns how many had not ended before."""
        return self._endings.cancel(fleet, task, attempt)

    def pick(self, fleet: str, task: str, attempt: int) -> None:
        self.change_task(fleet, task, state="done", picked=attempt)

    def merged(self, fleet: str, task: str, commit: str) -> None:
        """Records that the picked attempt was merged onto the user's branch."""
        self.change_task(fleet, task, state="merged", merged=commit)

    def delivered(self, fleet: str, task: str, where: str) -> None:
        """Records the place to which the result of a task was delivered."""
        self.change_task(fleet, task, delivered=where)

    def forget(self, fleet: str) -> tuple[str, ...]:
        """Removes a fleet that is over once all its machines have called this. Returns the machines that have not."""
        return self.take_out(fleet, self._workplace.place)
