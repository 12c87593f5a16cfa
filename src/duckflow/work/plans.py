"""The plan and its jobs as the user controls them, and the checks that reopen a completed step when its evidence no
longer holds."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from duckflow.agent.connection import ModelConnection
from duckflow.agent.gatekeeper import Gatekeeper
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.agent.session import Session
from duckflow.agent.turns import Turns
from duckflow.errors import Outcome, ToolError, UsageError
from duckflow.events.ports import Ask
from duckflow.events.types import ActionFinished, Event, Noticed, PlanChanged, TurnUndone
from duckflow.events.views import JobWish
from duckflow.events.work import StepChanged
from duckflow.i18n.answers import WholeAnswer, read_answer, read_whole, without_reference
from duckflow.i18n.asking import asks
from duckflow.i18n.template import note, quoted
from duckflow.i18n.typed import wish_in
from duckflow.state.action import Evidence, evidence_of
from duckflow.state.data import Phrase, said, same_words, say
from duckflow.state.message import Message
from duckflow.state.plan import Plan, Step, StepStatus
from duckflow.state.progress import job_progress, told_end
from duckflow.state.question import Answer, Choice, Question
from duckflow.tools.plan.folder import WorkFolder
from duckflow.tools.plan.ports import Jobs
from duckflow.tools.plan.steering import tell_changed_steps
from duckflow.work.jobs import JobRunner

if TYPE_CHECKING:
    from duckflow.work.sub_agents import SubAgents

LONGEST_ACTION = 3000
PLAIN_YES = WholeAnswer("yes")


class PlanApproval:
    """Approves or drops a plan, whether the user's yes or no came as an answer, a command, or through the model."""

    def __init__(
        self,
        session: Session,
        phases: Phases,
        jobs: Jobs,
        connection: ModelConnection,
        ask: Ask,
        gatekeeper: Gatekeeper,
    ) -> None:
        self._session = session
        self._phases = phases
        self._jobs = jobs
        self._connection = connection
        self._ask = ask
        self._gatekeeper = gatekeeper
        self._heard_before = self._newest_id()
        """The newest message of the user when the draft was shown: it cannot have been about the draft."""
        session.subscribe(self._hear, PlanChanged)

    async def approve(self, plan: Plan, answer: WholeAnswer = PLAIN_YES) -> str | Ending:
        """Approves a plan. Returns the instruction with which the model begins, or the ending of the turn. A yes that
        holds for longer adds the rule for the plan's files. A plan whose steps are all done ends with the yes."""
        self._session.emit(PlanChanged(plan=plan.agreed(self._session.state.turn)))
        self._session.emit(Noticed(what=say("plan.approved", name=plan.name)))
        self._phases.plan_approved()
        if plan.all_done:
            return note(self._session.state.language, "plan_ends", plan=plan.name)
        self._gatekeeper.allow_plan(plan, answer)
        profile = await self._connection.ready_profile()
        if profile.local or answer.background or plan.background:
            # A small model loses the thread between a yes and the tasks, so the whole plan is handed over at once.
            job = self._jobs.start(plan.plan_id, [step.step_id for step in plan.steps])
            return Ending("deferred", say("job.started", job=job.name))
        step = plan.next_step()
        first_step = f"{step.name} ({step.step_id})" if step else "-"
        # A model that calls tools makes the calls of a step when its time comes, so it needs no list before.
        note_key = "plan_approved_native" if profile.native_tools else "plan_approved"
        return note(self._session.state.language, note_key, plan=plan.name, step=first_step)

    async def pass_on(self, words: str, background: bool) -> str:
        """Checks the model's claim that the user has agreed. `words` must be the user's whole newest message, said
        after the draft was shown, and nothing in it may speak against a yes. If it is no plain yes, the user is asked
        to confirm it by one key."""
        state = self._session.state
        plan, newest_message = state.plan, next(iter(self._heard()[-1:]), None)
        if plan is None or plan.status != "draft":
            raise ToolError("there is no draft that waits for a yes", "plan.no_draft")
        if newest_message is None or newest_message.message_id == self._heard_before:
            raise ToolError(note(state.language, "approve_too_early"), "plan.not_approved", name=plan.name)
        if not same_words(words, newest_message.text):
            raise ToolError(note(state.language, "approve_not_quoted"), "plan.not_approved", name=plan.name)
        answer = read_whole(self.words_of(newest_message.text), state.language)
        confirmation = Answer(choice="yes" if answer.plain_yes else "no")
        if answer.may_be_yes and not answer.plain_yes:
            background |= answer.background
            confirmation = await self.confirm_start(plan, in_background=background)
            answer = read_whole(confirmation.said, state.language) if confirmation.said else answer
        if confirmation.choice != "yes":
            why = note(state.language, "approve_no_yes")
            why += "\n" + note(state.language, "user_says", text=confirmation.text) if confirmation.text else ""
            raise ToolError(why, "plan.not_approved", name=plan.name)
        objection = await self.approve(plan, answer._replace(background=background or answer.background))
        started = note(state.language, "approve_in_background", plan=plan.name)
        return objection if isinstance(objection, str) else started

    def overhear(self) -> None:
        """Notes that the newest message does not answer the question whether the plan's draft is approved."""
        self._heard_before = self._newest_id()

    def words_of(self, text: str) -> str:
        """Returns the newest message without "in that case", if the message before it asked about the draft."""
        language, earlier = self._session.state.language, self._heard()[-2:-1]
        asked = any(message.message_id != self._heard_before and asks(message.text, language) for message in earlier)
        return without_reference(text, language) if asked else text

    def drop(self, plan: Plan) -> Phrase:
        """Drops a plan. If only a weaker draft of an approved plan was open, drops that draft and keeps the approved
        plan. Returns the phrase that says which of the two was dropped."""
        if plan.approved:
            self._session.emit(PlanChanged(plan=plan.approved))
            self._phases.plan_approved()
            return say("plan.kept", name=plan.approved.name)
        self._session.emit(PlanChanged(plan=plan.model_copy(update={"status": "failed"}), active=False))
        self._phases.plan_refused()
        return say("plan.dropped", name=plan.name)

    async def confirm_start(self, plan: Plan, *, in_background: bool) -> Answer:
        no_choice = Choice(key="no", label=say("plan.start_no"), takes_text=True)
        yes_label = say("plan.start_background" if in_background or plan.background else "plan.start_yes")
        choices = (Choice(key="yes", label=yes_label), no_choice)
        title = say("plan.start", name=plan.name)
        return await self._ask(Question(kind="choice", title=title, choices=choices, on_record=True))

    def _hear(self, event: Event) -> None:
        if isinstance(event, PlanChanged) and event.plan.status == "draft":
            self.overhear()

    def _heard(self) -> list[Message]:
        return [message for message in self._session.state.messages if message.role == "user" and not message.job]

    def _newest_id(self) -> str:
        return self._heard()[-1].message_id if self._heard() else ""


