"""The tasks of a step. They are carried out in order, each through the dispatcher, up to the first that fails."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from itertools import takewhile

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatched, Dispatcher
from duckflow.agent.settings import AgentSettings
from duckflow.agent.turn_pacemaker import intervention
from duckflow.errors import DuckflowError
from duckflow.events.types import MessageAdded, Noticed
from duckflow.events.work import TaskChanged, TasksPlanned
from duckflow.forms.form import ParsedReply
from duckflow.i18n.template import note, render
from duckflow.pacemaker.interventions import ENDS_TURN, DuckCall, Replan
from duckflow.pacemaker.pacemaker import LoopView, Pacemaker
from duckflow.pacemaker.signatures import step_of
from duckflow.pacemaker.vitals import Signal
from duckflow.state.action import READ_FILE, Action, Decision, Operation, TaskProfile, succeeded
from duckflow.state.agent import AgentState
from duckflow.state.data import said, say
from duckflow.state.message import Message
from duckflow.state.phase import Phase
from duckflow.state.plan import Plan, Step, Task, TaskList, TaskStatus, next_task
from duckflow.state.progress import only_asked
from duckflow.state.question import Choice, Question
from duckflow.tools.plan.drafting import Drafter
from duckflow.tools.plan.folder import made_by
from duckflow.tools.plan.steering import tell_step
from duckflow.tools.plan.step_context import left_behind
from duckflow.tools.plan.step_files import files_of
from duckflow.tools.shell.causes import telling_part
from duckflow.work.file_locks import FileLocks

AGAIN = (Choice(key="yes", label=say("job.again.yes")), Choice(key="no", label=say("job.again.no")))
RESULT = 800
LOOKED_AT = 3


class TaskRunner:
    """Runs one task within its time limit. Before a text is written, the model is shown the files that the text builds
    on: the file itself and the files that this plan has made."""

    def __init__(self, actor: Actor, dispatcher: Dispatcher, drafter: Drafter, settings: AgentSettings) -> None:
        self._actor = actor
        self._dispatcher = dispatcher
        self._drafter = drafter
        self._seconds = settings.task_seconds
        self._looked_at: set[tuple[str, str]] = set()
        """Pairs of a step's id and a path: the step's context contains the present text of that file."""
        self._explained: set[str] = set()
        """The ids of the steps whose context already says what their texts are for."""

    def changes(self, task: Task) -> bool:
        operation = self._operation(task.operation)
        return operation is None or operation.changes

    def actor_of(self, step: Step) -> Actor:
        """Returns the actor in whose name the job's actions are done, acting for this step."""
        return replace(self._actor, step_id=step.step_id)

    async def dispatch(self, reading: ParsedReply, actor: Actor) -> Dispatched:
        """Carries out a reply whose calls do not become tasks of the step."""
        return await self._dispatcher.run(reading, actor)

    async def run(
        self, plan: Plan, step: Step, actions: list[Action], actor: Actor, why: str
    ) -> tuple[Dispatched, dict[str, str]]:
        """Runs the actions of one task, or of several edits that are asked about together. Returns the results, and the
        text that the model gets for each action, by the action's id."""
        language = self._drafter.state.language
        try:
            async with replace(actor, step_id=step.step_id).at_most(self._seconds * len(actions)) as actor:
                for action in actions:
                    operation = self._operation(action.operation)
                    if operation and operation.body and operation.body not in action.args:
                        self._explain(plan, step, actor)
                        await self._look(plan, step, action, actor)
                dispatched = await self._dispatcher.run(_reading(actions, why), actor)
        except TimeoutError:
            seconds = f"{self._seconds * len(actions):g}"
            return Dispatched(), _for_each(actions, note(language, "task_too_long", seconds=seconds))
        except DuckflowError as problem:
            return Dispatched(), _for_each(actions, f"{problem}")
        for result in dispatched.results:
            self._looked_at -= {(step_id, path) for step_id, path in self._looked_at if path in result.changed}
        results_by_id = {result.action_id: telling_part(result.for_model, RESULT) for result in dispatched.results}
        return dispatched, _for_each(actions, note(language, "task_not_run")) | results_by_id

    def only_edits(self, task: Task) -> bool:
        """Says whether the task only writes a text into a file, and already contains that text."""
        operation = self._operation(task.operation)
        return operation is not None and bool(operation.body) and operation.body in task.args

    async def put_differently(self, plan: Plan, step: Step, task: Task, action: Action, wish: str) -> Action:
        """Returns the action as the user wishes it: its text is written anew, or its arguments are drafted anew. If
        that fails, the action stays as it is."""
        language = self._drafter.state.language
        if (operation := self._operation(task.operation)) and operation.body:
            purpose = note(language, "task_wish", reasoning=action.reasoning, wish=wish)
            args = {name: argument for name, argument in action.args.items() if name != operation.body}
            return action.model_copy(update={"reasoning": purpose, "args": args})
        request = note(language, "task_instead", task=f"{task.operation} {task.args}", wish=wish)
        try:
            drafted_task = (
                await self._drafter.tasks(plan, step.model_copy(update={"task_list": TaskList()}), request)
            )[0]
        except DuckflowError as problem:
            self._actor.emit(Noticed(what=said(problem)))
            return action
        changes = {"operation": drafted_task.operation, "args": drafted_task.args, "status": "in_progress"}
        tasks = tuple(
            other.model_copy(update=changes) if other.task_id == task.task_id else other for other in step.tasks
        )
        self._actor.emit(TasksPlanned(plan_id=plan.plan_id, step_id=step.step_id, tasks=tasks))
        return Action(
            operation=drafted_task.operation,
            args=drafted_task.args,
            reasoning=drafted_task.reasoning or action.reasoning,
        )

    async def read_files(self, plan: Plan, step: Step) -> None:
        """If the step writes texts, reads those of its own files that the requests for these texts quote in full. A
        file that was read here is not overwritten when somebody changes it meanwhile. The conversation has read the
        other files."""
        if await self._drafter.writes_texts():
            whole_paths = {piece.path for piece in self._drafter.pieces(plan, step) if not piece.first}
            await self._read((path for path in files_of(plan, step) if path in whole_paths), step, self.actor_of(step))

    def _explain(self, plan: Plan, step: Step, actor: Actor) -> None:
        """Tells the model once, in the step's own context, what the step's texts are for."""
        if step.step_id in self._explained:
            return
        self._explained.add(step.step_id)
        language = self._drafter.state.language
        values = {"goal": plan.goal, "step": step.name, "description": step.description, "success": step.success}
        values |= {
            "before": left_behind(plan, step, language),
            "constraints": "; ".join(self._drafter.state.five.constraints),
        }
        text = render(language, "task_purpose", **values)
        actor.emit(MessageAdded(message=Message(role="system", text=text)))

    async def _look(self, plan: Plan, step: Step, action: Action, actor: Actor) -> None:
        made_paths = [path for plan_step in plan.steps for path in made_by(plan_step)]
        await self._read([*made_paths[-LOOKED_AT:], str(action.args.get("path", ""))], step, actor)

    async def _read(self, paths: Iterable[str], step: Step, actor: Actor) -> None:
        for path in dict.fromkeys(paths):
            if path and (step.step_id, path) not in self._looked_at and self._drafter.folder.exists(path):
                why = note(self._drafter.state.language, "task_builds_on")
                read_action = Action(operation=READ_FILE, args={"path": path}, reasoning=why)
                await self._dispatcher.run(_reading([read_action], why), actor)
                self._looked_at.add((step.step_id, path))

    def _operation(self, name: str) -> Operation | None:
        return next((operation for operation in self._drafter.operations() if operation.name == name), None)


