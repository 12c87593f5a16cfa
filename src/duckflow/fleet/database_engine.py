"""The engine of fleets on a database: a SQLite file for one machine, a Postgres server for many.

All work that is to be done is a row. A worker takes an attempt by writing its claim into the row. Other workers take
the attempts of a dead worker in the same way. No state outside the rows could disagree with them.
"""

import secrets
from collections.abc import Sequence
from itertools import cycle

import sqlalchemy as sa

from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.endings import Endings
from duckflow.fleet.engine import Choose, FleetOrder, Happening, Notify, TaskState
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.store import FleetStore
from duckflow.fleet.task import Answered, Asked, CarryOut, FleetTask
from duckflow.fleet.worker import Worker, Workplace


def tell_nobody(_: Happening) -> None:
    """Ignores the event. It is the callback for callers who do not want to be notified."""


def deal(tasks: Sequence[FleetTask], places: Sequence[str]) -> list[str]:
    """Deals tasks to machines in turn. A task that builds on the result of another task goes to the machine of that
    task, since the branch with the result is there."""
    turns, known_tasks, place_by_name = cycle(places), {task.name: task for task in tasks}, dict[str, str]()

    def deal_out(task: FleetTask) -> str:
        if task.name not in place_by_name:
            earlier_tasks = [known_tasks[name] for name in task.after if known_tasks[name].origin == task.origin]
            place_by_name[task.name] = deal_out(earlier_tasks[0]) if earlier_tasks else next(turns)
        return place_by_name[task.name]

    return [deal_out(task) for task in tasks]


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
        """Starts a fleet and returns its id. A task gets a number if another task in its repository has its name."""
        fleet = f"fleet_{secrets.token_hex(4)}"
        places = order.places or (self._workplace.place,)

        def change(connection: sa.Connection) -> None:
            for limit in order.limits:
                self.limit(connection, limit)
            tasks = self.name_apart(connection, order.tasks)
            states = [
                TaskState(fleet=fleet, task=task, place=place, state="waiting", picked=None, merged="")
                for task, place in zip(tasks, deal(tasks, places), strict=True)
            ]
            self.add(connection, fleet, states, order)

        self._database.do(change)
        return fleet

    async def work(self, fleet: str = "") -> None:
        """Works as a worker of this machine until the fleet has ended, or for ever without a fleet. Raises `LeaseLost`
        if its lease ran out, so that other workers may have taken over; all its attempts are ended then."""
        await Worker(self._database, self._carry_out, self._endings, self._workplace).work(fleet)

    def is_here(self, task: TaskState) -> bool:
        """Says whether the branches of a task are on this machine. A SQLite file is used by one machine only."""
        return not self._database.on_many or task.place == self._workplace.place

    def inbox(self, fleet: str = "") -> tuple[Asked, ...]:
        """Returns every question that waits for an answer, the oldest first."""
        return self._questions.open(fleet)

    def answer(self, answered: Answered) -> int:
        """Stores an answer, and returns how many questions it answers; 0 where somebody else was faster."""
        return self._questions.answer(answered)

    def cancel(self, fleet: str, task: str = "", attempt: int = 0) -> int:
        """Ends running attempts with their processes, and drops waiting ones. Returns how many had not ended before."""
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
