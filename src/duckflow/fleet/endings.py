"""How attempts and tasks come to an end other than by their own work: cancelled, out of money, or settled when all
attempts at a task have ended."""

import platform
from collections.abc import Sequence

import sqlalchemy as sa

from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.engine import LIVE, Choose
from duckflow.fleet.processes import born_at, kill_processes
from duckflow.fleet.questions import close_questions
from duckflow.fleet.store import ENDED_TASKS, FleetStore
from duckflow.fleet.tables import ATTEMPTS, TASKS, WORKERS
from duckflow.fleet.task import AttemptOutcome, id_of_attempt

IN_ROUND = (ATTEMPTS.c.fleet == TASKS.c.fleet) & (ATTEMPTS.c.task == TASKS.c.name) & (ATTEMPTS.c.round == TASKS.c.round)


class Endings:
    """It does no harm when several do it at once: what has ended stays as it is."""

    def __init__(self, database: FleetDatabase, choose: Choose) -> None:
        self._database = database
        self._store = FleetStore(database)
        self._choose = choose

    def cancel(self, fleet: str, task: str = "", attempt: int = 0, outcome: AttemptOutcome = "cancelled") -> int:
        """What nobody runs is over at once, and its task with it; what runs is ended by its worker. How many attempts
        had not ended before."""
        mine = [ATTEMPTS.c.fleet == fleet, ATTEMPTS.c.state.in_(LIVE)]
        mine += [ATTEMPTS.c.task == task] if task else []
        mine += [ATTEMPTS.c.number == attempt] if attempt else []

        def change(connection: sa.Connection) -> tuple[int, list[str]]:
            marked = sa.update(ATTEMPTS).where(*mine, ATTEMPTS.c.wanted == "")
            connection.execute(marked.values(wanted=outcome))
            gone = self._gone(connection, sa.select(ATTEMPTS.c.worker).where(*mine).distinct())
            left = sa.select(ATTEMPTS.c.task, ATTEMPTS.c.number).where(*mine, ATTEMPTS.c.worker.in_(gone))
            forsaken = connection.execute(left).all()
            for row in forsaken:
                close_questions(connection, fleet, row.task, row.number)
            live = connection.execute(sa.select(sa.func.count()).select_from(ATTEMPTS).where(*mine)).scalar_one()
            # Without its claim nothing that a worker still says about it is believed.
            over = {"state": outcome, "ended": self._database.now(connection), "doing": "", "claim": None}
            nobody = ATTEMPTS.c.claim.is_(None) | ATTEMPTS.c.worker.in_(gone)
            connection.execute(sa.update(ATTEMPTS).where(*mine, nobody).values(over))
            return live, [id_of_attempt(fleet, row.task, row.number) for row in forsaken]

        live, forsaken = self._database.do(change)
        for each in forsaken:
            # A worker that is only stopped has left them running.
            kill_processes(each)
        self._settle_ended(fleet)
        return live

    def best(self, fleet: str, task: str, numbers: Sequence[int], more: bool) -> int | None:
        """Of these attempts; with `more` others still run."""
        reports = [each.report for each in self._store.attempts(fleet, task) if each.number in numbers and each.report]
        return self._choose(reports[0].order.task, reports, more) if reports else None

    def settle(self, fleet: str, task: str, in_round: int, numbers: Sequence[int]) -> None:
        """The attempts of a round have ended, and so the task has."""
        attempts = [each for each in self._store.attempts(fleet, task) if each.number in numbers]
        best = self.best(fleet, task, numbers, more=False)
        if best is None:
            state = "cancelled" if all(each.state == "cancelled" for each in attempts) else "failed"
        else:
            picks = next(each.report.order.task.pick for each in attempts if each.report)
            state = "done" if picks == "best" or len(numbers) == 1 else "choose"
        this = (TASKS.c.fleet == fleet) & (TASKS.c.name == task) & (TASKS.c.round == in_round)
        ended = sa.update(TASKS).where(this, TASKS.c.state.notin_(ENDED_TASKS)).values(state=state, picked=best)
        self._database.do(lambda connection: connection.execute(ended))

    def _settle_ended(self, fleet: str) -> None:
        """No worker may be there that would do it."""
        open_tasks = (TASKS.c.fleet == fleet) & TASKS.c.state.notin_(ENDED_TASKS)
        in_round = sa.select(ATTEMPTS.c.number).where(IN_ROUND)
        others = in_round.where(ATTEMPTS.c.state != "cancelled").exists()
        cancelled = sa.update(TASKS).where(open_tasks, ~others).values(state="cancelled", picked=None)
        self._database.do(lambda connection: connection.execute(cancelled))
        live = in_round.where(ATTEMPTS.c.state.in_(LIVE)).exists()
        for row in self._database.read(sa.select(TASKS.c.name, TASKS.c.round).where(open_tasks, ~live)):
            mine = (ATTEMPTS.c.fleet == fleet) & (ATTEMPTS.c.task == row.name) & (ATTEMPTS.c.round == row.round)
            numbers = [each.number for each in self._database.read(sa.select(ATTEMPTS.c.number).where(mine))]
            self.settle(fleet, row.name, row.round, numbers)

    def _gone(self, connection: sa.Connection, names: sa.Select[tuple[str]]) -> list[str]:
        """Workers that cannot see to it: dead, without a lease, or a process of this machine that is no more."""
        now, here = self._database.now(connection), platform.node()
        return [
            row.worker
            for row in connection.execute(sa.select(WORKERS).where(WORKERS.c.worker.in_(names)))
            if row.dead or row.until < now or (row.machine == here and born_at(row.pid) != row.born)
        ]
