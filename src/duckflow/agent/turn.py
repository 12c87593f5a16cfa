"""One turn: the Pacemaker checks the limits on steps and progress, the model thinks, its actions run. This repeats
until the turn ends."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Acting
from duckflow.agent.duck_answer import DuckCallAnswers
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Ending, Guidance, Loop, Policies, Policy, TurnSoFar
from duckflow.agent.session import StateOwner
from duckflow.agent.thinker import BegunReply, Thinker, accept
from duckflow.agent.turn_pacemaker import TurnPacemaker
from duckflow.errors import DuckflowError, Outcome
from duckflow.events.types import LoopBegan, MessageAdded, Noticed, TurnBegan, TurnEnded
from duckflow.events.views import Attachment, ContextPart
from duckflow.forms.form import ParsedReply
from duckflow.i18n.asking import offers_more
from duckflow.i18n.template import notes
from duckflow.pacemaker.interventions import DuckCall, Hint, Replan
from duckflow.state.action import DUCK_CALL, EXIT, PROPOSE_PLAN, RESPOND, REVISE_PLAN, STEERS_JOBS
from duckflow.state.data import Phrase, said, say
from duckflow.state.message import Message

RECOVERIES = 3
ASKS_NOBODY = 4
"""A turn ends after this many replies with actions that need a yes while nobody is there to give it."""
log = logging.getLogger(__name__)

Begin = Callable[[], Awaitable[str | Ending | None]]


class Turn:
    """Runs the loop of one turn: ask the Pacemaker (the limits on steps and progress), think, act, look whether the
    turn ends. A policy handles every special situation."""

    def __init__(
        self,
        session: StateOwner,
        actor: Actor,
        pacing: TurnPacemaker,
        thinker: Thinker,
        acting: Acting,
        phases: Phases,
        duck: DuckCallAnswers,
        policies: Policies,
        plan_question: Callable[[], Phrase],
    ) -> None:
        """`plan_question` returns the question that a turn ends with after it has drafted a plan."""
        self._plan_question = plan_question
        self._session = session
        self._actor = actor
        self._pacing = pacing
        self._thinker = thinker
        self._acting = acting
        self._phases = phases
        self._duck = duck
        self._policies = policies
        self._at_work: Sequence[Policy] = ()
        self._recoveries = 0
        self._begun = BegunReply()
        session.subscribe(self._begun.hear, *BegunReply.HEARS)

    async def run(
        self,
        text: str,
        attachments: Sequence[Attachment],
        meanwhile: Callable[[], str],
        begin: Begin | None,
        wish: str | None = None,
        read: str | None = None,
    ) -> Outcome:
        """Runs a turn. However it ends, TurnEnded is emitted, so the conversation can always go on. If the user has
        done something instead of writing, `text` is empty and `begin` carries out what they did; it returns the first
        note, or the ending. `meanwhile` is called before each call of the model, and returns what the user has said
        since the last time. `wish` is the part of the text that the user wrote; None means all of it. `read` is the
        fingerprint of the plan's draft that the user had read before; None means every draft."""
        number = self._session.state.turn + 1
        self._session.emit(TurnBegan(turn=number))
        self._pacing.begin(text)
        self._recoveries, self._at_work = 0, self._policies.before_the_model_is_known()
        profile, wish = self._thinker.connection.ready_profile, text if wish is None else wish
        turn = TurnSoFar(self._session.state, text, attachments, profile, meanwhile, wish, read)
        try:
            ending = await self._open(turn, begin)
        except asyncio.CancelledError:
            # The user's words do not stop an agent, so whoever goes on with its work later must not read that they did.
            if not self._actor.inner:
                interruption = self._begun.interrupted(self._session.state.language)
                self._add(Message(role="system", text=interruption, turn=number))
            self._pacing.end("interrupted")
            self._session.emit(TurnEnded(turn=number, outcome="interrupted", why=say("turn.interrupted")))
            raise
        except DuckflowError as problem:
            ending = Ending(problem.outcome, said(problem))
        except Exception:
            # A bug of ours must not end the conversation.
            log.exception("a turn broke off")
            folder_exists = Path(self._session.state.folder).is_dir()
            ending = Ending("failed", say("turn.broke_off" if folder_exists else "turn.folder_gone"))
        for policy in self._at_work:
            await policy.closing(turn, ending)
        self._pacing.end(ending.outcome)
        self._session.emit(TurnEnded(turn=number, outcome=ending.outcome, why=ending.why, waits=ending.waits))
        return ending.outcome

    async def weighed(self) -> tuple[ContextPart, ...]:
        """Returns the parts of the next request, each with its number of tokens."""
        return await self._thinker.weighed(self._session.state)

    async def _open(self, turn: TurnSoFar, begin: Begin | None) -> Ending:
        if turn.request:
            if why := await self._objection(turn.request):
                return Ending("gate", why)
            is_own = turn.wish == turn.request and not self._actor.inner
            self._add(Message(role="user", text=turn.request, turn=self._session.state.turn, is_open=is_own))
        deeds = [begin] if begin else []
        note = await self._opened(turn, *deeds, *(partial(policy.opening, turn) for policy in self._at_work))
        if isinstance(note, Ending):
            return note
        profile = await turn.profile()
        self._at_work = self._policies.of(profile)
        leading_note = await self._opened(
            turn, *(partial(policy.opening, turn) for policy in self._policies.leading(profile))
        )
        return leading_note if isinstance(leading_note, Ending) else await self._loop(turn, _joined(note, leading_note))

    async def _opened(self, turn: TurnSoFar, *openings: Begin) -> str | Ending:
        note = ""
        for opening in openings:
            note_or_ending = await opening()
            if isinstance(note_or_ending, Ending):
                return note_or_ending
            note = _joined(note, note_or_ending)
        return note

    async def _loop(self, turn: TurnSoFar, note: str) -> Ending:
        """Runs loops until one ends the turn, and returns the ending. The next prompt begins with the `note`."""
        while True:
            note_or_ending = await self._beat(note)
            if isinstance(note_or_ending, Ending):
                return note_or_ending
            await self._hear(turn)
            parsed_reply = await self._think(turn, note_or_ending)
            dispatched = await self._acting.run(parsed_reply, self._actor)
            turn.loops.append(Loop(parsed_reply.decision, dispatched, parsed_reply.text))
            note_or_ending = await self._look_back(turn)
            if self._pacing.saw(parsed_reply, dispatched):
                self._recoveries = 0
            if isinstance(note_or_ending, Ending):
                note_or_ending = await self._may_end(turn, note_or_ending)
            if isinstance(note_or_ending, Ending):
                return note_or_ending
            note = note_or_ending

    async def _may_end(self, turn: TurnSoFar, ending: Ending) -> str | Ending:
        for policy in self._at_work:
            if note := await policy.ending(turn, ending):
                return note
        return ending

    async def _hear(self, turn: TurnSoFar) -> None:
        """Adds the words that the user has said during the turn to the conversation. They go into the next request, and
        count as the user's request from now on."""
        if words := turn.meanwhile():
            if why := await self._objection(words):
                self._session.emit(Noticed(what=why))
                return
            turn_number, is_own = self._session.state.turn, not self._actor.inner
            self._add(Message(role="user", text=words, turn=turn_number, meanwhile=True, is_open=is_own))
            turn.request = turn.wish = words
            for policy in self._at_work:
                await policy.heard(words)

    async def _objection(self, message: str) -> Phrase | None:
        """Returns the reason why a message may not be answered, if there is one. Such a message goes neither into the
        conversation nor into the journal."""
        for policy in self._at_work:
            if why := await policy.objection(message):
                return why
        return None

    def _add(self, message: Message) -> None:
        self._session.emit(MessageAdded(message=message))

    async def _beat(self, note: str) -> str | Ending:
        """Asks the Pacemaker (the limits on steps and progress) before a loop. Returns the note for the model, with the
        Pacemaker's advice after it. If the Pacemaker asks the user instead, the answer replaces the note."""
        if self._recoveries > RECOVERIES:
            self._recoveries = 0
            answer = await self._ask(self._pacing.too_many_errors(RECOVERIES + 1))
            if isinstance(answer, Ending):
                return answer
            note = answer
        match self._pacing.beat():
            case DuckCall() as call:
                return await self._ask(call)
            case Replan() as advice:
                self._phases.plan_anew(advice.reason)
                return _joined(note, self._notes(advice.for_model))
            case Hint() as advice:
                return _joined(note, self._notes(advice.for_model))
            case None:
                return note

    async def _ask(self, call: DuckCall) -> str | Ending:
        """Asks the user the question of a Duck Call (when work goes badly), and carries out the choice. Returns a note
        for the model, or the ending."""
        resolution = await self._pacing.put(call)
        return self._duck.carry_out(call, resolution) or self._notes(resolution.pinned)

    def _notes(self, phrases: Iterable[Phrase]) -> str:
        return notes(self._session.state.language, phrases)

    async def _think(self, turn: TurnSoFar, note: str) -> ParsedReply:
        state = self._session.state
        limit = self._pacing.limit()
        self._session.emit(
            LoopBegan(turn=state.turn, loop=state.loop + 1, limit=limit, profile=self._pacing.kind_of_work)
        )
        guidance = Guidance("")
        for policy in self._at_work:
            if advice := await policy.before(turn):
                guidance = advice
                break
        parsed_reply = await self._thinker.decide(state, limit, note or guidance.note, guidance.narrow)
        return accept(parsed_reply, self._session, self._phases, turn.said())

    async def _look_back(self, turn: TurnSoFar) -> str | Ending:
        """Decides whether the turn goes on: by what stopped the actions, then by policies, then by the model's reply
        itself."""
        if ending := self._stopped(turn):
            return ending
        turn.ending, turn.doubt = _wanted_ending(turn), ""
        for policy in self._at_work:
            if (note_or_ending := await policy.after(turn)) is not None:
                return note_or_ending
        if turn.ending and turn.ending.outcome == "pending_user":
            self._phases.wait_for_user()
        return turn.ending or _note(turn)

    def _stopped(self, turn: TurnSoFar) -> Ending | None:
        """Returns the ending after a question or a plain no; None after an error, or a no with a reason."""
        dispatched = turn.last.done
        match dispatched.stop:
            case "refused":
                self._phases.refused(dispatched.refusal)
                return None if dispatched.refusal else Ending("gate", say("turn.refused"))
            case "nobody":
                self._phases.refused(turn.note("moved_nobody"))
                asks_nobody_again = sum(loop.done.stop == "nobody" for loop in turn.loops) >= ASKS_NOBODY
                return Ending("gate", say("turn.nobody")) if asks_nobody_again else None
            case "error":
                self._recoveries += self._phases.recover(
                    next(result.for_model for result in reversed(dispatched.results) if not result.ok)
                )
                return None
            case "question" if dispatched.ran(EXIT):
                return Ending("exit")
            case "held" if not _held_before(turn):
                self._session.emit(Noticed(what=say("turn.held_once", count=dispatched.held)))
                return None
            case "question" | "held":
                offers = not dispatched.held and _offers_more(turn)
                if not offers or not self._phases.close(turn.checks().failed):
                    self._phases.wait_for_user()
                has_draft = dispatched.ran(PROPOSE_PLAN) or dispatched.ran(REVISE_PLAN)
                held_phrase = say("turn.held", count=dispatched.held) if dispatched.held else None
                if has_draft and held_phrase:
                    self._session.emit(Noticed(what=held_phrase))
                why = self._plan_question() if has_draft else held_phrase
                return Ending("pending_user", why, waits=not has_draft and _waits_for_answer(turn))
            case "" | "user_spoke":
                return None


