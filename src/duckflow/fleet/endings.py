"""Ends attempts and tasks from outside: when they are cancelled or out of money, or when the last attempt of a task has
ended."""

from functools import partial

import sqlalchemy as sa

from duckflow.fleet.claims import recover
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.engine import Choose, Happening, Notify
from duckflow.fleet.host import kill_processes
from duckflow.fleet.store import ENDED_TASKS, FleetStore, write_notes
from duckflow.fleet.tables import ATTEMPTS, IS_LIVE, OF_TASK, TASKS, task_row
from duckflow.fleet.task import AttemptOutcome, Note
from duckflow.state.data import say

IS_LEFT = TASKS.c.state.notin_(ENDED_TASKS) & ~sa.select(ATTEMPTS.c.number).where(OF_TASK, IS_LIVE).exists()
"""Selects tasks whose attempts have all ended and that nobody has settled yet."""


class Endings:
    """Ends attempts and tasks. Several processes may do this at once: whatever has ended is not changed again."""

    def __init__(self, database: FleetDatabase, choose: Choose, notify: Notify) -> None:
        self._database = database
        self._store = FleetStore(database)
        self._choose = choose
        self.notify = notify

    def cancel(self, fleet: str, task: str = "", attempt: int = 0, outcome: AttemptOutcome = "cancelled") -> int:
        """Marks running attempts so that their worker ends them. Ends attempts that no worker runs, and their tasks.
        Returns how many attempts nobody had ended before."""
        conditions = [ATTEMPTS.c.fleet == fleet]
        conditions += [ATTEMPTS.c.task == task] if task else []
        conditions += [ATTEMPTS.c.number == attempt] if attempt else []
        live_count = self._mark(outcome, *conditions)
        self.look_after(fleet)
        return live_count

    def _mark(self, outcome: AttemptOutcome, *which: sa.ColumnElement[bool]) -> int:
        wanted_update = sa.update(ATTEMPTS).where(IS_LIVE, ATTEMPTS.c.wanted == "", *which).values(wanted=outcome)
        return self._database.do(lambda connection: connection.execute(wanted_update).rowcount)

    def look_after(self, fleet: str = "") -> None:
        """Does the work of workers that are gone: settles tasks whose attempts have all ended while no worker noticed,
        and cancels tasks that wait for a failed task."""
        for attempt_id in self._database.do(partial(recover, self._database)):
            # A worker that was only stopped has left the processes of its attempts running.
            kill_processes(attempt_id)
        is_of_fleet = TASKS.c.fleet == fleet if fleet else sa.true()
        for row in self._database.read(sa.select(TASKS.c.fleet, TASKS.c.name).where(is_of_fleet, IS_LEFT)):
            self.see_to(row.fleet, row.name)
        columns = TASKS.c.fleet, TASKS.c.name, TASKS.c.after, TASKS.c.state
        is_not_done = TASKS.c.state.notin_(("choose", "done", "merged"))
        rows = self._database.read(sa.select(*columns).where(is_of_fleet, is_not_done))
        failed_tasks = {(row.fleet, row.name) for row in rows if row.state in ENDED_TASKS}
        marked_count = 0
        for row in rows:
            names = ", ".join(name for name in row.after if (row.fleet, name) in failed_tasks)
            if names and self._mark("cancelled", ATTEMPTS.c.fleet == row.fleet, ATTEMPTS.c.task == row.name):
                note = Note(row.fleet, row.name, 0, say("fleet.in_vain", task=names))
                self._database.do(partial(write_notes, self._database, notes=[note]))
                marked_count += 1
        if marked_count:
            self.look_after(fleet)

    def see_to(self, fleet: str, task: str) -> None:
        """Acts on the end of an attempt. Settles the task if no other attempt runs; otherwise cancels attempts that are
        no longer needed."""
        (task_state,) = self._store.tasks(fleet, task)
        all_attempts = self._store.attempts(fleet, task)
        attempts = [attempt for attempt in all_attempts if attempt.round == task_state.round]
        still_runs = any(attempt.live for attempt in attempts)
        reports = [attempt.report for attempt in attempts if attempt.report]
        best_number = self._choose(reports, still_runs)
        if still_runs:
            if task_state.task.cancel_losers and best_number is not None:
                self.cancel(fleet, task)
            return
        end_state = "done" if task_state.task.pick == "best" or len(attempts) == 1 else "choose"
        if best_number is None:
            # After a retry that brought nothing, the result from before may still be picked.
            best_number = self._choose([attempt.report for attempt in all_attempts if attempt.report], False)
            is_cancelled = all(attempt.state == "cancelled" for attempt in attempts)
            end_state = "choose" if best_number else "cancelled" if is_cancelled else "failed"
        settle = sa.update(TASKS).where(task_row(fleet, task), IS_LEFT).values(state=end_state, picked=best_number)
        settled_count = self._database.do(lambda connection: connection.execute(settle).rowcount)
        if settled_count and end_state != "cancelled":
            event = "waiting" if end_state == "choose" else end_state
            reason = next((report.open for report in reports if report.open), None) if best_number is None else None
            self.notify(Happening(event, fleet, task, best_number or 0, reason))
