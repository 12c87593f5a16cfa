"""Connects the Pacemaker (the limits on steps and progress) with the turn: reports results to it, asks it before every
loop, and asks the user its question."""

import logging
from collections.abc import Callable

from duckflow.agent.dispatcher import Dispatched
from duckflow.agent.session import StateOwner
from duckflow.events.ports import Ask
from duckflow.events.types import ContextPruned, Event, Intervened, Noticed, ReplyRejected, VitalsChanged
from duckflow.events.work import StepChanged
from duckflow.forms.form import ParsedReply
from duckflow.pacemaker.interventions import DuckCall, Hint, Replan, Resolution, Verdict
from duckflow.pacemaker.limits import WorkKind, guess_profile
from duckflow.pacemaker.pacemaker import LoopView, Pacemaker
from duckflow.pacemaker.signatures import decided_nothing, step_of, user_spoke
from duckflow.pacemaker.vitals import Health, Signal
from duckflow.state.action import Evidence, TaskProfile, evidence_of
from duckflow.state.data import REFUSED, WISHED, Phrase, say

log = logging.getLogger("duckflow.pacemaker")


def intervention(verdict: Verdict) -> Intervened | None:
    """Returns the event for advice of the Pacemaker (the limits on steps and progress); None if the Pacemaker has
    nothing to say, or asks the user instead."""
    match verdict:
        case Hint():
            return Intervened(how="hint", severity=verdict.severity, what=verdict.why)
        case Replan():
            return Intervened(how="replan", severity=verdict.severity, what=(verdict.finding.phrase(),))
        case _:
            return None


