"""The Pacemaker takes in steps, gives a verdict before every loop, and can always explain it."""

from collections import Counter
from typing import NamedTuple

from duckflow.i18n.words import search
from duckflow.pacemaker.detectors import DetectorWatch, Sighting, describe, describe_spent
from duckflow.pacemaker.interventions import (
    SEVERITY,
    DuckCall,
    Escalation,
    Finding,
    Hint,
    Reason,
    Replan,
    Resolution,
    Verdict,
    choices_for,
    pattern_of,
    recover_vitals,
    resolve,
)
from duckflow.pacemaker.ledger import Ledger
from duckflow.pacemaker.limits import Load, LoopAllowance, LoopLimit, compute_limit
from duckflow.pacemaker.progress import Gained
from duckflow.pacemaker.settings import PacemakerSettings
from duckflow.pacemaker.signatures import LoopStep
from duckflow.pacemaker.vitals import Health, Signal, VitalsMeter, make_health
from duckflow.state.action import RUN_AGENT
from duckflow.state.data import Phrase, say
from duckflow.state.phase import Vitals, VitalsChange


def read_signals(text: str, language: str) -> tuple[Signal, ...]:
    """Finds thanks and sharp changes of direction in a message. Only the beginning of a long message counts."""
    message_start = text.strip()[:200]
    signals: list[Signal] = []
    if search("requests.thanks", message_start, language):
        signals.append(Signal.THANKS)
    if search("requests.turns_around", message_start, language):
        signals.append(Signal.TURNAROUND)
    return tuple(signals)


LOW_VITALS = frozenset({Reason.FOCUS_LOST, Reason.CONFIDENCE_LOW})
"""Reasons for intervening that concern a low vital (focus or mood), and not a repetition."""
TRIED = 8
MOSTLY = 0.5


class LoopView(NamedTuple):
    """The situation before a loop. `loop` is the number of loops of this turn so far."""

    loop: int
    profile: str
    files: int = 0
    turns: int = 0
    plan_running: bool = False
    other_model: bool = False


