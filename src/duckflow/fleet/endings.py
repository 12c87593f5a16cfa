"""Ends attempts and tasks other than by their own work: cancelled, out of money, or settled when all attempts at a task
have ended."""

from collections.abc import Sequence
from functools import partial

import sqlalchemy as sa

from duckflow.fleet.claims import AttemptKey, end_attempt, recover
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.engine import LIVE, AttemptState, Choose, Happening, Notify, TaskState
from duckflow.fleet.host import kill_processes
from duckflow.fleet.store import ENDED_TASKS, FleetStore, write_notes
from duckflow.fleet.tables import ATTEMPTS, TASKS
from duckflow.fleet.task import AttemptOutcome, Note, id_of_attempt
from duckflow.state.phrase import say

IN_ROUND = (ATTEMPTS.c.fleet == TASKS.c.fleet) & (ATTEMPTS.c.task == TASKS.c.name) & (ATTEMPTS.c.round == TASKS.c.round)


class Endings:
    """Ends attempts and tasks. Several processes may do it at once: a thing that has ended is not changed again."""

    def __init__(self, database: FleetDatabase, choose: Choose, notify: Notify) -> None:
        self._database = database
        self._store = FleetStore(database)
        self._choose = choose
        self.notify = notify

    def cancel(self, fleet: str, task: str = "", attempt: int = 0, outcome: AttemptOutcome = "cancelled") -> int:
        """Ends attempts that no worker runs at once, with their tasks, and marks running ones so that their worker ends
        them. Returns how many attempts had not ended before."""
        conditions = [ATTEMPTS.c.fleet == fleet, ATTEMPTS.c.state.in_(LIVE)]
        conditions += [ATTEMPTS.c.task == task] if task else []
        conditions += [ATTEMPTS.c.number == attempt] if attempt else []

        def change(connection: sa.Connection) -> tuple[int, list[str]]:
            rows_before = connection.execute(sa.select(ATTEMPTS).where(*conditions)).all()
            # Afterwards everything that still runs has a worker that can end it.
            recover(self._database, connection)
            connection.execute(sa.update(ATTEMPTS).where(*conditions, ATTEMPTS.c.wanted == "").values(wanted=outcome))
            live_rows = connection.execute(sa.select(ATTEMPTS).where(*conditions)).all()
            held_ids = [id_of_attempt(row.fleet, row.task, row.number) for row in live_rows if row.state == "running"]
            for row in live_rows:
                if row.state == "queued":
                    key = AttemptKey(row.fleet, row.task, row.number)
                    end_attempt(connection, key, None, self._database.now(connection), state=outcome)
            begun_ids = [id_of_attempt(row.fleet, row.task, row.number) for row in rows_before if row.worker]
            return len(rows_before), [attempt_id for attempt_id in begun_ids if attempt_id not in held_ids]

        live_count, forsaken_ids = self._database.do(change)
        for attempt_id in forsaken_ids:
            # A worker that was only stopped has left the processes running.
            kill_processes(attempt_id)
        self.settle_left(fleet)
        return live_count

    def see_to(self, fleet: str, task: str) -> None:
        """Follows up when an attempt has ended: settles the task after the last one, or cancels needless others."""
        (state,) = self._store.tasks(fleet, task)
        attempts = [attempt for attempt in self._store.attempts(fleet, task) if attempt.round == state.round]
        live_attempts = [attempt for attempt in attempts if attempt.live]
        if not live_attempts:
            self._settle(state, attempts)
        elif state.task.cancel_losers and self._best(attempts, more=True) is not None:
            for attempt in live_attempts:
                self.cancel(fleet, task, attempt.number)

    def settle_left(self, fleet: str = "") -> None:
        """Settles tasks whose attempts have all ended while no worker noticed."""
        is_open = TASKS.c.state.notin_(ENDED_TASKS) & (TASKS.c.fleet == fleet if fleet else sa.true())
        has_live_attempt = sa.select(ATTEMPTS.c.number).where(IN_ROUND, ATTEMPTS.c.state.in_(LIVE)).exists()
        for row in self._database.read(sa.select(TASKS.c.fleet, TASKS.c.name).where(is_open, ~has_live_attempt)):
            self.see_to(row.fleet, row.name)
        self._cancel_waiting_in_vain(fleet)

    def _cancel_waiting_in_vain(self, fleet: str) -> None:
        """Cancels tasks that wait for one that has failed."""
        condition = TASKS.c.fleet == fleet if fleet else sa.true()
        waiting_tasks = sa.select(TASKS.c.fleet, TASKS.c.name, TASKS.c.after).where(
            condition, TASKS.c.state == "waiting"
        )
        waiting_tasks = [row for row in self._database.read(waiting_tasks) if row.after]
        if not waiting_tasks:
            return
        rows = self._database.read(
            sa.select(TASKS.c.fleet, TASKS.c.name).where(condition, TASKS.c.state.in_(("failed", "cancelled")))
        )
        failed_tasks = {(row.fleet, row.name) for row in rows}
        for row in waiting_tasks:
            if failed_names := [name for name in row.after if (row.fleet, name) in failed_tasks]:
                note = Note(row.fleet, row.name, 0, say("fleet.in_vain", task=", ".join(failed_names)))
                self._database.do(partial(write_notes, self._database, notes=[note]))
                self.cancel(row.fleet, row.name)

    def _best(self, attempts: Sequence[AttemptState], more: bool) -> int | None:
        """Returns the number of the best attempt. `more` means that others still run."""
        reports = [attempt.report for attempt in attempts if attempt.report]
        return self._choose(reports[0].order.task, reports, more) if reports else None

    def _settle(self, task: TaskState, attempts: Sequence[AttemptState]) -> None:
        best_number = self._best(attempts, more=False)
        if best_number is None:
            state = "cancelled" if all(attempt.state == "cancelled" for attempt in attempts) else "failed"
        else:
            state = "done" if task.task.pick == "best" or len(attempts) == 1 else "choose"
        is_this_task = (TASKS.c.fleet == task.fleet) & (TASKS.c.name == task.task.name)
        has_live_attempt = sa.select(ATTEMPTS.c.number).where(IN_ROUND, ATTEMPTS.c.state.in_(LIVE)).exists()
        update = sa.update(TASKS).where(is_this_task, TASKS.c.state.notin_(ENDED_TASKS), ~has_live_attempt)
        settled_count = self._database.do(
            lambda connection: connection.execute(update.values(state=state, picked=best_number)).rowcount
        )
        if settled_count and state != "cancelled":
            reason = next((attempt.report.open for attempt in attempts if attempt.report and attempt.report.open), None)
            event = "waiting" if state == "choose" else state
            self.notify(Happening(event, task.fleet, task.task.name, best_number or 0, None if best_number else reason))