class PlanAnswer(Policy):
    """Takes a message as the answer to a draft: yes approves the draft, and no drops it. A word for waiting leaves it
    as it is. Everything else goes to the model, which may answer, revise the draft or pass on a yes. If a job is at
    work, the model is told how to hand the message on to it."""

    def __init__(self, approval: PlanApproval) -> None:
        self._approval = approval

    async def opening(self, turn: TurnSoFar) -> str | Ending | None:
        plan, language = turn.state.plan, turn.state.language
        if plan is None or plan.status != "draft":
            return _told_of_jobs(turn) if turn.request and turn.state.live_jobs() else None
        if turn.wish != turn.request:
            # A file, a program or a server may have written the rest of it, and the yes must be the user's own.
            self._approval.overhear()
            return await self._of_others(turn.request, language, plan) or turn.note("plan_waits", plan=plan.name)
        words = self._approval.words_of(turn.request)
        whole_answer, answer = read_whole(words, language), read_answer(words, language=language)
        if whole_answer.waits:
            return Ending("pending_user", say("plan.waits", name=plan.name))
        if answer and answer.choice == "yes" and turn.read not in (None, plan.fingerprint()):
            return Ending("pending_user", say("plan.unread", name=plan.name))
        if answer and answer.choice == "yes":
            return await self._approval.approve(plan, whole_answer)
        if answer and answer.choice == "no" and not answer.text:
            return Ending("pending_user", self._approval.drop(plan))
        if answer and answer.choice == "no" and plan.approved:
            self._approval.drop(plan)
            return turn.note("plan_kept", plan=plan.approved.name)
        return turn.note("plan_waits", plan=plan.name)

    async def _of_others(self, text: str, language: str, plan: Plan) -> str | Ending | None:
        """Asks the user to confirm a yes that came from somebody else, whose words give no wider permission."""
        answer, in_background = read_answer(text, language=language), read_whole(text, language).background
        if answer is None or answer.choice != "yes":
            return None
        if (confirmation := await self._approval.confirm_start(plan, in_background=in_background)).choice != "yes":
            return None
        own_words = read_whole(confirmation.said, language)
        return await self._approval.approve(plan, own_words._replace(background=in_background or own_words.background))


