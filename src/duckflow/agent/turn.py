"""One turn: beat, think, act, until control goes back to the user."""

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
from duckflow.errors import DuckflowError
from duckflow.events.types import LoopBegan, MessageAdded, Noticed, TurnBegan, TurnEnded
from duckflow.events.views import Attachment
from duckflow.forms.form import Reading
from duckflow.i18n.asking import offers_more
from duckflow.i18n.template import notes
from duckflow.outcome import Outcome
from duckflow.pacemaker.interventions import DuckCall, Hint, Replan
from duckflow.prompts.layers import Layer
from duckflow.state.action import DUCK_CALL, EXIT, PROPOSE_PLAN, RESPOND, REVISE_PLAN
from duckflow.state.message import Message
from duckflow.state.phrase import Phrase, said, say

RECOVERIES = 3
ASKS_NOBODY = 4
"""So many replies of a turn that want a yes where nobody can give it end the turn."""
log = logging.getLogger(__name__)

Begin = Callable[[], Awaitable[str | Ending | None]]


class Turn:
    """The loop. It reads like its description: beat, think, act, end? Everything special is a policy."""

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
    ) -> None:
        self._session = session
        self._actor = actor
        self._pacing = pacing
        self._thinker = thinker
        self._acting = acting
        self._phases = phases
        self._duck = duck
        self._policies = policies
        self._at_work: Sequence[Policy] = policies.before_the_model_is_known()
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
    ) -> Outcome:
        """Every way out ends with TurnEnded, so the conversation can always go on. Where the user has done something
        instead of saying it, there is no text, and `begin` is what they did: it gives the first note, or the ending.
        `meanwhile` is asked before each call of the model for what the user has said since. `wish`: the user's own
        words in the text, where they are not all of it."""
        number = self._session.state.turn + 1
        self._session.emit(TurnBegan(turn=number))
        self._pacing.begin(text)
        self._recoveries, self._at_work = 0, self._policies.before_the_model_is_known()
        profile, wish = self._thinker.connection.ready_profile, text if wish is None else wish
        turn = TurnSoFar(self._session.state, text, attachments, profile, meanwhile, wish)
        try:
            ending = await self._open(turn, begin)
        except asyncio.CancelledError:
            # An agent is not stopped by a word of the user to it, and what goes on with its work must not read so.
            if not self._actor.inner:
                told = self._begun.interrupted(self._session.state.language)
                self._add(Message(role="system", text=told, turn=number))
            self._pacing.end("interrupted")
            self._session.emit(TurnEnded(turn=number, outcome="interrupted", why=say("turn.interrupted")))
            raise
        except DuckflowError as problem:
            ending = Ending(problem.outcome, said(problem))
        except Exception:
            # A mistake of ours must not take the conversation with it.
            log.exception("a turn broke off")
            here = Path(self._session.state.folder).is_dir()
            ending = Ending("failed", say("turn.broke_off" if here else "turn.folder_gone"))
        for policy in self._at_work:
            await policy.closing(turn, ending)
        self._pacing.end(ending.outcome)
        self._session.emit(TurnEnded(turn=number, outcome=ending.outcome, why=ending.why, waits=ending.waits))
        return ending.outcome

    async def weighed(self) -> tuple[Layer, ...]:
        """The parts of the next request with their tokens."""
        return await self._thinker.weighed(self._session.state)

    async def _open(self, turn: TurnSoFar, begin: Begin | None) -> Ending:
        if turn.request:
            if why := await self._objection(turn.request):
                return Ending("gate", why)
            self._add(Message(role="user", text=turn.request, turn=self._session.state.turn))
        deeds = [begin] if begin else []
        note = await self._opened(turn, *deeds, *(partial(policy.opening, turn) for policy in self._at_work))
        if isinstance(note, Ending):
            return note
        profile = await turn.profile()
        self._at_work = self._policies.of(profile)
        more = await self._opened(turn, *(partial(one.opening, turn) for one in self._policies.leading(profile)))
        return more if isinstance(more, Ending) else await self._loop(turn, _joined(note, more))

    async def _opened(self, turn: TurnSoFar, *openings: Begin) -> str | Ending:
        note = ""
        for opening in openings:
            told = await opening()
            if isinstance(told, Ending):
                return told
            note = _joined(note, told)
        return note

    async def _loop(self, turn: TurnSoFar, note: str) -> Ending:
        """A note is what the next prompt says first of all; an ending ends the turn."""
        while True:
            told = await self._beat(note)
            if isinstance(told, Ending):
                return told
            await self._hear(turn)
            reading = await self._think(turn, told)
            done = await self._acting.run(reading, self._actor)
            turn.loops.append(Loop(reading.decision, done))
            told = await self._look_back(turn)
            if self._pacing.saw(reading, done):
                self._recoveries = 0
            if isinstance(told, Ending):
                told = await self._may_end(turn, told)
            if isinstance(told, Ending):
                return told
            note = told

    async def _may_end(self, turn: TurnSoFar, ending: Ending) -> str | Ending:
        for policy in self._at_work:
            if note := await policy.ending(turn, ending):
                return note
        return ending

    async def _hear(self, turn: TurnSoFar) -> None:
        """What the user has said meanwhile goes into the next request, and counts as what they want now."""
        if said := turn.meanwhile():
            if why := await self._objection(said):
                self._session.emit(Noticed(what=why))
                return
            self._add(Message(role="user", text=said, turn=self._session.state.turn, meanwhile=True))
            turn.request = turn.wish = said
            for policy in self._at_work:
                await policy.heard(said)

    async def _objection(self, said: str) -> Phrase | None:
        """Why a message may not be taken up: then it is nowhere, neither in the conversation nor on the record."""
        for policy in self._at_work:
            if why := await policy.objection(said):
                return why
        return None

    def _add(self, message: Message) -> None:
        self._session.emit(MessageAdded(message=message))

    async def _beat(self, note: str) -> str | Ending:
        """The Pacemaker's word before a loop: a Duck Call or a new plan takes the place of the note."""
        if self._recoveries > RECOVERIES:
            self._recoveries = 0
            told = await self._ask(self._pacing.too_many_errors(RECOVERIES + 1))
            if isinstance(told, Ending):
                return told
            note = told
        match self._pacing.beat():
            case DuckCall() as call:
                return await self._ask(call)
            case Replan() as advice:
                self._phases.plan_anew(advice.reason)
                return self._notes(advice.for_model)
            case Hint() as advice:
                return _joined(note, self._notes(advice.for_model))
            case None:
                return note

    async def _ask(self, call: DuckCall) -> str | Ending:
        """Put the Duck Call, and do what was chosen."""
        resolution = await self._pacing.put(call)
        return self._duck.carry_out(call, resolution) or self._notes(resolution.pinned)

    def _notes(self, phrases: Iterable[Phrase]) -> str:
        return notes(self._session.state.language, phrases)

    async def _think(self, turn: TurnSoFar, note: str) -> Reading:
        state = self._session.state
        limit = self._pacing.limit()
        self._session.emit(
            LoopBegan(turn=state.turn, loop=state.loop + 1, limit=limit, profile=self._pacing.kind_of_work)
        )
        guidance = Guidance("")
        for policy in self._at_work:
            if found := await policy.before(turn):
                guidance = found
                break
        reading = await self._thinker.decide(state, limit, note or guidance.note, guidance.narrow)
        return accept(reading, self._session, self._phases, turn.said())

    async def _look_back(self, turn: TurnSoFar) -> str | Ending:
        """What stopped the actions comes first, then the policies, then the Decision itself."""
        if ending := self._stopped(turn):
            return ending
        turn.ending, turn.doubt = _wanted_ending(turn), ""
        for policy in self._at_work:
            if (told := await policy.after(turn)) is not None:
                return told
        if turn.ending and turn.ending.outcome == "pending_user":
            self._phases.wait_for_user()
        return turn.ending or _note(turn)

    def _stopped(self, turn: TurnSoFar) -> Ending | None:
        """A question or a refusal ends the turn; after an error it goes on with planning."""
        done = turn.last.done
        match done.stop:
            case "refused":
                self._phases.refused(done.refusal)
                return None if done.refusal else Ending("gate", say("turn.refused"))
            case "nobody":
                self._phases.refused(turn.note("moved_nobody"))
                stubborn = sum(loop.done.stop == "nobody" for loop in turn.loops) >= ASKS_NOBODY
                return Ending("gate", say("turn.nobody")) if stubborn else None
            case "error":
                self._recoveries += self._phases.recover(
                    next(one.for_model for one in reversed(done.results) if not one.ok)
                )
                return None
            case "question" if done.ran(EXIT):
                return Ending("exit")
            case "held" if not _held_before(turn):
                self._session.emit(Noticed(what=say("turn.held_once", count=done.held)))
                return None
            case "question" | "held":
                offers = not done.held and _offers_more(turn)
                if not offers or not self._phases.close(turn.checks().failed):
                    self._phases.wait_for_user()
                drafted = done.ran(PROPOSE_PLAN) or done.ran(REVISE_PLAN)
                why = say("plan.ask") if drafted else say("turn.held", count=done.held) if done.held else None
                return Ending("pending_user", why, waits=not drafted and _waits_for_answer(turn))
            case "":
                return None


