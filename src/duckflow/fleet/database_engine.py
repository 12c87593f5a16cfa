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
from duckflow.fleet.engine import (
    AttemptState,
    Choose,
    FleetOrder,
    FleetState,
    Happening,
    LogLine,
    Notify,
    TaskFigures,
    TaskState,
    WorkerState,
)
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.store import FleetStore
from duckflow.fleet.task import Answered, Asked, CarryOut
from duckflow.fleet.worker import Worker, Workplace


def tell_nobody(_: Happening) -> None:
    """Where nobody wants to hear of it."""


class DatabaseEngine:
    """`Engine`, on a SQLite file or a Postgres."""

    def __init__(
        self, address: str, carry_out: CarryOut, choose: Choose, workplace: Workplace, notify: Notify = tell_nobody
    ) -> None:
        self._database = FleetDatabase(address)
        self._database.prepare()
        self._carry_out = carry_out
        self._workplace = workplace
        self._store = FleetStore(self._database)
        self._questions = QuestionStore(self._database)
        self._endings = Endings(self._database, choose, notify)

    def close(self) -> None:
        self._database.close()

    def start(self, order: FleetOrder) -> str:
        fleet = f"fleet_{secrets.token_hex(4)}"
        places = order.places or (self._workplace.place,)

        def change(connection: sa.Connection) -> None:
            for limit in order.limits:
                self._store.limit(connection, limit)
            states = [
                TaskState(fleet=fleet, task=task, place=place, state="waiting", picked=None, merged="")
                for task, place in zip(self._store.name_apart(connection, order.tasks), cycle(places), strict=False)
            ]
            self._store.add(connection, fleet, states, order)

        self._database.do(change)
        return fleet

    async def work(self, fleet: str = "") -> None:
        worker = Worker(self._database, self._carry_out, self._endings, self._workplace)
        await asyncio.to_thread(worker.claims.enter)
        try:
            await worker.stay(fleet)
        finally:
            await worker.leave()

    def fleets(self) -> tuple[FleetState, ...]:
        return self._store.fleets()

    def tasks(self, fleet: str) -> tuple[TaskState, ...]:
        return self._store.tasks(fleet)

    def attempts(self, fleet: str, task: str = "") -> tuple[AttemptState, ...]:
        return self._store.attempts(fleet, task)

    def logs(self, fleet: str, task: str = "", attempt: int = 0, after: int = 0) -> tuple[LogLine, ...]:
        return self._store.logs(fleet, task, attempt, after)

    def inbox(self, fleet: str = "") -> tuple[Asked, ...]:
        return self._questions.open(fleet)

    def answer(self, answered: Answered) -> int:
        return self._questions.answer(answered)

    def cancel(self, fleet: str, task: str = "", attempt: int = 0) -> int:
        return self._endings.cancel(fleet, task, attempt)

    def workers(self) -> tuple[WorkerState, ...]:
        return self._store.workers()

    def retry(self, fleet: str, task: str, attempt: int = 0, mend: str = "", base: str = "") -> None:
        self._database.do(lambda connection: self._store.retry(connection, fleet, task, attempt, mend, base))

    def pick(self, fleet: str, task: str, attempt: int) -> None:
        self._store.change_task(fleet, task, state="done", picked=attempt)

    def merged(self, fleet: str, task: str, commit: str) -> None:
        self._store.change_task(fleet, task, state="merged", merged=commit)

    def figures(self, fleet: str) -> tuple[TaskFigures, ...]:
        return self._store.figures(fleet)

    def delivered(self, fleet: str, task: str, where: str) -> None:
        self._store.change_task(fleet, task, delivered=where)

    def forget(self, fleet: str) -> tuple[str, ...]:
        return self._store.forget(fleet, self._workplace.place)