class TurnPacemaker:
    """The Pacemaker (the limits on steps and progress) of one conversation, connected to the state, the journal and the
    user."""

    def __init__(
        self,
        session: StateOwner,
        pacemaker: Pacemaker,
        ask: Ask,
        other_model: bool = False,
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """`busy` says whether a command runs in the background. Another look at that command then counts as waiting,
        not as repetition."""
        self._session = session
        self._pacemaker = pacemaker
        self._ask = ask
        self._other_model = other_model
        self._busy = busy
        self._work = WorkKind()
        self._declared: TaskProfile | None = None
        self._prunings = 0
        self._used = 0
        self._failed: set[str] = set()
        """The kinds of checks that have failed in this turn."""
        self._hinted: tuple[str, ...] = ()
        self._completed: set[str] = set()
        session.subscribe(self._hear, StepChanged, ContextPruned, ReplyRejected)

    def begin(self, text: str) -> None:
        """Starts afresh when the user has spoken, and guesses from the text what kind of task this is."""
        state = self._session.state
        plan = state.plan.model_dump_json() if state.plan and state.plan.under_way else ""
        self._pacemaker.observe(user_spoke(text, f"{state.five.goal}\n{plan}", state.language))
        self._work.begin(guess_profile(text, state.language))
        self._declared, self._prunings = None, 0
        self._used = self._tokens()
        self._failed.clear()

    def beat(self) -> Verdict:
        """Asks for the verdict of the Pacemaker (the limits on steps and progress) before the next loop. The vitals
        (how well the work goes) are then reported to the state and the screen."""
        state = self._session.state
        verdict = self._pacemaker.beat(self._view())
        if state.loop == 0:
            log.info("[DUCK_PACEMAKER] start turn=%s profile=%s %s", state.turn, self.kind_of_work, self._figures())
        self._publish()
        match verdict:
            case None:
                pass
            case Hint():
                log.info("[DUCK_PACEMAKER] hint %s", " ".join(note.key for note in verdict.for_model))
            case Replan() | DuckCall():
                log.info("[DUCK_PACEMAKER] %s %s %s", type(verdict).__name__, verdict.reason, self._figures())
        intervention_event = intervention(verdict)
        keys = tuple(phrase.key for phrase in intervention_event.what) if intervention_event else ()
        if intervention_event and (intervention_event.how == "replan" or keys != self._hinted):
            # A hint that stays the same is shown once.
            self._session.emit(intervention_event)
        self._hinted = keys
        return verdict

    @property
    def kind_of_work(self) -> TaskProfile:
        """Returns the kind of work that the model has stated, or that its actions suggest. While a plan is carried out,
        a small number of files does not mean small work."""
        plan, work = self._session.state.plan, self._work.profile
        plan_under_way = work in (TaskProfile.GENERAL_CHAT, TaskProfile.FILE_OPERATION) and plan and plan.under_way
        return self._declared or (TaskProfile.MULTI_STEP_TASK if plan_under_way else work)

    def limit(self) -> int:
        """Returns the number of loops that this turn may take in all."""
        return self._session.state.loop + self._pacemaker.loops_left

    def saw(self, reading: ParsedReply, done: Dispatched) -> bool:
        """Takes in the results of a loop, and says whether they were progress."""
        decision = reading.decision
        self._pacemaker.heard(f"{decision.rationale}\n{reading.text}")
        if "task_profile" in decision.declared:
            self._declared = decision.task_profile
        self._pacemaker.notice(Signal.CONFIDENCE, decision.confidence)
        self._pacemaker.allowance.asked_more(done.texts)
        if decision.objection():
            self._pacemaker.notice(Signal.CHECK_FAILED)
        if done.stop == "refused" and not done.wished:
            self._pacemaker.notice(Signal.REFUSED)
        elif done.approved:
            self._pacemaker.notice(Signal.APPROVED)
        tokens_spent, self._used = self._tokens() - self._used, self._tokens()
        actions = {action.action_id: action for action in decision.actions} | done.whole
        for result in (result for result in done.results if result.for_user.key not in (REFUSED, WISHED)):
            token_share = tokens_spent // len(done.results)
            step = step_of(actions[result.action_id], result, token_share)._replace(waits=self._busy())
            self._pacemaker.observe(step)
            self._work.see(step)
            if (evidence := evidence_of(result)) and evidence.ran:
                self._checked(evidence)
        if not decision.actions:
            self._pacemaker.observe(decided_nothing(tokens_spent))
        return self._pacemaker.advanced

    def too_many_errors(self, times: int) -> DuckCall:
        return self._pacemaker.too_many_errors(times, self._other_model)

    async def put(self, call: DuckCall) -> Resolution:
        """Asks the user the question of a Duck Call (when work goes badly). After the answer the vitals recover, and
        loops are counted from 0 again."""
        answer = await self._ask(call.question())
        resolution = self._pacemaker.answered(call, answer.choice, answer.text, loop=self._session.state.loop)
        log.info("[DUCK_PACEMAKER] answered %s effect=%s", answer.choice, resolution.effect)
        self._publish()
        return resolution

    def end(self, outcome: str) -> None:
        self._publish()
        loops, intervention_counts = self._session.state.loop, dict(self._pacemaker.interventions)
        log.info("[DUCK_PACEMAKER] end loops=%s interventions=%s result=%s", loops, intervention_counts, outcome)

    def health(self) -> Health:
        return self._pacemaker.health()

    def why(self) -> tuple[Phrase, ...]:
        """Returns lines that show the current limit of loops, the same as in `/status`, and the reasons for it."""
        state, own_limit, reasons = self._session.state, self._pacemaker.limit, self._pacemaker.why()
        count_lines = (
            (say("limit.counted", own=own_limit.value),) if own_limit and own_limit.value != state.limit else ()
        )
        return (
            (say("limit.now", loop=state.loop, limit=state.limit), *count_lines, *reasons) if state.limit else reasons
        )

    def _checked(self, evidence: Evidence) -> None:
        """Reports a failed check to the Pacemaker (the limits on steps and progress), only once a turn for each kind of
        check: failing runs are normal while an error is searched for. Failed linters are not reported."""
        kind = evidence.check.kind if evidence.check else ""
        if evidence.ok:
            self._pacemaker.notice(Signal.CHECK_PASSED)
        elif kind not in self._failed and kind != "lint":
            self._pacemaker.notice(Signal.CHECK_FAILED)
            self._failed.add(kind)

    def _hear(self, event: Event) -> None:
        """Follows events that change the vitals wherever they happen: a completed step, a context that was too full."""
        match event:
            case StepChanged(status="completed") if event.step_id not in self._completed:
                # A step counts once: opening and completing it again and again is no progress.
                self._completed.add(event.step_id)
                self._pacemaker.notice(Signal.DONE)
            case ReplyRejected():
                self._pacemaker.allowance.asked_more(1)
            case ContextPruned():
                # The first pruning of a turn is housekeeping.
                if self._prunings:
                    self._pacemaker.notice(Signal.OVERFULL)
                self._prunings += 1
            case _:
                pass

    def _view(self) -> LoopView:
        state = self._session.state
        plan = state.plans.get(state.active_plan)
        return LoopView(
            loop=state.loop,
            profile=self.kind_of_work,
            files=self._work.files,
            turns=state.turn,
            plan_running=plan is not None and plan.under_way,
            other_model=self._other_model,
        )

    def _publish(self) -> None:
        for notice in self._pacemaker.take_notices():
            self._session.emit(Noticed(what=notice))
        if causes := self._pacemaker.take_changes():
            self._session.emit(VitalsChanged(vitals=self._pacemaker.vitals, causes=causes))

    def _tokens(self) -> int:
        usage = self._session.state.usage
        return usage.prompt_tokens + usage.completion_tokens

    def _figures(self) -> str:
        vitals, limit = self._pacemaker.vitals, self._pacemaker.limit
        loops = f"limit={limit.value} complexity={limit.complexity:.2f}" if limit else "limit=?"
        return f"{loops} mood={vitals.mood:.2f} focus={vitals.focus:.2f} stamina={vitals.stamina:.2f}"