class Pacemaker:
    """Watches one stream of steps: a conversation's or a background job's.

    Call `observe(user_spoke(text))` when a turn begins, `beat(view)` before every loop, `observe(step_of(action,
    result))` after every action, and `notice(signal)` for other events that move the vitals. The verdict of `beat` is
    None, a Hint, a Replan or a DuckCall (a question to the user); without a view there is no limit on loops. When the
    user has answered a Duck Call, call `answered(call, key, text)` and do what its Resolution says; the loop count
    starts anew.

    The verdicts go from hint to replan to Duck Call: after a finding the model must plan anew once; if that does not
    help, the user is asked. An agent's Pacemaker uses the allowance of its turn, and only the Pacemaker of the turn
    asks the user for more.
    """

    def __init__(
        self,
        settings: PacemakerSettings | None = None,
        vitals: Vitals | None = None,
        allowance: LoopAllowance | None = None,
        in_agent: bool = False,
    ) -> None:
        self._settings = settings or PacemakerSettings()
        self._meter = VitalsMeter(self._settings.vitals, vitals or Vitals())
        self.allowance = allowance or LoopAllowance(self._settings.limits)
        self._in_agent = in_agent
        self._ledger = Ledger(self._settings.window, self._settings.memory, self.allowance.progress)
        self._verdict: Verdict = None
        self._last_beat = 0
        self.interventions: Counter[str] = Counter()
        self._watch = DetectorWatch(self._settings)
        self._told_mood = 1.0
        """The mood at the last hint or new plan. Only a lower mood is worth another hint."""
        self._doubted = False
        """True if a low mood has led to a new plan, and mood has not recovered since."""
        self._afresh()

    def observe(self, step: LoopStep) -> None:
        if step.kind == "user":
            if not self._in_agent:
                self.allowance.progress.begin(f"{step.text}\n{step.args}")
            self._afresh()
            self.interventions.clear()
            for signal in (Signal.REST, *read_signals(step.text, step.language)):
                self._meter.notice(signal)
            return
        self.allowance.ended(self._last_beat)
        is_report = self.heard(step.text or (step.result if step.name == RUN_AGENT else ""))
        entry = self._ledger.record(step, is_report)
        self._meter.see(entry)
        self._new_since += entry.new
        if entry.gained.kind or not entry.waits:
            self.allowance.gained(entry.gained, self._last_beat)
        if entry.waits:
            self.allowance.waited()
        elif entry.idle:
            self.allowance.idled()

    def heard(self, text: str) -> bool:
        """Says whether the model's text beside its calls, or an agent's report, tells something new that was read."""
        return self.allowance.heard(text)

    def notice(self, signal: Signal, value: float = 0.0) -> None:
        if signal is Signal.APPROVED and self._doubted:
            value = self._settings.vitals.rested
        self._meter.notice(signal, value)
        if signal is Signal.DONE:
            self.allowance.gained(Gained("completed", solid=1), self._last_beat)

    def beat(self, view: LoopView | None = None) -> Verdict:
        """Returns the verdict before the next loop. Call it once a loop."""
        self._meter.loop()
        self._ledger.begin_loop()
        self.allowance.ended(self._last_beat)
        self.allowance.beat(self._in_agent)
        self._last_beat = self.allowance.beats
        if self._meter.mood >= self._settings.vitals.mood_hint:
            self._told_mood, self._doubted = 1.0, False
        self._verdict = self._judge(view)
        if self._verdict is not None:
            self.interventions[type(self._verdict).__name__] += 1
        self.allowance.begun(self._last_beat)
        return self._verdict

    def too_many_errors(self, times: int, other_model: bool = False) -> DuckCall:
        """Returns the question to the user (Duck Call) for a turn that still fails after the model has planned anew. It
        is asked even if no detector has found anything."""
        self._verdict = call = self._call(describe_spent(Reason.ERROR_CASCADE, times, self._ledger), None, other_model)
        self.interventions[DuckCall.__name__] += 1
        return call

    def answered(self, call: DuckCall, key: str, text: str = "", loop: int = 0) -> Resolution:
        """Takes in the user's answer: vitals recover, and loops are counted from `loop` on."""
        self._meter.recover(recover_vitals(self._meter.vitals(), call.reason, self._settings.vitals))
        self._afresh(loop)
        return resolve(call, key, text)

    @property
    def vitals(self) -> Vitals:
        return self._meter.vitals()

    @property
    def limit(self) -> LoopLimit | None:
        """The limit of loops at the last call of `beat` with a view."""
        return self.allowance.limit

    @property
    def loops_left(self) -> int:
        """The loops that the turn may still take with all its agents; without a limit, those up to the ceiling."""
        limit = self.allowance.limit
        return (limit.value if limit else self.allowance.most) - self.allowance.taken

    @property
    def advanced(self) -> bool:
        """Says whether this loop has made progress."""
        return self.allowance.gained_since(self._last_beat)

    def take_notices(self) -> tuple[Phrase, ...]:
        """Returns the lines about extensions of the limit that the user has not been told yet."""
        notices = tuple(self.allowance.notices)
        self.allowance.notices.clear()
        return notices

    def take_changes(self) -> tuple[VitalsChange, ...]:
        return self._meter.take_changes()

    def health(self) -> Health:
        return make_health(self._meter.vitals(), self._meter.trend, self._settings.vitals)

    def why(self) -> tuple[Phrase, ...]:
        """Explains the limit of loops and the last verdict."""
        limit = self.limit.parts if self.limit else (say("limit.none"),)
        match self._verdict:
            case None:
                return (*limit, say("pacemaker.verdict.fine"))
            case Hint(why=why):
                verdict = (say("pacemaker.verdict.hint"), *why)
            case Replan(finding=finding):
                verdict = (say("pacemaker.verdict.replan"), finding.phrase(), finding.cost())
            case DuckCall() as call:
                verdict = (say("pacemaker.verdict.duck_call"), *call.found())
        return (*limit, *verdict, say(f"severity.{self._verdict.severity}"))

    def _afresh(self, loop: int = 0) -> None:
        self._ledger.reset()
        self._watch.restart()
        self._replanned = False
        self._new_since = 0
        if not self._in_agent:
            self.allowance.restart(loop)

    def _judge(self, view: LoopView | None) -> Verdict:
        sighting = self._watch.worst(self._ledger, self._meter.focus, self._meter.mood)
        other_model = view is not None and view.other_model
        if self._meter.stamina < self._settings.vitals.stamina_depleted:
            depleted = describe_spent(Reason.STAMINA_DEPLETED, self._ledger.errors, self._ledger)
            return self._call(depleted, sighting, other_model)
        if view is not None and not self._in_agent and (spent_key := self._exhausted(view)):
            finding = describe_spent(Reason.LOOP_EXHAUSTED, self.allowance.taken, self._ledger, spent_key)
            return self._call(finding, sighting, other_model)
        if sighting is None:
            return self._fine()
        is_low_confidence = sighting.reason is Reason.CONFIDENCE_LOW
        if is_low_confidence and self._told_mood == 1.0 and (hint := self._hint()):
            return hint
        if not (self._doubted if is_low_confidence else self._replanned):
            self._replanned, self._new_since = True, 0
            if is_low_confidence:
                self._doubted, self._told_mood = True, self._meter.mood
            return Replan(describe(sighting, self._ledger), self._tried())
        if sighting.level is Escalation.CALL:
            return self._call(describe(sighting, self._ledger), None, other_model)
        return self._hint(describe(sighting, self._ledger))

    def _fine(self) -> Hint | None:
        """Returns a hint if a vital (such as focus) is low. It is called when no detector has found anything. After
        enough new steps without a hint, the model may plan anew once more before the next question to the user."""
        hint = self._hint()
        if hint is None and self._new_since >= self._settings.detectors.again.replan:
            self._replanned = False
        return hint

    def _exhausted(self, view: LoopView) -> str:
        """Returns the reason why the loops are used up, or an empty text."""
        work_load = Load(view.profile, view.files, view.turns, self._ledger.error_rate(), view.plan_running)
        return self.allowance.used_up(view.loop, compute_limit(work_load, self.vitals, self._settings.limits))

    def _call(self, finding: Finding, also: Sighting | None, other_model: bool) -> DuckCall:
        """Makes a Duck Call (a question to the user) for the finding. If it is asked because stamina or loops are used
        up, `also` adds what the detectors see."""
        pattern = pattern_of(finding.reason, failing=self._ledger.error_rate() > MOSTLY)
        return DuckCall(
            reason=finding.reason,
            pattern=pattern,
            findings=(finding, describe(also, self._ledger)) if also else (finding,),
            health=self.health(),
            choices=choices_for(pattern, other_model),
            tried=self._tried(),
        )

    def _hint(self, finding: Finding | None = None) -> Hint | None:
        v, meter = self._settings.vitals, self._meter
        low_vitals = [
            vital
            for vital, value, threshold in (
                ("mood", meter.mood, min(v.mood_hint, self._told_mood)),
                ("focus", meter.focus, v.focus_hint),
                ("stamina", meter.stamina, v.stamina_hint),
            )
            if value < threshold
        ]
        if self.allowance.wanders:
            low_vitals.append("wandering")
        if not low_vitals and finding is None:
            return None
        why = tuple(say(f"pacemaker.hint.{vital}") for vital in low_vitals)
        notes = tuple(say(f"hint_{vital}") for vital in low_vitals)
        if "mood" in low_vitals:
            self._told_mood = meter.mood
        if finding:
            why = (*why, finding.phrase())
        if finding and finding.reason not in LOW_VITALS:
            notes = (*notes, say("repeating", what=finding.label))
        return Hint(why, notes, SEVERITY[finding.reason] if finding else "low")

    def _tried(self) -> tuple[str, ...]:
        """Returns the steps that failed or brought nothing new, the latest first, each once."""
        stale_labels = (entry.label for entry in reversed(self._ledger.recent) if entry.failed or not entry.new)
        return tuple(dict.fromkeys(stale_labels))[:TRIED]
