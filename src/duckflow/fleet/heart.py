"""What a worker does all the time, in threads, however busy its loop is: say that it lives, write down how its attempts
do, and notice when other workers die."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from sqlalchemy.exc import SQLAlchemyError

from duckflow.errors import LeaseLost
from duckflow.fleet.claims import Claims
from duckflow.fleet.endings import Endings
from duckflow.fleet.questions import QuestionStore
from duckflow.fleet.running import RunningAttempt
from duckflow.fleet.task import Note

BEAT = 1.0
MOST_FAILURES = 5
"""One after the other, of the same thing."""
SAFE_PART = 0.75
"""Of a lease: a worker that could not renew it for that long ends what it does, before others begin with it."""


Fail = Callable[[Exception], None]
"""Ends the worker, from any thread."""


class WorkerThread(threading.Thread):
    """Does the same again and again until it is stopped. What keeps failing is told: a worker that does not hear what
    others want of it must not go on."""

    def __init__(self, name: str, lease: float, beat: Callable[[], None], fail: Fail) -> None:
        super().__init__(name=name, daemon=True)
        self._seconds = min(BEAT, lease / 6)
        self._beat = beat
        self._fail = fail
        self._stopped = threading.Event()

    def run(self) -> None:
        failed = 0
        while not self._stopped.wait(self._seconds):
            try:
                self._beat()
                failed = 0
            except SQLAlchemyError:
                # The database is away; how long that may last is watched by the worker.
                continue
            except Exception as error:
                failed += 1
                if failed == MOST_FAILURES:
                    self._fail(error)
                    return

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=10)


class Heart(WorkerThread):
    """Says that the worker lives, and nothing else: nothing must keep it from that."""

    def __init__(self, claims: Claims, fail: Fail) -> None:
        super().__init__("fleet-heart", claims.lease, self._renew, fail)
        self.good_until = time.monotonic() + claims.lease * SAFE_PART
        self._claims = claims

    def _renew(self) -> None:
        began = time.monotonic()
        if self._claims.renew():
            self.good_until = began + self._claims.lease * SAFE_PART
        else:
            self._fail(LeaseLost("fleet.lease_lost", worker=self._claims.worker))
            self._stopped.set()


class Clerk(WorkerThread):
    """Writes down how the attempts of a worker do, brings what others want of them, and looks after other workers."""

    def __init__(
        self,
        claims: Claims,
        endings: Endings,
        questions: QuestionStore,
        running: Mapping[str, RunningAttempt],
        notes: deque[Note],
        fail: Fail,
    ) -> None:
        super().__init__("fleet-clerk", claims.lease, self._see_to_all, fail)
        self._claims = claims
        self._endings = endings
        self._questions = questions
        self._running = running
        self._notes = notes
        self._looked_after = 0.0

    def _see_to_all(self) -> None:
        if self._running or self._notes:
            self._tell()
        if time.monotonic() - self._looked_after > self._claims.lease / 3:
            self._look_after_others()
            self._looked_after = time.monotonic()

    def _tell(self) -> None:
        """What attempts said goes to the database, what others said about them comes back."""
        running = list(self._running.values())
        notes = list(self._notes)
        ours = self._claims.record({each.desk.claim: each.desk.doing for each in running if each.desk.doing}, notes)
        for _ in notes:
            self._notes.popleft()
        for each in running:
            # One that is not ours any more was cancelled by somebody who took us for dead.
            if wanted := ours.get(each.desk.claim, "cancelled"):
                each.end(wanted)
        waiting = {asked_id: each for each in running for asked_id in list(each.desk.waiting)}
        if waiting:
            for asked_id, answered in self._questions.hear(list(waiting)).items():
                each = waiting[asked_id]
                self._questions.heard(asked_id, each.desk.claim)
                each.do(partial(each.desk.hear, {asked_id: answered}))

    def _look_after_others(self) -> None:
        self._claims.reap()
        self._endings.settle_left()
