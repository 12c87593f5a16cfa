"""Fleets, tasks, attempts and their log lines, as commands and the page read and change them."""

import json
from collections import Counter
from collections.abc import Container, Sequence
from typing import Any, cast

import sqlalchemy as sa

from duckflow.errors import UsageError
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.engine import (
    OVER,
    AttemptState,
    FleetOrder,
    FleetState,
    Limit,
    LogLine,
    TaskFigures,
    TaskProgress,
    TaskState,
    WorkerState,
)
from duckflow.fleet.lease import is_gone
from duckflow.fleet.questions import ASKING
from duckflow.fleet.tables import (
    ATTEMPTS,
    CALLS,
    FLEETS,
    HISTORY,
    LIMITS,
    LINES,
    OF_TASK,
    QUESTIONS,
    TASKS,
    WORKERS,
    task_row,
)
from duckflow.fleet.task import AttemptReport, FleetTask, Note, Row, free_name, read_row, under_names
from duckflow.state.data import Phrase

KEPT_SECONDS = 3600.0
STARTING = 2026_2204
"""The database lock under which fleets are started, so that their tasks get unique names."""
ENDED_TASKS = ("choose", "done", "failed", "cancelled", "merged")


class FleetStore:
    """Reads fleets from the database, and makes the changes that people ask for."""

    def __init__(self, database: FleetDatabase) -> None:
        self._database = database

    def add(self, connection: sa.Connection, fleet: str, tasks: Sequence[TaskState], order: FleetOrder) -> None:
        """Adds a fleet with its tasks and their first attempts."""
        places = sorted({task.place for task in tasks})
        now = self._database.now(connection)
        budget_values = {"budget_usd": order.budget_usd, "budget_tokens": order.budget_tokens}
        connection.execute(sa.insert(FLEETS).values(fleet=fleet, started=now, places=places, **budget_values))
        rows = [
            {"fleet": fleet, "name": state.task.name, "position": position, "place": state.place}
            | {"task": state.task.model_dump_json(), "model": state.task.model, "priority": state.task.priority}
            | {"after": list(state.task.after)}
            for position, state in enumerate(tasks)
        ]
        connection.execute(sa.insert(TASKS), rows)
        connection.execute(
            sa.insert(ATTEMPTS),
            [
                {"fleet": fleet, "task": state.task.name, "number": number, "round": 1}
                for state in tasks
                for number in range(1, state.task.attempts + 1)
            ],
        )

    def name_apart(self, connection: sa.Connection, tasks: Sequence[FleetTask]) -> list[FleetTask]:
        """Returns the tasks under names that no other task of any fleet in the same repository has. Tasks with the same
        name would get the same branches later."""
        self._database.one_at_a_time(connection, STARTING)
        used_names: dict[str, set[str]] = {task.repository: set() for task in tasks}
        for row in connection.execute(sa.select(TASKS.c.name, TASKS.c.task)):
            used_names.get(json.loads(row.task)["repository"], set[str]()).add(row.name)
        new_names: set[str] = set()
        names: list[str] = []
        for task in tasks:
            names.append(free_name(task.name, used_names[task.repository], new_names))
            new_names.add(names[-1])
        return under_names(tasks, names)

    def limit(self, connection: sa.Connection, limit: Limit) -> None:
        connection.execute(sa.delete(LIMITS).where(LIMITS.c.model == limit.model))
        connection.execute(sa.insert(LIMITS).values(limit.model_dump()))

    def fleets(self) -> tuple[FleetState, ...]:
        """Returns all fleets, the newest first."""
        # Fleets are read before tasks: a fleet that is started meanwhile has tasks, but is not listed yet.
        rows = self._database.read(sa.select(FLEETS).order_by(FLEETS.c.started.desc()))
        workers = self.workers()
        tasks = sa.select(TASKS.c.fleet, _progress(workers).label("state")).subquery()
        count_query = sa.select(tasks.c.fleet, tasks.c.state, sa.func.count().label("tasks"))
        counts_by_fleet: dict[str, dict[TaskProgress, int]] = {}
        for row in self._database.read(count_query.group_by(tasks.c.fleet, tasks.c.state)):
            counts_by_fleet.setdefault(row.fleet, {})[cast("TaskProgress", row.state)] = row.tasks
        cost, tokens = sa.func.sum(ATTEMPTS.c.cost_usd), sa.func.sum(ATTEMPTS.c.tokens)
        sum_query = sa.select(ATTEMPTS.c.fleet, cost.label("cost"), tokens.label("tokens"))
        spent_rows = {row.fleet: row for row in self._database.read(sum_query.group_by(ATTEMPTS.c.fleet))}
        worker_counts = Counter(worker.place for worker in workers if worker.lives)
        return tuple(
            of_row(
                FleetState,
                row,
                cost_usd=spent_rows[row.fleet].cost,
                tokens=int(spent_rows[row.fleet].tokens),
                tasks=counts_by_fleet[row.fleet],
                workers=sum(worker_counts[place] for place in cast("list[str]", row.places)),
            )
            # A fleet without tasks has been removed meanwhile.
            for row in rows
            if row.fleet in counts_by_fleet and row.fleet in spent_rows
        )

    def workers(self) -> tuple[WorkerState, ...]:
        """Returns all workers: first the living, then the dead, in each group the latest seen first."""
        running_attempts = sa.select(ATTEMPTS.c.worker).where(ATTEMPTS.c.state == "running")
        running_counts = Counter(row.worker for row in self._database.read(running_attempts))
        now = self._database.time()
        rows = self._database.read(sa.select(WORKERS).order_by(WORKERS.c.seen.desc()))
        lives_by_id = {row.worker: not is_gone(row, now) for row in rows}
        rows.sort(key=lambda row: not lives_by_id[row.worker])
        return tuple(
            of_row(WorkerState, row, lives=lives_by_id[row.worker], running=running_counts[row.worker]) for row in rows
        )

    def has_ended(self, fleet: str) -> bool:
        open_tasks = sa.select(TASKS.c.name).where(TASKS.c.fleet == fleet, TASKS.c.state.notin_(ENDED_TASKS)).limit(1)
        return not self._database.read(open_tasks)

    def tasks(self, fleet: str, task: str = "") -> tuple[TaskState, ...]:
        state = _progress(self.workers()).label("progress")
        query = sa.select(TASKS, state).where(TASKS.c.fleet == fleet, *([TASKS.c.name == task] if task else []))
        rows = self._database.read(query.order_by(TASKS.c.position))
        return tuple(of_row(TaskState, row, state=row.progress, task=read_row(FleetTask, row.task)) for row in rows)

    def attempts(self, fleet: str, task: str = "") -> tuple[AttemptState, ...]:
        question_query = sa.select(QUESTIONS.c.task, QUESTIONS.c.attempt).where(QUESTIONS.c.fleet == fleet, ASKING)
        questions = Counter((row.task, row.attempt) for row in self._database.read(question_query))
        query = sa.select(ATTEMPTS).join(TASKS, OF_TASK)
        query = query.where(ATTEMPTS.c.fleet == fleet, *([ATTEMPTS.c.task == task] if task else []))
        rows = self._database.read(query.order_by(TASKS.c.position, ATTEMPTS.c.number))
        living_workers = {worker.worker for worker in self.workers() if worker.lives}
        return tuple(_attempt_of(row, questions[row.task, row.number], living_workers) for row in rows)

    def logs(self, fleet: str, task: str = "", attempt: int = 0, after: int = 0) -> tuple[LogLine, ...]:
        """Returns the log lines after line number `after`."""
        query = sa.select(LINES).where(LINES.c.fleet == fleet, LINES.c.line > after)
        if task:
            query = query.where(LINES.c.task == task)
        if attempt:
            query = query.where(LINES.c.attempt == attempt)
        rows = self._database.read(query.order_by(LINES.c.line))
        return tuple(of_row(LogLine, row, said=read_row(Phrase, row.said)) for row in rows)

    def retry(self, fleet: str, task: str, attempt: int = 0, mend: str = "", base: str = "") -> None:
        """Starts all attempts of the task again, with new numbers, from the commit `base` if it is given. With
        `attempt`, only starts that attempt again from its branch, to resolve its conflicts with the commit `mend`."""
        self._database.do(lambda connection: self._retry(connection, fleet, task, attempt, mend, base))

    def _retry(self, connection: sa.Connection, fleet: str, task: str, attempt: int, mend: str, base: str) -> None:
        row = connection.execute(sa.select(TASKS).where(task_row(fleet, task))).one_or_none()
        if row is None or row.state not in ENDED_TASKS:
            raise UsageError("fleet.not_ended" if row else "fleet.unknown", fleet=fleet, task=task)
        is_of_task = (ATTEMPTS.c.fleet == fleet) & (ATTEMPTS.c.task == task)
        if attempt:
            attempt_update = sa.update(ATTEMPTS).where(is_of_task, ATTEMPTS.c.number == attempt)
            mend_values = {"round": row.round + 1, "mend": mend, "state": "queued", "wanted": "", "ended": 0.0}
            if not connection.execute(attempt_update.values(**mend_values, worker=None)).rowcount:
                raise UsageError("fleet.unknown", fleet=fleet, task=f"{task}-{attempt}")
        else:
            last_number = connection.execute(sa.select(sa.func.max(ATTEMPTS.c.number)).where(is_of_task)).scalar_one()
            fleet_task = read_row(FleetTask, row.task)
            fleet_task = fleet_task.model_copy(update={"base": base or fleet_task.base})
            connection.execute(sa.update(TASKS).where(task_row(fleet, task)).values(task=fleet_task.model_dump_json()))
            numbers = range(last_number + 1, last_number + 1 + fleet_task.attempts)
            rows = [{"fleet": fleet, "task": task, "number": number, "round": row.round + 1} for number in numbers]
            connection.execute(sa.insert(ATTEMPTS), rows)
        task_update = sa.update(TASKS).where(task_row(fleet, task))
        connection.execute(
            task_update.values(state="waiting", round=row.round + 1, picked=None, merged="", delivered="")
        )

    def figures(self, fleet: str) -> tuple[TaskFigures, ...]:
        """Returns the figures of a fleet's tasks; for a removed fleet, the stored figures."""
        if tasks := self.tasks(fleet):
            attempts = self.attempts(fleet)
            return tuple(
                _figures_of(task, [attempt for attempt in attempts if attempt.task == task.task.name]) for task in tasks
            )
        query = sa.select(HISTORY.c.figures).where(HISTORY.c.fleet == fleet).order_by(HISTORY.c.position)
        return tuple(read_row(TaskFigures, row.figures) for row in self._database.read(query))

    def take_out(self, fleet: str, place: str) -> tuple[str, ...]:
        """Removes a fleet that is over. Where machines share the database, the last machine of the fleet to call this
        method removes it. Returns the machines that have not called it."""

        history = [
            {"fleet": fleet, "position": position, "figures": figures.model_dump_json()}
            for position, figures in enumerate(self.figures(fleet))
        ]

        def change(connection: sa.Connection) -> tuple[str, ...]:
            open_tasks = sa.select(TASKS.c.name).where(TASKS.c.fleet == fleet, TASKS.c.state.notin_(OVER))
            if connection.execute(open_tasks.with_for_update()).first():
                raise UsageError("fleet.not_over", fleet=fleet)
            is_this_fleet = FLEETS.c.fleet == fleet
            places = connection.execute(
                sa.select(FLEETS.c.places).where(is_this_fleet).with_for_update()
            ).scalar_one_or_none()
            names = cast("list[str]", places or [])
            other_places = [name for name in names if name != place] if self._database.on_many else []
            if other_places:
                connection.execute(sa.update(FLEETS).where(is_this_fleet).values(places=other_places))
                return tuple(other_places)
            known_row = connection.execute(sa.select(HISTORY.c.fleet).where(HISTORY.c.fleet == fleet).limit(1)).first()
            if history and known_row is None:
                connection.execute(sa.insert(HISTORY), history)
            for table in (LINES, QUESTIONS, CALLS, ATTEMPTS, TASKS, FLEETS):
                connection.execute(sa.delete(table).where(table.c.fleet == fleet))
            # Workers that died long ago are not needed any more. Recent ones show when their machine was last seen.
            is_long_ago = WORKERS.c.seen < self._database.clock - KEPT_SECONDS
            named_workers = sa.select(ATTEMPTS.c.worker).where(ATTEMPTS.c.worker.is_not(None))
            connection.execute(sa.delete(WORKERS).where(is_long_ago, WORKERS.c.worker.notin_(named_workers)))
            return ()

        return self._database.do(change)

    def change_task(self, fleet: str, task: str, **values: str | int) -> None:
        task_update = sa.update(TASKS).where(task_row(fleet, task)).values(**values)
        if not self._database.do(lambda connection: connection.execute(task_update).rowcount):
            raise UsageError("fleet.unknown", fleet=fleet, task=task)


