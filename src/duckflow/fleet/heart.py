"""The heart of a worker: a thread that says that the worker lives, writes down how its attempts do, and hands on what
other workers left when they died. It does not depend on how busy the rest of the process is."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from duckflow.fleet.claims import Claims, Note, Spent
from duckflow.fleet.jobs import RunningAttempt
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.store import FleetStore
from duckflow.state.phrase import say

BEAT = 1.0
SAFE_PART = 0.75
"""Of a lease: a worker that could not renew it for that long ends what it does, before others begin with it."""


class HandOn(Protocol):
    """How work is put into the queues again."""

    def recover(self, worker: str) -> None:
        """Everything that this dead worker was doing."""
        ...

    def move(self) -> None:
        """What waits for machines that have no worker left."""
        ...


class Heart(threading.Thread):
    """Beats once a second."""

    def __init__(
        self,
        claims: Claims,
        store: FleetStore,
        questions: QuestionStore,
        running: Mapping[str, RunningAttempt],
        notes: deque[Note],
        hand_on: HandOn,
        on_lost: Callable[[], None],
    ) -> None:
        super().__init__(name="fleet-heart", daemon=True)
        self.good_until = time.monotonic() + claims.lease * SAFE_PART
        self._claims = claims
        self._store = store
        self._questions = questions
        self._running = running
        self._notes = notes
        self._hand_on = hand_on
        self._on_lost = on_lost
        self._stopped = threading.Event()
        self._looked_after = 0.0
        self._billed: dict[str, float] = {}

    def run(self) -> None:
        beat = min(BEAT, self._claims.lease / 6)
        while not self._stopped.wait(beat):
            try:
                if not self._renew():
                    self._on_lost()
                    return
                self._tell()
                if time.monotonic() - self._looked_after > self._claims.lease / 3:
                    self._look_after_others()
                    self._looked_after = time.monotonic()
            except SQLAlchemyError:
                # The database is away; how long that may last is watched by the worker.
                continue

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=10)

    def _renew(self) -> bool:
        began = time.monotonic()
        if not self._claims.renew():
            return False
        self.good_until = began + self._claims.lease * SAFE_PART
        return True

    def _tell(self) -> None:
        """What attempts said goes to the database, what others said about them comes back."""
        running = list(self._running.values())
        spent: dict[str, Spent] = {each.desk.claim: each.desk.spent for each in running if each.desk.spent}
        notes = list(self._notes)
        ours = self._claims.record(spent, notes)
        for _ in notes:
            self._notes.popleft()
        for each in running:
            if wanted := ours.get(each.desk.claim):
                each.end(wanted)
            self._check_budget(each)
        waiting = {asked_id: each for each in running for asked_id in list(each.desk.waiting)}
        if waiting:
            for asked_id, answered in self._questions.hear(list(waiting)).items():
                each = waiting[asked_id]
                self._questions.heard(asked_id, each.desk.claim)
                each.do(partial(each.desk.hear, {asked_id: answered}))

    def _check_budget(self, running: RunningAttempt) -> None:
        cost = running.desk.spent.cost_usd if running.desk.spent else 0.0
        if cost == self._billed.get(running.desk.claim, 0.0):
            return
        self._billed[running.desk.claim] = cost
        order = running.order
        if over := self._claims.overspent(order.fleet, order.task):
            self._store.cancel(order.fleet, order.task.name if over == "task" else "", 0, outcome="budget")
            running.desk.say(say("fleet.budget_spent", what=over))

    def _look_after_others(self) -> None:
        for worker in self._claims.reap():
            self._hand_on.recover(worker)
            self._claims.bury(worker)
        self._hand_on.move()
