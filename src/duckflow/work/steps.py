"""The steps of a job. The tasks of a step are the calls of an agent with a context of its own, or a drafted list if the
model cannot call tools. As long as the tasks succeed, the model is not asked between them."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Collection
from itertools import dropwhile, takewhile

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatched, Dispatcher
from duckflow.agent.settings import AgentSettings
from duckflow.errors import DuckflowError, ProviderUnreachable
from duckflow.events.types import MessageAdded, Noticed
from duckflow.events.work import StepChanged
from duckflow.forms.form import ParsedReply
from duckflow.i18n.template import note
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.state.action import Action
from duckflow.state.agent import AgentReport, Job
from duckflow.state.data import said, say
from duckflow.state.message import Message
from duckflow.state.plan import Plan, Step, StepStatus, Task, has_none_left, next_task, startable
from duckflow.tools.plan.criterion import named_in
from duckflow.tools.plan.drafting import Drafter
from duckflow.tools.plan.proof import lacking, proof, unproved
from duckflow.tools.shell.causes import telling_part
from duckflow.tools.toolbox import talk_operations
from duckflow.work.agents import Agents, AgentTask
from duckflow.work.file_locks import FileLocks
from duckflow.work.step_policies import AnswersUser, StepEnds
from duckflow.work.tasks import JobStopped, StepTasks, TaskRunner

log = logging.getLogger(__name__)

STARTS = 2
"""A job begins a step at most this many times. A check of another step may reopen it, but not for ever."""
CAUSE = 160


class StepWork:
    """Carries out one step: it runs the open tasks, asks the model when there are none and the step is not done, and
    ends the step according to its record."""

    def __init__(
        self, tasks: StepTasks, actor: Actor, drafter: Drafter, runner: TaskRunner, agents: Agents, alone: bool
    ) -> None:
        """`alone` means that this is the only step of its job, so that the job's own summary reports its end."""
        self._tasks = tasks
        self._actor = actor
        self._state = drafter.state
        self._drafter = drafter
        self._runner = runner
        self._agents = agents
        self._alone = alone
        self._repaired = False
        self._anew = False
        """True if the step was reopened after all its tasks were done, so that it needs new tasks."""
        self._mended = ""
        """The last failure that was overcome, in words for the report and for later steps."""
        self._answer = ""
        """The answer to what the user said to the step. It comes from the draft of tasks, or from the agent."""

    async def carry_out(self) -> bool:
        """Carries out the step. Returns true if it is completed, or was removed from the plan."""
        await self._actor.wait_until_clear()
        if (step := self._tasks.step()) and step.status != "in_progress":
            self._anew = has_none_left(step)
            self._mark("in_progress")
        success: bool | None = None
        while success is None:
            await self._actor.wait_until_clear()
            step = self._tasks.step()
            if step is None:
                return True
            if next_task(step) and not self._tasks.unheard():
                await self._tasks.run(self._actor)
            elif self._over(step):
                return self._end(step)
            else:
                success = await self._ask_model(step)
        return success

    def _over(self, step: Step) -> bool:
        """Says whether the step can end without asking the model: everything succeeded and results show it, or the user
        refused. If the user has said something since, the model must read that first."""
        if self._tasks.unheard():
            return False
        if any(task.status == "failed" for task in step.tasks):
            return self._tasks.unwanted
        return not self._anew and not self._lacking() and any(task.effect != "read" for task in step.tasks)

    def _lacking(self) -> str:
        """Returns the parts of the step's criterion that no result has shown to be true."""
        step = self._tasks.step()
        return lacking(self._state, step, self._drafter.folder) if step else ""

    async def _ask_model(self, step: Step) -> bool | None:
        """Asks the model for the next tasks. Returns whether the step succeeded; None if there are tasks to run now."""
        try:
            if await self._agents.usable():
                report = await self._run_agent(step)
                # The user may be speaking about the step just now: it does not end before that is known.
                await self._actor.wait_until_clear()
                return await self._end_by(report)
            unheard_messages, needs_tasks = self._tasks.unheard(), not step.tasks or _failed_task(step) or self._anew
            if not unheard_messages and (self._repaired or not needs_tasks):
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
        """Drafts tasks for a step that has none, and drafts them anew whenever the user has said something to the step.
        A failed task is replaced once; the model is then told the cause."""
        failed_task = _failed_task(step)
        await self._runner.read_files(self._tasks.plan, step)
        tasks, answer = await self._drafter.tasks_for(self._tasks.plan, step, self._tasks.hear())
        self._answer = " ".join(filter(None, (self._answer, answer)))
        if failed_task:
            self._note_failure(step)
            self._repaired = True
            self._actor.emit(Noticed(what=say("task.repair", step=step.name, task=failed_task.line)))
        self._tasks.plan_anew(tasks)

    async def _run_agent(self, step: Step) -> AgentReport:
        await self._runner.read_files(self._tasks.plan, step)
        self._tasks.hear()
        request = self._drafter.step_request(self._tasks.plan, step)
        constraints = tuple(self._state.five.constraints)
        answers = AnswersUser(self._tasks.unheard, self._words)
        policies = (StepEnds(self._lacking), answers)
        earlier_messages, hear_user = self._own_messages(step), self._tasks.hear
        task = AgentTask(request, step.name, self, policies, constraints, earlier=earlier_messages, meanwhile=hear_user)
        report = await self._agents.run(task, self._runner.actor_of(step))
        self._answer = answers.answer(report.found)
        return report

    def _own_messages(self, step: Step) -> tuple[Message, ...]:
        """Returns the earlier calls and results of a step that was interrupted by a stop or by words of the user.
        Before them stands the step's name in place of the old request, because a new request follows."""
        job = self._state.jobs.get(self._actor.job_id)
        step_messages = [message for message in job.messages if message.step == step.step_id] if job else []
        messages_seen = list(dropwhile(lambda message: message.role != "assistant", step_messages))
        request = Message(role="user", text=step.name)
        return (
            tuple(message.model_copy(update={"job": "", "step": ""}) for message in (request, *messages_seen))
            if messages_seen
            else ()
        )

    def _words(self) -> list[str]:
        step = self._tasks.step()
        return step.open_words if step else []

    async def run(self, reading: ParsedReply, actor: Actor) -> Dispatched:
        """Carries out an agent's reply: its calls become tasks of the step, after the tasks that are done."""
        decision, step, talk_names = reading.decision, self._tasks.step(), talk_operations()
        talks = any(action.operation in talk_names for action in decision.actions) or reading.asks_in_passing(
            self._state.language
        )
        if step is None or decision.objection() or talks or not decision.actions:
            return await self._runner.dispatch(reading, actor)
        self._note_failure(step)
        readable_actions = list(takewhile(lambda action: action.action_id not in reading.broken, decision.actions))
        tasks = [self._task(action) for action in readable_actions]
        self._tasks.plan_anew([*(task for task in step.tasks if task.status == "completed"), *tasks])
        dispatched = await self._tasks.run(actor, decision.rationale)
        if not dispatched.stop and (unread_actions := decision.actions[len(readable_actions) :]):
            # A call that cannot be read is no task. It is answered with the reason, and what follows is not run.
            first_decision = decision.model_copy(update={"actions": unread_actions[:1]})
            dispatched.add(await self._runner.dispatch(reading._replace(decision=first_decision), actor))
        self._answer_left_out(decision.actions, step, dispatched, actor)
        return dispatched

    def _answer_left_out(self, actions: list[Action], step: Step, done: Dispatched, actor: Actor) -> None:
        """Answers the calls that were not made: each call of a reply must have an answer."""
        answered_ids = {result.action_id for result in done.results} | done.left_out
        stop_reason = "user_spoke" if self._tasks.unheard() and not done.stop else "error"
        note_key = done.why_not_run if done.stop in ("refused", "nobody") else f"not_run_{stop_reason}"
        why = note(self._state.language, note_key, operation=done.results[-1].operation if done.results else "")
        failures = {task.action_id: task.result for task in step.tasks if task.status == "failed"}
        for action in actions:
            if action.action_id not in answered_ids:
                text = failures.get(action.action_id) or why
                message = Message(role="tool", operation=action.operation, text=text, answers=action.action_id)
                actor.emit(MessageAdded(message=message))

    def _note_failure(self, step: Step) -> None:
        if self._tasks.wished:
            return
        if self._tasks.refusal:
            self._mended = note(self._state.language, "step_told_no", words=self._tasks.refusal)
        elif failed_task := _failed_task(step):
            # The quotes cannot be closed by the text, which a program wrote.
            cause_text = json.dumps(" ".join(telling_part(failed_task.result or "", CAUSE).split()), ensure_ascii=False)
            self._mended = note(self._state.language, "step_mended", task=failed_task.line, cause=cause_text)

    def _task(self, action: Action) -> Task:
        for operation in self._drafter.operations():
            if operation.name == action.operation:
                return Task.of(operation, action.args, action.reasoning, action.action_id)
        # The dispatcher says that there is no such operation.
        return Task.model_validate(action.model_dump(include={"operation", "args", "reasoning", "action_id"}))

    async def _end_by(self, report: AgentReport) -> bool | None:
        """Ends the step according to the agent's report, and says whether it is completed. Returns None if the agent
        must first read what the user said."""
        step = self._tasks.step()
        if step is None:
            return True
        match report.outcome:
            case "done" if self._tasks.unheard():
                return None
            case "done" if not _failed_task(step):
                return self._completed(step, report.found)
            case "pacemaker":
                raise JobStopped
            case "provider" if report.open:
                raise ProviderUnreachable(report.open.key, **report.open.values)
            case _:
                if report.open and not _failed_task(step):
                    self._actor.emit(Noticed(what=report.open))
                return self._failed(step, report.found)

    def _end(self, step: Step) -> bool:
        return self._failed(step) if _failed_task(step) else self._completed(step)

    def _failed(self, step: Step, summary: str = "") -> bool:
        self._mark("failed", summary=summary)
        if not self._alone:
            self._actor.emit(Noticed(what=say("plan.step_now.failed", step=step.name)))
        return False

    def _completed(self, step: Step, summary: str = "") -> bool:
        evidence = proof(self._state, step, self._drafter.folder)
        if not evidence and self._lacking() and not any(task.effect != "read" for task in step.tasks):
            # The step has only looked around, so its goal is not reached.
            return self._failed(step, summary)
        if step.open_words and not self._answer:
            self._actor.emit(Noticed(what=say("step.unanswered", step=step.name)))
            return self._failed(step, summary)
        if step.open_words:
            self._actor.emit(Noticed(what=say("step.answers", step=step.name, text=self._answer)))
        summary = " ".join(filter(None, (self._mended, summary or self._answer)))
        lacking_text = "" if evidence else self._lacking()
        self._mark("completed", evidence, summary, lacking_text)
        proof_line = say("plan.step_shown", step=step.name, evidence=evidence)
        if not self._alone:
            self._actor.emit(Noticed(what=proof_line if evidence else unproved(step, lacking_text)))
        return True

    def _mark(self, status: StepStatus, evidence: str = "", summary: str = "", lacking: str = "") -> None:
        step_changed = StepChanged(plan_id=self._tasks.plan_id, step_id=self._tasks.step_id, status=status)
        self._actor.emit(step_changed.model_copy(update={"evidence": evidence, "found": summary, "lacking": lacking}))