def _told_of_jobs(turn: TurnSoFar) -> str:
    """Returns a note for the model: how a message reaches a job, and what the user sees at the open question (Gate) of
    a job, which the message may be about."""
    lines = [turn.note("job_listens")]
    for question in (job.question for job in turn.state.live_jobs() if job.question):
        if job_gate := question.gate:
            action = (job_gate.diff or ", ".join(job_gate.operations))[:LONGEST_ACTION]
            lines.append(turn.note("job_at_gate", job=question.job_name, intent="; ".join(job_gate.intent) or "-"))
            lines.append(quoted(turn.state.language, ", ".join(job_gate.operations), action))
    return "\n".join(lines)


class StepChecks:
    """Opens a completed step again when a result speaks against it, and completes it when a later result shows that the
    step is done. Results of the conversation, of jobs and of the user's own undo all count."""

    def __init__(self, session: Session, folder: WorkFolder) -> None:
        self._session = session
        self._folder = folder
        self._opened: set[str] = set()
        self._taken_back: list[dict[str, str]] = []
        """For each undo, the evidence of the steps whose work it undid, by the step's id."""
        self._listening = False
        session.subscribe(self._listen, PlanChanged)
        if session.state.plans:
            self._listen()

    def _listen(self, event: Event | None = None) -> None:
        """Subscribes to results once there is a plan. If a changed plan names its checks in another way, older results
        may show that its steps are done."""
        if isinstance(event, PlanChanged) and event.plan.under_way:
            for step in event.plan.steps:
                if step.unverified:
                    self._close(event.plan, step)
        if not self._listening:
            self._listening = True
            self._session.subscribe(self._hear, ActionFinished, TurnUndone)

    def _hear(self, event: Event) -> None:
        match event:
            case ActionFinished():
                if event.result.changed:
                    self._taken_back.clear()
                self._look(evidence_of(event.result), event.result.changed)
            case TurnUndone():
                self._take_back(event) if event.back else self._bring_back()
                self._look(None, event.changed)
            case _:
                pass

    def _take_back(self, event: TurnUndone) -> None:
        """Reopens the steps whose work or files the undo has reset, and the steps that depend on them."""
        from duckflow.tools.plan.folder import made_by

        plan = self._session.state.plan
        undone_steps = dict[str, str]()
        for step in plan.steps if plan and plan.status not in ("draft", "failed") else ():
            is_reset = step.step_id in event.steps or not set(event.cleared).isdisjoint(made_by(step))
            if (is_reset or not undone_steps.keys().isdisjoint(step.depends_on)) and step.status == "completed":
                undone_steps[step.step_id] = step.evidence
        self._taken_back.append(undone_steps)
        if plan and undone_steps:
            for step in (reopened_steps := [step for step in plan.steps if step.step_id in undone_steps]):
                self._change(plan, step, "pending")
            names, files = ", ".join(step.name for step in reopened_steps), ", ".join(event.changed)
            self._session.emit(Noticed(what=say("plan.step_reopened", step=names, why=files)))

    def _bring_back(self) -> None:
        """Completes the steps again whose undone work has been restored by a redo: nothing else has changed, so their
        evidence is valid again."""
        plan = self._session.state.plan
        undone_steps = self._taken_back.pop() if self._taken_back else {}
        for step in list(plan.steps) if plan else ():
            if plan and step.step_id in undone_steps:
                self._change(plan, step, "completed", undone_steps[step.step_id])

    def _look(self, evidence: Evidence | None, changed: Sequence[str]) -> None:
        plan = self._session.state.plan
        if plan is None or plan.status in ("draft", "failed") or not (evidence or changed):
            return
        from duckflow.tools.plan.proof import refuted

        why, reopened_steps = "", list[str]()
        for step in plan.steps:
            if step.status == "completed" and step.evidence:
                refutation = refuted(step, evidence, changed, self._folder)
                if refutation:
                    why, reopened_steps = refutation, [*reopened_steps, step.name]
                    self._opened.add(step.step_id)
                    self._change(plan, step, "pending")
            elif step.status == "completed" or step.step_id in self._opened:
                self._close(plan, step)
        if reopened_steps:
            self._session.emit(Noticed(what=say("plan.step_reopened", step=", ".join(reopened_steps), why=why)))

    def _close(self, plan: Plan, step: Step) -> None:
        """Completes a step if a result now shows that it is done. The step was called done too early, or a check had
        reopened it."""
        from duckflow.tools.plan.criterion import named_in
        from duckflow.tools.plan.proof import proof

        evidence = proof(self._session.state, step, self._folder) if named_in(step.success) else ""
        if evidence:
            self._opened.discard(step.step_id)
            self._change(plan, step, "completed", evidence)
            self._session.emit(Noticed(what=say("plan.step_shown", step=step.name, evidence=evidence)))

    def _change(self, plan: Plan, step: Step, status: StepStatus, evidence: str = "") -> None:
        self._session.emit(StepChanged(plan_id=plan.plan_id, step_id=step.step_id, status=status, evidence=evidence))