def _held_before(turn: TurnSoFar) -> bool:
    """Says whether calls were already held back in this turn, and no call that changes something has run since then."""
    for loop in reversed(turn.loops[:-1]):
        if loop.done.stop == "held":
            return True
        if any(result.effect not in ("read", "talk") for result in loop.done.results):
            return False
    return False


def _offers_more(turn: TurnSoFar) -> bool:
    texts = [result.said for result in turn.last.done.results if result.said]
    return bool(texts) and offers_more(texts[-1], turn.state.language)


def _waits_for_answer(turn: TurnSoFar) -> bool:
    """Says whether the work cannot go on without an answer: the model's reply waits for the user, actions wait behind a
    question, or the turn has done nothing but ask. Plain talk waits for nothing."""
    decision, dispatched = turn.last.decision, turn.last.done
    has_asked = dispatched.ran(DUCK_CALL) or (decision.next_step == "pending_user" and "next_step" in decision.declared)
    results = (result for loop in turn.loops for result in loop.done.results)
    has_acted = any(result.ok and result.effect not in ("read", "talk") for result in results)
    has_only_asked = bool(turn.state.asked) and not (has_acted or _offers_more(turn))
    return has_asked or dispatched.held > 0 or has_only_asked


def _joined(*notes: str | None) -> str:
    return "\n".join(note for note in notes if note)


