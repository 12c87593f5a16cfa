"""The Pacemaker of one job: watches its tasks, and asks in the job's name when they go in circles."""

from collections.abc import Awaitable, Callable

from duckflow.agent.crew import Crew
from duckflow.events.types import DuckAnswered, DuckCalled, Noticed
from duckflow.events.work import JobChanged
from duckflow.pacemaker.interventions import ENDS_TURN, DuckCall, Replan
from duckflow.pacemaker.step import step_of
from duckflow.pacemaker.vitals import Signal
from duckflow.state.acting import acting_job
from duckflow.state.action import Action, ActionResult


class JobPace:
    """A job has no loops to count: its list is finite. What it can do is wear out or repeat itself."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._pacemaker = crew.pacemaker()

    async def beat(self, clearance: Callable[[], Awaitable[None]]) -> None:
        """Nothing, a line on the screen, or a question; when the answer is to stop, the job pauses."""
        verdict = self._pacemaker.beat()
        if isinstance(verdict, Replan):
            self._crew.session.emit(Noticed(what=verdict.finding.phrase()))
        if not isinstance(verdict, DuckCall):
            return
        emit, question = self._crew.session.emit, verdict.question()
        emit(DuckCalled(question=question, reason=verdict.reason))
        answer = await self._crew.ask(question)
        resolution = self._pacemaker.answered(verdict, answer.choice, answer.text)
        emit(DuckAnswered(question_id=question.question_id, answer=answer, effect=resolution.effect.value))
        if resolution.effect in ENDS_TURN:
            emit(JobChanged(job_id=acting_job(), status="paused"))
            await clearance()

    def saw(self, action: Action, result: ActionResult) -> None:
        self._pacemaker.observe(step_of(action, result))

    def notice(self, signal: Signal) -> None:
        self._pacemaker.notice(signal)