def of_row(kind: type[Row], row: sa.Row[Any], **more: Any) -> Row:
    """Makes a model from the columns of a row; `more` holds values for fields that differ from the columns."""
    return kind(**{name: getattr(row, name) for name in kind.model_fields if hasattr(row, name)} | more)


def read_limits(connection: sa.Connection) -> list[Limit]:
    return [of_row(Limit, row) for row in connection.execute(sa.select(LIMITS))]


def write_notes(database: FleetDatabase, connection: sa.Connection, notes: Sequence[Note]) -> None:
    if notes:
        now = database.now(connection)
        rows = [{**note._asdict(), "at": now, "said": note.said.model_dump_json()} for note in notes]
        connection.execute(sa.insert(LINES), rows)


def _figures_of(state: TaskState, attempts: Sequence[AttemptState]) -> TaskFigures:
    reports = {attempt.number: attempt.report for attempt in attempts if attempt.report}
    # Before somebody picks one, the best attempt is only a suggestion.
    picked_report = reports.get(state.picked or 0) if state.state != "choose" else None
    return TaskFigures(
        task=state.task.name,
        repository=state.task.origin,
        state=state.state,
        attempts=len(attempts),
        cost_usd=sum(attempt.cost_usd for attempt in attempts),
        tokens=sum(attempt.tokens for attempt in attempts),
        seconds=sum(report.seconds for report in reports.values()),
        proof=(picked_report and picked_report.proof) or "",
        result=state.delivered or state.merged or (picked_report.branch if picked_report else ""),
    )


def _progress(workers: Sequence[WorkerState]) -> sa.ColumnElement[str]:
    """Selects the state of a task. A task runs while a living worker has an attempt at it."""
    living_workers = [worker.worker for worker in workers if worker.lives]
    is_held = (ATTEMPTS.c.state == "running") & ATTEMPTS.c.worker.in_(living_workers)
    is_running = sa.select(ATTEMPTS.c.number).where(OF_TASK, is_held).exists()
    return sa.case((TASKS.c.state.in_(ENDED_TASKS), TASKS.c.state), (is_running, "running"), else_="waiting")


def _attempt_of(row: sa.Row[Any], questions: int, living: Container[str]) -> AttemptState:
    spent_fields = {"cost_usd": row.cost_usd, "tokens": row.tokens}
    report = read_row(AttemptReport, row.report).model_copy(update=spent_fields) if row.report else None
    # A worker that is gone carries nothing out, even if nobody has taken its attempts over yet.
    state = "queued" if row.state == "running" and row.worker not in living else row.state
    return of_row(AttemptState, row, state=state, worker=row.worker or "", open_questions=questions, report=report)