def _wanted_ending(turn: TurnSoFar) -> Ending | None:
    """Returns the ending that the model's reply itself asks for; None if the turn goes on."""
    decision, dispatched = turn.last.decision, turn.last.done
    previous = turn.loops[-2] if len(turn.loops) > 1 else None
    answered_before = (
        previous and previous.decision.next_step == "done" and previous.done.ran(RESPOND) and not decision.actions
    )
    is_silent = not (dispatched.ran(RESPOND) or answered_before or decision.rationale in turn.said())
    match decision.next_step:
        case _ if dispatched.stop:
            return None
        case "continue" if _has_handed_over(turn):
            return Ending("deferred")
        case "continue":
            return None
        case "done" | "defer" if not decision.actions and not any(loop.done.results for loop in turn.loops):
            # Nothing was done and nothing was said, so this is no end.
            return None
        case "done" if is_silent and any(result.ok and result.shows for result in dispatched.results):
            # Nobody has seen yet what was just looked up.
            return None
        case "done":
            outcome: Outcome = "done"
        case "defer":
            outcome = "deferred"
        case "pending_user":
            outcome = "pending_user"
    # The user has been told already that a job has begun.
    running_jobs = outcome == "deferred" and turn.state.live_jobs()
    has_summary = is_silent and not running_jobs and decision.rationale.strip("-")
    why = say("turn.summary", text=decision.rationale) if has_summary else None
    return Ending(outcome, why, waits=outcome == "pending_user" and _waits_for_answer(turn))


def _has_handed_over(turn: TurnSoFar) -> bool:
    """Says whether the reply did nothing but start or steer running jobs, and has told the user so beside the calls:
    another request would only say it again."""
    decision, results = turn.last.decision, turn.last.done.results
    is_steering = bool(results) and all(result.ok and result.operation in STEERS_JOBS for result in results)
    has_told = bool(turn.last.text.strip()) and "next_step" not in decision.declared
    return is_steering and has_told and bool(turn.state.live_jobs())


def _note(turn: TurnSoFar) -> str:
    """Returns what the next prompt should say about the last loop."""
    decision, dispatched = turn.last.decision, turn.last.done
    if objection := decision.objection():
        return turn.note("own_check_said_no", reason=objection)
    if not decision.actions:
        return turn.note("no_actions")
    if dispatched.stop == "error":
        return turn.note("action_failed")
    if dispatched.stop == "refused":
        return turn.note("wished_note" if dispatched.wished else "refused_note")
    if dispatched.stop == "nobody":
        return turn.note("action_failed" if dispatched.refusal else "nobody_note")
    if decision.next_step == "done":
        return turn.note("result_not_told")
    return ""