def _held_before(turn: TurnSoFar) -> bool:
    """Whether calls were held back already, and none that acts has run since."""
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
    """The work cannot go on without the answer where a call or the Decision asks, where steps wait for it, or where
    a question was put and nothing has been done beside it. Plain talk waits for nothing."""
    decision, done = turn.last.decision, turn.last.done
    asked = done.ran(DUCK_CALL) or (decision.next_step == "pending_user" and "next_step" in decision.declared)
    results = (result for loop in turn.loops for result in loop.done.results)
    acted = any(result.ok and result.effect not in ("read", "talk") for result in results)
    only_asked = bool(turn.state.asked) and not (acted or _offers_more(turn))
    return asked or done.held > 0 or only_asked


def _joined(*notes: str | None) -> str:
    return "\n".join(note for note in notes if note)


def _wanted_ending(turn: TurnSoFar) -> Ending | None:
    """How the Decision itself wants the turn to end, or nothing when it goes on."""
    decision, done = turn.last.decision, turn.last.done
    before = turn.loops[-2] if len(turn.loops) > 1 else None
    answered = before and before.decision.next_step == "done" and before.done.ran(RESPOND) and not decision.actions
    silent = not (done.ran(RESPOND) or answered or decision.rationale in turn.said())
    match decision.next_step:
        case _ if done.stop:
            return None
        case "continue":
            return None
        case "done" | "defer" if not decision.actions and not any(loop.done.results for loop in turn.loops):
            # Nothing was done and nothing said: that is no end.
            return None
        case "done" if silent and any(result.ok and result.shows for result in done.results):
            # What was just looked up has been seen by nobody yet.
            return None
        case "done":
            outcome: Outcome = "done"
        case "defer":
            outcome = "deferred"
        case "pending_user":
            outcome = "pending_user"
    # That a job has begun is told already.
    begun = outcome == "deferred" and turn.state.live_jobs()
    told = silent and not begun and decision.rationale.strip("-")
    why = say("turn.summary", text=decision.rationale) if told else None
    return Ending(outcome, why, waits=outcome == "pending_user" and _waits_for_answer(turn))


def _note(turn: TurnSoFar) -> str:
    """What the next prompt should say of the last loop."""
    decision, done = turn.last.decision, turn.last.done
    if objection := decision.objection():
        return turn.note("own_check_said_no", reason=objection)
    if not decision.actions:
        return turn.note("no_actions")
    if done.stop == "error":
        return turn.note("action_failed")
    if done.stop == "refused":
        return turn.note("wished_note" if done.wished else "refused_note")
    if done.stop == "nobody":
        return turn.note("action_failed" if done.refusal else "nobody_note")
    if decision.next_step == "done":
        return turn.note("result_not_told")
    return ""
