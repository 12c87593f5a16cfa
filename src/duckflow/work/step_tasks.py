"""The tasks of a step, run: in order, each through the dispatcher, up to the first that fails."""

import asyncio

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatched
from duckflow.agent.turn_pacemaker import intervention
from duckflow.events.types import DuckAnswered, DuckCalled
from duckflow.events.work import JobChanged, TaskChanged, TasksPlanned
from duckflow.i18n.template import note
from duckflow.pacemaker.interventions import ENDS_TURN, DuckCall, Replan
from duckflow.pacemaker.pacemaker import LoopView, Pacemaker
from duckflow.pacemaker.signatures import step_of
from duckflow.pacemaker.vitals import Signal
from duckflow.state.action import Action, TaskProfile, succeeded
from duckflow.state.agent import AgentState
from duckflow.state.phrase import say
from duckflow.state.plan import Plan, Step, Task, TaskStatus
from duckflow.state.progress import only_asked, task_line
from duckflow.state.question import Choice, Question
from duckflow.state.schedule import next_task
from duckflow.work.lanes import Lanes
from duckflow.work.task_runner import TaskRunner

AGAIN = (Choice(key="yes", label=say("job.again.yes")), Choice(key="no", label=say("job.again.no")))


class StepTasks:
    """Looks at the state before every task, so that what changed meanwhile counts at once.

    To the job's Pacemaker a task is a loop, and every completed one is progress; the ceiling counts for each step. An
    agent has a Pacemaker of its own, so its tasks are left to that."""

    def __init__(
        self,
        plan_id: str,
        step_id: str,
        actor: Actor,
        state: AgentState,
        runner: TaskRunner,
        pacemaker: Pacemaker,
        lanes: Lanes,
    ) -> None:
        self.plan_id = plan_id
        self.step_id = step_id
        self._actor = actor
        self._state = state
        self._runner = runner
        self._pacemaker = pacemaker
        self._lanes = lanes
        self._taken = 0
        self.unwanted = False
        """The user does not want one of them, and has said nothing more about it."""

    @property
    def plan(self) -> Plan:
        return self._state.plans[self.plan_id]

    def step(self) -> Step | None:
        """As it is now; nothing when it has left the plan."""
        return next((step for step in self.plan.steps if step.step_id == self.step_id), None)

    def plan_anew(self, tasks: list[Task]) -> None:
        """Those that are done stay among them."""
        self._actor.emit(TasksPlanned(plan_id=self.plan_id, step_id=self.step_id, tasks=tuple(tasks)))

    async def run(self, actor: Actor, why: str = "") -> Dispatched:
        """What came of those that were open, in the lanes of the files they touch. `why`: what an agent says of them;
        the user is told where one is asked for."""
        done = Dispatched()
        async with self._lanes.through(self.step_id):
            while (step := self.step()) and (task := next_task(step)):
                await actor.wait_until_clear()
                if not actor.inner:
                    await self._beat()
                if (step := self.step()) is None or next_task(step) is not task:
                    continue
                if await self._may_run(task):
                    await self._run_task(step, task, done, actor, why or step.name)
                else:
                    self._tell(task, "cancelled", note(self._state.language, "task_left_out"))
        return done

    async def _run_task(self, step: Step, task: Task, done: Dispatched, actor: Actor, why: str) -> None:
        self._tell(task, "in_progress", None)
        action = Action(operation=task.operation, args=task.args, reasoning=task.reasoning.strip() or step.name)
        action = action.model_copy(update={"action_id": task.action_id}) if task.action_id else action
        try:
            ran, told = await self._runner.run(self.plan, step, action, actor, why)
            while ran.stop == "refused" and ran.refusal and not actor.inner:
                # A no with a wish is no failure: the task is put as the user wants it, and asked for again.
                action = await self._runner.put_differently(self.plan, step, task, action, ran.refusal)
                ran, told = await self._runner.run(self.plan, step, action, actor, why)
        except asyncio.CancelledError:
            job = self._state.jobs[self._actor.job_id]
            cut_off = "pending" if only_asked(self._state, job) else "interrupted"
            self._tell(task, cut_off, task.result)
            raise
        ok = bool(ran.results) and not ran.stop and all(map(succeeded, ran.results))
        done.add(ran)
        self.unwanted |= ran.stop == "refused" and not ran.refusal
        self._tell(task, "completed" if ok else "failed", told)
        if actor.inner:
            return
        for result in ran.results:
            self._pacemaker.observe(step_of(action, result))
        if ok:
            self._pacemaker.notice(Signal.DONE)

    async def _beat(self) -> None:
        """Nothing, a line on the screen, or a question; when the answer is to stop, the job pauses."""
        view = LoopView(self._taken, TaskProfile.MULTI_STEP_TASK, plan_running=True)
        self._taken += 1
        verdict, emit = self._pacemaker.beat(view), self._actor.emit
        if isinstance(verdict, Replan) and (told := intervention(verdict)):
            emit(told)
        if not isinstance(verdict, DuckCall):
            return
        question = verdict.question()
        emit(DuckCalled(question=question, reason=verdict.reason, severity=verdict.severity))
        answer = await self._actor.ask(question)
        resolution = self._pacemaker.answered(verdict, answer.choice, answer.text, loop=view.loop)
        emit(DuckAnswered(question_id=question.question_id, answer=answer, effect=resolution.effect.value))
        if resolution.effect in ENDS_TURN:
            emit(JobChanged(job_id=self._actor.job_id, status="paused"))
            await self._actor.wait_until_clear()

    async def _may_run(self, task: Task) -> bool:
        """What was cut off in the middle may have been done already: it is run again only when the user says so."""
        if task.status == "pending" or not self._runner.changes(task):
            return True
        question = Question(kind="gate", title=say("job.again", task=task_line(task)), choices=AGAIN)
        return (await self._actor.ask(question)).choice == "yes"

    def _tell(self, task: Task, status: TaskStatus, result: str | None) -> None:
        self._actor.emit(
            TaskChanged(plan_id=self.plan_id, step_id=self.step_id, task_id=task.task_id, status=status, result=result)
        )