class PlannedWork:
    """Approves, changes and drops the plan; pauses, resumes and cancels its jobs; stops agents and talks to them."""

    def __init__(
        self,
        session: Session,
        turns: Turns,
        jobs: JobRunner,
        approval: PlanApproval,
        agents: "Callable[[], SubAgents]",
    ) -> None:
        self._agents = agents
        self._approval = approval
        self._session = session
        self._turns = turns
        self._jobs = jobs
        self._controls: set[asyncio.Task[Any]] = set()

    def approve_plan(self, shown: str) -> Awaitable[Outcome]:
        return self._turns.begin(partial(self._approve, shown))

    def drop_plan(self, plan: Plan) -> Phrase:
        return self._approval.drop(plan)

    def change_plan(self, plan: Plan) -> None:
        from duckflow.tools.plan.criterion import with_checks

        old_plan = self._session.state.plans[plan.plan_id]
        self._session.emit(PlanChanged(plan=with_checks(plan)))
        tell_changed_steps(self._session.emit, self._session.state, old_plan)

    async def settle(self) -> None:
        await self._jobs.settle()

    async def resume_all(self) -> None:
        for job in list(self._session.state.jobs.values()):
            if job.status == "interrupted" and job.was_running:
                await self._jobs.resume(job.job_id)

    async def jobs_over(self, alone: bool = False) -> None:
        await self._jobs.rest(alone)

    def end_cut_off_agents(self) -> str:
        from duckflow.work.sub_agents import mark_interrupted

        return mark_interrupted(self._session)

    async def aclose(self) -> None:
        await self._jobs.aclose()

    def control(self, wish: JobWish, job_id: str = "") -> None:
        task = asyncio.create_task(self._control(wish, job_id))
        self._controls.add(task)
        task.add_done_callback(self._controls.discard)

    async def controlled(self) -> None:
        await asyncio.gather(*self._controls)

    async def stop_agent(self, agent_id: str) -> None:
        self._agents().stop(agent_id)

    async def tell_agent(self, agent_id: str, text: str) -> None:
        if not text.strip():
            raise UsageError("agent.tell_usage")
        self._agents().tell(agent_id, text.strip())

    def aside(self, text: str) -> tuple[Phrase, ...] | None:
        state = self._session.state
        match wish_in(text, state):
            case None:
                return None
            case "progress":
                ended_lines = tuple(map(told_end, state.just_ended()))
                return ended_lines or tuple(line for job in state.live_jobs() for line in job_progress(state, job))
            case wish:
                self.control(wish)
                return ()

    async def _approve(self, shown: str) -> str | Ending:
        """Approves the draft that was shown. A turn that ran in between may have replaced it by another draft."""
        plan = self._session.state.plan
        if plan is None or plan.status != "draft":
            return Ending("done")
        if plan.fingerprint() != shown:
            return Ending("done", say("plan.changed_since", name=plan.name))
        return await self._approval.approve(plan)

    async def _control(self, wish: JobWish, job_id: str) -> None:
        try:
            match wish:
                case "pause":
                    job, phrase_key = await self._jobs.pause(job_id), "job.paused"
                case "resume":
                    job, phrase_key = await self._jobs.resume(job_id), "job.resumed"
                case "cancel":
                    job, phrase_key = await self._jobs.cancel(job_id), "job.cancelled"
            self._session.emit(Noticed(what=say(phrase_key, job=job.name)))
        except ToolError as problem:
            self._session.emit(Noticed(what=said(problem)))
