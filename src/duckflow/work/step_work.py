"""One step of a plan, carried out. Its tasks are the calls of an agent with a context of its own, or a drafted list
where the model cannot call tools; as long as they succeed nobody is asked between them."""

import json
import logging
from itertools import takewhile

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatched
from duckflow.errors import DuckflowError, ProviderUnreachable
from duckflow.events.types import MessageAdded, Noticed
from duckflow.events.work import JobChanged, StepChanged
from duckflow.forms.form import Reading
from duckflow.i18n.template import note
from duckflow.state.action import Action
from duckflow.state.message import Message
from duckflow.state.phrase import said, say
from duckflow.state.plan import Step, StepStatus, Task
from duckflow.state.progress import task_line
from duckflow.state.schedule import has_none_left, next_task
from duckflow.tools.plan.drafting import Drafter
from duckflow.tools.plan.proof import lacking, proof
from duckflow.tools.shell.causes import telling_part
from duckflow.tools.toolbox import talk_operations
from duckflow.work.agents import AgentReport, Agents, AgentTask
from duckflow.work.step_ends import StepEnds
from duckflow.work.step_tasks import StepTasks
from duckflow.work.task_runner import TaskRunner

log = logging.getLogger(__name__)

CAUSE = 160


class StepWork:
    """Runs what is open; asks the model when nothing is and the step is not over; ends the step by its record."""

    def __init__(
        self, tasks: StepTasks, actor: Actor, drafter: Drafter, runner: TaskRunner, agents: Agents, alone: bool
    ) -> None:
        """`alone`: it is the only step of its job, whose own summary tells of its end."""
        self._tasks = tasks
        self._actor = actor
        self._state = drafter.state
        self._drafter = drafter
        self._runner = runner
        self._agents = agents
        self._alone = alone
        self._repaired = False
        self._anew = False
        """It was opened again with all its tasks done: other ones are needed."""
        self._mended = ""
        """What failed on the way: the report and later steps are told."""

    async def carry_out(self) -> bool:
        """Whether the step is completed, or gone from the plan."""
        await self._actor.wait_until_clear()
        if (step := self._tasks.step()) and step.status != "in_progress":
            self._anew = has_none_left(step)
            self._mark("in_progress")
        ended: bool | None = None
        while ended is None:
            await self._actor.wait_until_clear()
            step = self._tasks.step()
            if step is None:
                return True
            if next_task(step):
                await self._tasks.run(self._actor)
            elif self._over(step):
                return self._end(step)
            else:
                ended = await self._ask_model(step)
        return ended

    def _over(self, step: Step) -> bool:
        """Whether the model need not be asked: everything succeeded and shows what it should, or it is not wanted."""
        if any(task.status == "failed" for task in step.tasks):
            return self._tasks.unwanted
        return not self._anew and not self._lacking() and any(task.effect != "read" for task in step.tasks)

    def _lacking(self) -> str:
        """What the step's criterion names and no result shows."""
        step = self._tasks.step()
        return lacking(self._state, step, self._drafter.folder) if step else ""

    async def _ask_model(self, step: Step) -> bool | None:
        """How the step ends; nothing when there are tasks to be run now."""
        try:
            if await self._agents.usable():
                return await self._end_by(await self._run_agent(step))
            if self._repaired or (step.tasks and not (_failed_task(step) or self._anew)):
                return self._end(step)
            await self._draft(step)
            self._anew = False
        except ProviderUnreachable:
            raise
        except DuckflowError as problem:
            log.info("no tasks for %s: %s", step.name, problem.key)
            if not step.tasks:
                self._actor.emit(Noticed(what=say("task.not_planned", step=step.name)))
                self._actor.emit(Noticed(what=said(problem)))
            return self._failed(step)
        return None

    async def _draft(self, step: Step) -> None:
        """Tasks for a step that has none, or others in place of what failed: once, with its cause."""
        failed = _failed_task(step)
        await self._runner.read_files(self._tasks.plan, step)
        tasks = await self._drafter.tasks(self._tasks.plan, step)
        if failed:
            self._note_failure(step)
            self._repaired = True
            self._actor.emit(Noticed(what=say("task.repair", step=step.name, task=task_line(failed))))
        self._tasks.plan_anew(tasks)

    async def _run_agent(self, step: Step) -> AgentReport:
        await self._runner.read_files(self._tasks.plan, step)
        request = self._drafter.step_request(self._tasks.plan, step)
        constraints = tuple(self._state.five.constraints)
        task = AgentTask(request, step.name, self, (StepEnds(self._lacking),), constraints)
        return await self._agents.run(task, self._runner.actor_of(step))

    async def run(self, reading: Reading, actor: Actor) -> Dispatched:
        """An agent's reply: its calls are the tasks of the step now, beside those that are done."""
        decision, step, talk = reading.decision, self._tasks.step(), talk_operations()
        if step is None or decision.objection() or any(one.operation in talk for one in decision.actions):
            return await self._runner.dispatch(reading, actor)
        self._note_failure(step)
        readable = list(takewhile(lambda one: one.action_id not in reading.broken, decision.actions))
        tasks = [self._task(one) for one in readable]
        self._tasks.plan_anew([*(task for task in step.tasks if task.status == "completed"), *tasks])
        done = await self._tasks.run(actor, decision.rationale)
        if not done.stop and (left := decision.actions[len(readable) :]):
            # One that cannot be read is no task: it is answered with the reason, and what follows is not run.
            first = decision.model_copy(update={"actions": left[:1]})
            done.add(await self._runner.dispatch(reading._replace(decision=first), actor))
        ran = {result.action_id for result in done.results}
        key = "not_run_refused" if done.stop == "refused" else "not_run_error"
        why = note(self._state.language, key, operation=done.results[-1].operation if done.results else "")
        told = {task.action_id: task.result for task in step.tasks if task.status == "failed"}
        for action in decision.actions:
            # A call that was not made is answered too.
            if action.action_id not in ran:
                text = told.get(action.action_id) or why
                message = Message(role="tool", operation=action.operation, text=text, answers=action.action_id)
                actor.emit(MessageAdded(message=message))
        return done

    def _note_failure(self, step: Step) -> None:
        if failed := _failed_task(step):
            # In quotes that it cannot close: a program wrote it.
            cause = json.dumps(" ".join(telling_part(failed.result or "", CAUSE).split()), ensure_ascii=False)
            self._mended = note(self._state.language, "step_mended", task=task_line(failed), cause=cause)

    def _task(self, action: Action) -> Task:
        for operation in self._drafter.operations():
            if operation.name == action.operation:
                return Task.of(operation, action.args, action.reasoning, action.action_id)
        # The dispatcher says that there is no such operation.
        given = action.model_dump(include={"operation", "args", "reasoning", "action_id"})
        return Task.model_validate(given)

    async def _end_by(self, report: AgentReport) -> bool | None:
        """How the agent's work ended is how the step ends."""
        step = self._tasks.step()
        if step is None:
            return True
        match report.outcome:
            case "done" if not _failed_task(step):
                return self._completed(step, report.found)
            case "pacemaker":
                self._actor.emit(JobChanged(job_id=self._actor.job_id, status="paused"))
                return None
            case "provider" if report.open:
                raise ProviderUnreachable(report.open.key, **report.open.values)
            case _:
                if report.open and not _failed_task(step):
                    self._actor.emit(Noticed(what=report.open))
                return self._failed(step, report.found)

    def _end(self, step: Step) -> bool:
        return self._failed(step) if _failed_task(step) else self._completed(step)

    def _failed(self, step: Step, found: str = "") -> bool:
        self._mark("failed", found=found)
        if not self._alone:
            self._actor.emit(Noticed(what=say("plan.step_now.failed", step=step.name)))
        return False

    def _completed(self, step: Step, found: str = "") -> bool:
        evidence = proof(self._state, step, self._drafter.folder)
        self._mark("completed", evidence, " ".join(filter(None, (self._mended, found))))
        told = say("plan.step_shown", step=step.name, evidence=evidence)
        if not self._alone:
            self._actor.emit(Noticed(what=told if evidence else say("plan.step_unverified", step=step.name)))
        return True

    def _mark(self, status: StepStatus, evidence: str = "", found: str = "") -> None:
        plan_id, step_id = self._tasks.plan_id, self._tasks.step_id
        self._actor.emit(StepChanged(plan_id=plan_id, step_id=step_id, status=status, evidence=evidence, found=found))


def _failed_task(step: Step) -> Task | None:
    """A look that found nothing is no failure of the step."""
    return next((task for task in step.tasks if task.status == "failed" and task.effect != "read"), None)