def _failed_task(step: Step) -> Task | None:
    """Returns the task whose failure makes the step fail. A failed task that only reads does not count."""
    return next((task for task in step.tasks if task.status == "failed" and task.effect != "read"), None)


def _checks(step: Step) -> set[str]:
    return {thing.name for thing in named_in(step.success) if thing.kind == "command"}


class JobWork:
    """Runs the steps of one job in the order of their dependencies, and independent steps side by side."""

    def __init__(
        self,
        job: Job,
        actor: Actor,
        dispatcher: Dispatcher,
        drafter: Drafter,
        agents: Agents,
        pacemaker: Pacemaker,
        settings: AgentSettings,
        locks: FileLocks,
    ) -> None:
        self._job_name = job.name
        self._plan_id = job.plan_id
        self._step_ids = job.step_ids
        self._actor = actor
        self._drafter = drafter
        self._agents = agents
        self._pacemaker = pacemaker
        self._at_once = settings.steps_at_once
        self._locks = locks
        self._runner = TaskRunner(actor, dispatcher, drafter, settings)

    async def run(self) -> bool:
        """Runs the steps, and says whether all are completed. After a failure no further step is started; steps that
        run come to their end."""
        running: dict[asyncio.Task[bool], str] = {}
        all_succeed, start_counts = True, Counter[str]()
        try:
            while True:
                ready_steps = startable(self._plan, self._step_ids, running.values()) if all_succeed else []
                ready_steps = [s for s in ready_steps if self._may_start(s, start_counts[s.step_id], running.values())]
                for step in ready_steps[: self._at_once - len(running)]:
                    start_counts[step.step_id] += 1
                    running[asyncio.create_task(self._carry_out(step.step_id))] = step.step_id
                if not running:
                    break
                finished_tasks, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in finished_tasks:
                    del running[task]
                    all_succeed &= task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        return all(step.status == "completed" for step in self._plan.steps if step.step_id in self._step_ids)

    def _may_start(self, step: Step, starts: int, running_ids: Collection[str]) -> bool:
        """Says whether a step may begin. A step that a check has reopened waits while a step at work must pass the same
        check: that step cannot end before it has mended what made the check fail."""
        checks = _checks(step) if starts else set[str]()
        running_steps = [other for other in self._plan.steps if other.step_id in running_ids]
        return starts < STARTS and not any(checks & _checks(other) for other in running_steps)

    @property
    def _plan(self) -> Plan:
        return self._drafter.state.plans[self._plan_id]

    async def _carry_out(self, step_id: str) -> bool:
        tasks = StepTasks(
            self._plan_id, step_id, self._actor, self._drafter.state, self._runner, self._pacemaker, self._locks
        )
        is_only_step = len(self._step_ids) == 1
        with self._locks.holding(step_id, self._job_name):
            return await StepWork(
                tasks, self._actor, self._drafter, self._runner, self._agents, is_only_step
            ).carry_out()
