"""The user's answer to the draft of a plan: it approves the draft, drops it, or goes to the model."""

from pathlib import Path

from duckflow.agent.connection import ModelConnection
from duckflow.agent.gatekeeper import Gatekeeper
from duckflow.agent.phases import Phases
from duckflow.agent.plan_permissions import plan_rules
from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.agent.questions_back import told_action
from duckflow.agent.session import Session
from duckflow.errors import ToolError
from duckflow.events.ports import Ask
from duckflow.events.types import Event, Noticed, PlanChanged
from duckflow.i18n.answer_words import agrees_somewhere, surely_wishes
from duckflow.i18n.answers import WholeAnswer, read_answer, read_whole, without_reference
from duckflow.i18n.asking import asks
from duckflow.i18n.template import note, quoted
from duckflow.state.data import Phrase, same_words, say
from duckflow.state.message import Message
from duckflow.state.mode import Mode
from duckflow.state.plan import Plan
from duckflow.state.question import Answer, Choice, Question
from duckflow.tools.plan.ports import Jobs

LONGEST_ACTION = 3000
PLAIN_YES = WholeAnswer("yes")
WITH_EDITS = "edits"
"""The choice that starts a plan and allows the edits of its files."""


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
        allowed_text = self._gatekeeper.allow_plan(plan, answer)
        profile = await self._connection.ready_profile()
        if profile.local or answer.background or plan.background:
            # A small model loses the thread between a yes and the tasks, so the whole plan is handed over at once.
            job = self._jobs.start(plan.plan_id, [step.step_id for step in plan.steps])
            return Ending("deferred", say("job.started", job=job.name))
        step = plan.next_step()
        first_step = f"{step.name} ({step.step_id})" if step else "-"
        # A model that calls tools makes the calls of a step when its time comes, so it needs no list before.
        note_key = "plan_approved_native" if profile.native_tools else "plan_approved"
        approved_note = note(self._session.state.language, note_key, plan=plan.name, step=first_step)
        return "\n".join(filter(None, (approved_note, allowed_text)))

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
        answer = read_whole(words := self.words_of(newest_message.text), state.language)
        background |= answer.background
        agreed, confirmation = (answer if answer.plain_yes else None), Answer(choice="no")
        if agreed is None and (answer.may_be_yes or _may_agree(words, answer, state.language)):
            agreed, confirmation = await self.confirmed(plan, in_background=background)
        if agreed is None:
            why = note(state.language, "approve_no_yes")
            why += "\n" + note(state.language, "user_says", text=confirmation.text) if confirmation.text else ""
            raise ToolError(why, "plan.not_approved", name=plan.name)
        objection = await self.approve(plan, agreed._replace(background=background or agreed.background))
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

    async def confirmed(self, plan: Plan, *, in_background: bool) -> tuple[WholeAnswer | None, Answer]:
        """Asks the user to start the plan by one key. Returns the yes, or None, and the whole answer. Where every edit
        is asked about, one of the choices also allows the edits of the plan's files."""
        yes_label = say("plan.start_background" if in_background or plan.background else "plan.start_yes")
        choices = [Choice(key="yes", label=yes_label)]
        if self._gatekeeper.mode is Mode.ASK and (rules := plan_rules(plan)):
            choices.append(Choice(key=WITH_EDITS, label=say("plan.start_edits", files=rules[0].pattern)))
        choices.append(Choice(key="no", label=say("plan.start_no"), takes_text=True))
        title = say("plan.start", name=plan.name)
        question = Question(kind="choice", title=title, choices=tuple(choices), on_record=True)
        answer = await self._ask(question)
        if answer.choice == WITH_EDITS:
            return PLAIN_YES._replace(scope="session"), answer
        if answer.choice != "yes":
            return None, answer
        own_words = read_whole(answer.said, self._session.state.language) if answer.said else PLAIN_YES
        return own_words, answer

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
        if (whole_answer.wish or whole_answer.agreed) and not surely_wishes(words, language):
            if turn.read not in (None, plan.fingerprint()):
                return Ending("pending_user", say("plan.unread", name=plan.name))
            # A yes with words that are not surely understood takes one key, and none of the model's time.
            return await self._confirmed_in_line(plan, whole_answer, turn)
        return turn.note("plan_waits", plan=plan.name)

    async def _confirmed_in_line(self, plan: Plan, whole_answer: WholeAnswer, turn: TurnSoFar) -> str | Ending:
        agreed, answer = await self._approval.confirmed(plan, in_background=whole_answer.background)
        if agreed is None:
            said_instead = turn.note("user_says", text=answer.text) if answer.text else ""
            return "\n".join(filter(None, (turn.note("plan_waits", plan=plan.name), said_instead)))
        return await self._approval.approve(
            plan, agreed._replace(background=whole_answer.background or agreed.background)
        )

    async def _of_others(self, text: str, language: str, plan: Plan) -> str | Ending | None:
        """Asks the user to confirm a yes that came from somebody else, whose words give no wider permission."""
        answer, in_background = read_answer(text, language=language), read_whole(text, language).background
        if answer is None or answer.choice != "yes":
            return None
        agreed, _ = await self._approval.confirmed(plan, in_background=in_background)
        if agreed is None:
            return None
        return await self._approval.approve(plan, agreed._replace(background=in_background or agreed.background))


def _may_agree(text: str, whole: WholeAnswer, language: str) -> bool:
    """Says whether an answer that is not surely understood agrees in one of its parts, so that one key may confirm
    it."""
    is_open = whole.verdict == "other" and not (whole.asks or whole.waits)
    return is_open and (whole.wish or agrees_somewhere(text, language))


def _told_of_jobs(turn: TurnSoFar) -> str:
    """Returns a note for the model: how a message reaches a job, and what the user sees at the open question (Gate) of
    a job, which the message may be about."""
    lines = [turn.note("job_listens" if turn.state.at_work else "job_listens_paused")]
    for question in (job.question for job in turn.state.live_jobs() if job.question):
        if job_gate := question.gate:
            action = told_action(job_gate, Path(turn.state.folder))[:LONGEST_ACTION]
            lines.append(turn.note("job_at_gate", job=question.job_name, intent="; ".join(job_gate.intent) or "-"))
            lines.append(quoted(turn.state.language, ", ".join(job_gate.operations), action))
    return "\n".join(lines)
