"""The engine on DBOS: every task is a workflow that waits for its attempts, which are workflows of their own.

A task's workflow waits in a queue without limits; an attempt takes one of its machine's places, and passes its model's
queue first where that model has a limit. DBOS never hands on the work of a process that died: any other worker does.
"""

import asyncio
import secrets
from itertools import cycle

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, EnqueueOptions

from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.endings import Endings
from duckflow.fleet.engine import AttemptState, Choose, FleetOrder, FleetState, Limit, LogLine, TaskState
from duckflow.fleet.flows import TASK_FLOW, attempts_queue, model_queue, register_flows, task_id, tasks_queue
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.queues import DbosQueues
from duckflow.fleet.store import FleetStore
from duckflow.fleet.task import Answered, Asked, CarryOut
from duckflow.fleet.worker import Worker, Workplace

APPLICATION = "duckflow-fleet"
VERSION = "1"
"""Of the workflows: work of one version is never done by another."""
AT_A_TIME = 500
"""Workflows that are deleted."""
POLLING, POLLING_OF_MANY = 0.5, 1.0
"""Seconds between two looks into a queue: of a file, and of a database that many workers look into."""


class DbosEngine:
    """`Engine`, on a SQLite file or a Postgres."""

    def __init__(self, address: str, carry_out: CarryOut, choose: Choose, workplace: Workplace) -> None:
        self._database = FleetDatabase(address)
        self._database.prepare()
        self._polling = POLLING_OF_MANY if self._database.on_many else POLLING
        self._carry_out = carry_out
        self._workplace = workplace
        self._store = FleetStore(self._database)
        self._questions = QuestionStore(self._database)
        self._endings = Endings(self._database, choose)
        self._client = DBOSClient(
            system_database_engine=self._database.engine,
            serializer=DBOSPortableJSONSerializer(),
            application_name=APPLICATION,
        )

    def close(self) -> None:
        self._client.destroy()
        self._database.close()

    def start(self, order: FleetOrder) -> str:
        fleet = f"fleet_{secrets.token_hex(4)}"
        places = order.places or (self._workplace.place,)
        for limit in order.limits:
            self._register_limit(limit)

        def change(connection: sa.Connection) -> None:
            for limit in order.limits:
                self._store.limit(connection, limit)
            states = [
                TaskState(fleet=fleet, task=task, place=place, state="waiting", picked=None, merged="")
                for task, place in zip(self._store.name_apart(connection, order.tasks), cycle(places), strict=False)
            ]
            self._store.add(connection, fleet, states, order.budget_usd)
            for state in states:
                self._enqueue(connection, state.place, fleet, state.task.name, 1)

        self._database.do(change)
        return fleet

    async def work(self, fleet: str = "") -> None:
        worker = Worker(self._database, self._carry_out, self._endings, self._workplace)
        await asyncio.to_thread(worker.claims.enter)
        place = self._workplace.place
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_url": self._database.url.render_as_string(hide_password=False),
            "system_database_engine": self._database.engine,
            "serializer": DBOSPortableJSONSerializer(),
            "application_version": VERSION,
            "executor_id": worker.claims.worker,
            "run_migrations": False,
            "max_executor_threads": 32,
            "notification_listener_polling_interval_sec": self._polling,
            "log_level": "WARNING",
        }
        # A process has one DBOS.
        dbos = DBOS(config=config)
        queues = DbosQueues(dbos, self._database, self._workplace)
        try:
            register_flows(worker)
            DBOS.listen_queues([tasks_queue(place), attempts_queue(place)])
            # In a thread: in our loop it would take that for its own, with its pool of threads.
            await asyncio.to_thread(self._launch)
            worker.live(queues)
            await worker.stay(fleet)
        finally:
            await worker.leave()
            await asyncio.to_thread(DBOS.destroy, destroy_registry=True)

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

    def retry(self, fleet: str, task: str, attempt: int = 0, mend: str = "") -> None:
        def change(connection: sa.Connection) -> None:
            place, in_round = self._store.retry(connection, fleet, task, attempt, mend)
            self._enqueue(connection, place, fleet, task, in_round)

        self._database.do(change)

    def pick(self, fleet: str, task: str, attempt: int) -> None:
        self._store.change_task(fleet, task, state="done", picked=attempt)

    def merged(self, fleet: str, task: str, commit: str) -> None:
        self._store.change_task(fleet, task, state="merged", merged=commit)

    def forget(self, fleet: str) -> tuple[str, ...]:
        if others := self._store.forget(fleet, self._workplace.place):
            return others
        known = self._client.list_workflows(workflow_id_prefix=f"{fleet}.", load_input=False, load_output=False)
        ids = [each.workflow_id for each in known]
        for first in range(0, len(ids), AT_A_TIME):
            self._client.delete_workflows(ids[first : first + AT_A_TIME])
        return ()

    def _launch(self) -> None:
        DBOS.launch()
        place, at_once = self._workplace.place, self._workplace.at_once
        DBOS.register_queue(tasks_queue(place), polling_interval_sec=self._polling)
        DBOS.register_queue(attempts_queue(place), worker_concurrency=at_once, polling_interval_sec=self._polling)

    def _enqueue(self, connection: sa.Connection, place: str, fleet: str, task: str, in_round: int) -> None:
        options: EnqueueOptions = {
            "workflow_name": TASK_FLOW,
            "queue_name": tasks_queue(place),
            "workflow_id": task_id(fleet, task, in_round),
            "app_version": VERSION,
        }
        # In the transaction that writes the task: there is never one without the other.
        self._client.enqueue_in_transaction(connection, options, fleet, task, in_round)

    def _register_limit(self, limit: Limit) -> None:
        self._client.register_queue(
            model_queue(limit.model),
            global_concurrency=limit.at_once,
            limiter={"limit": limit.per_minute, "period": 60.0} if limit.per_minute else None,
            polling_interval_sec=self._polling,
            on_conflict="always_update",
        )