def _reading(actions: list[Action], why: str) -> ParsedReply:
    return ParsedReply(Decision.made_up(why, actions, TaskProfile.MULTI_STEP_TASK, Phase.EXECUTION))


def _for_each(actions: list[Action], text: str) -> dict[str, str]:
    return {action.action_id: text for action in actions}


def _action(task: Task, step: Step) -> Action:
    why = task.reasoning.strip() or step.name
    action = Action(operation=task.operation, args=task.args, reasoning=why, subject=task.subject)
    return action.model_copy(update={"action_id": task.action_id}) if task.action_id else action


class JobStopped(Exception):
    """The user has stopped a job when the Pacemaker asked how to go on (a Duck Call)."""


class StepTasks:
    """Runs the open tasks of a step. It looks at the state before every task, so that a change of the plan counts at
    once.

    For the job's Pacemaker (which limits loops) a task is a loop, and every completed task is progress; the limit holds
    for each step. An agent has a Pacemaker of its own, which watches over its tasks."""

    def __init__(
        self,
        plan_id: str,
        step_id: str,
        actor: Actor,
        state: AgentState,
        runner: TaskRunner,
        pacemaker: Pacemaker,
        locks: FileLocks,
    ) -> None:
        self.plan_id = plan_id
        self.step_id = step_id
        self._actor = actor
        self._state = state
        self._runner = runner
        self._pacemaker = pacemaker
        self._locks = locks
        self._loops = 0
        self.unwanted = False
        """True if the user has refused a task without saying what they want instead."""
        self.wished = False
        """True if the last task was not run because the user wants something else first. That is no failure."""
        self.refusal = ""
        """The words with which the user said no to the last task. A refusal is no failure, either."""
        self._heard = 0
        """The number of the user's messages to the step that a request has already contained."""

    @property
    def plan(self) -> Plan:
        return self._state.plans[self.plan_id]

    def step(self) -> Step | None:
        """Returns the step as it is now; None if it is no longer in the plan."""
        return next((step for step in self.plan.steps if step.step_id == self.step_id), None)

    def unheard(self) -> str:
        """Returns what the user has said to the step and no request has contained yet."""
        step = self.step()
        return "\n".join(step.open_words[self._heard :]) if step else ""

    def hear(self) -> str:
        """Returns the unheard words and counts them as heard: the caller puts them into a request."""
        words, step = self.unheard(), self.step()
        self._heard = len(step.open_words) if step else 0
        return words

    def plan_anew(self, tasks: list[Task]) -> None:
        """Replaces the step's tasks; those that are done must be among the new ones."""
        self._actor.emit(TasksPlanned(plan_id=self.plan_id, step_id=self.step_id, tasks=tuple(tasks)))

    async def run(self, actor: Actor, why: str = "") -> Dispatched:
        """Runs the open tasks, once no other step changes their files, until the user says something to the step. `why`
        is the agent's reason for them, which the user reads when asked to allow them."""
        dispatched = Dispatched()
        async with self._locks.when_free(self.step_id):
            while (step := self.step()) and (task := next_task(step)) and not self.unheard():
                await actor.wait_until_clear()
                if not actor.inner:
                    await self._beat()
                if (step := self.step()) is None or next_task(step) is not task or self.unheard():
                    continue
                if await self._may_run(task):
                    await self._run_tasks(
                        step, self._with_edits(step, task, actor), dispatched, actor, why or step.name
                    )
                else:
                    self._tell(task, "cancelled", note(self._state.language, "task_left_out"))
        return dispatched

    def _with_edits(self, step: Step, task: Task, actor: Actor) -> list[Task]:
        """Returns the task alone. An edit in an agent's reply is returned together with the edits right after it: the
        user is asked about them in one question."""
        tasks_from_here = step.tasks[step.tasks.index(task) :]
        edits = list(takewhile(self._may_join, tasks_from_here))
        return edits if actor.inner and len(edits) > 1 else [task]

    def _may_join(self, task: Task) -> bool:
        return task.status == "pending" and self._runner.only_edits(task)

    async def _run_tasks(self, step: Step, tasks: list[Task], done: Dispatched, actor: Actor, why: str) -> None:
        self._tell(tasks[0], "in_progress", None)
        actions = [_action(task, step) for task in tasks]
        actor = replace(actor, unheard=self.unheard) if len(tasks) > 1 else actor
        try:
            dispatched, texts = await self._runner.run(self.plan, step, actions, actor, why)
            while dispatched.stop == "refused" and dispatched.refusal and not actor.inner:
                # A no with a wish is no failure: the task is changed as the user wants it, and asked about again.
                actions = [
                    await self._runner.put_differently(self.plan, step, tasks[0], actions[0], dispatched.refusal)
                ]
                dispatched, texts = await self._runner.run(self.plan, step, actions, actor, why)
        except asyncio.CancelledError:
            job = self._state.jobs[self._actor.job_id]
            status = "pending" if only_asked(self._state, job) else "interrupted"
            for task in tasks:
                self._tell(task, status, task.result)
            raise
        results = {result.action_id: succeeded(result) for result in dispatched.results}
        if dispatched.stop == "user_spoke":
            # The tasks that were not begun stay open. The agent reads the user's words and decides anew.
            for task in tasks[len(results) :]:
                self._tell(task, "pending", task.result)
            tasks, actions = tasks[: len(results)], actions[: len(results)]
            dispatched.stop = ""
        done.add(dispatched)
        self.unwanted |= dispatched.stop == "refused" and not dispatched.refusal
        self.wished = dispatched.wished
        self.refusal = dispatched.refusal if dispatched.stop == "refused" else ""
        for task, action in zip(tasks, actions, strict=True):
            ok = results.get(action.action_id, False) and (len(tasks) > 1 or not dispatched.stop)
            self._tell(task, "completed" if ok else "failed", texts[action.action_id])
        if actor.inner:
            return
        for result in dispatched.results:
            self._pacemaker.observe(step_of(actions[0], result))
        if all(results.values()) and results and not dispatched.stop:
            self._pacemaker.notice(Signal.DONE)

    async def _beat(self) -> None:
        """Lets the Pacemaker judge the work before a task. The Pacemaker may show a line or ask the user, whose answer
        may end the job."""
        view = LoopView(self._loops, TaskProfile.MULTI_STEP_TASK, plan_running=True)
        self._loops += 1
        verdict, emit = self._pacemaker.beat(view), self._actor.emit
        if isinstance(verdict, Replan) and (intervened_event := intervention(verdict)):
            emit(intervened_event)
        if not isinstance(verdict, DuckCall):
            return
        answer = await self._actor.ask(verdict.question())
        resolution = self._pacemaker.answered(verdict, answer.choice, answer.text, loop=view.loop)
        if resolution.effect in ENDS_TURN:
            raise JobStopped

    async def _may_run(self, task: Task) -> bool:
        """Says whether a task may run. A task that was cut off may have been done already, so it runs again only if the
        user agrees. If the user answers with words instead of a yes, these words are passed on to the step."""
        if task.status == "pending" or not self._runner.changes(task):
            return True
        question = Question(kind="gate", title=say("job.again", task=task.line), choices=AGAIN)
        answer, step = await self._actor.ask(question), self.step()
        if step and answer.text and answer.choice != "yes":
            tell_step(self._actor.emit, self.plan, step, answer.said or answer.text)
        return answer.choice == "yes"

    def _tell(self, task: Task, status: TaskStatus, result: str | None) -> None:
        self._actor.emit(
            TaskChanged(plan_id=self.plan_id, step_id=self.step_id, task_id=task.task_id, status=status, result=result)
        )
