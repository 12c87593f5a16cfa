"""The Pacemaker's interventions and the reasons for them: a hint, a new plan (replan), or a question to the user (Duck
Call) with choices that fit."""

from enum import IntEnum, StrEnum
from typing import NamedTuple

from duckflow.pacemaker.settings import VitalsSettings
from duckflow.pacemaker.vitals import Health
from duckflow.state.data import Phrase, say
from duckflow.state.phase import Severity, Vitals
from duckflow.state.question import Choice, Question


class Reason(StrEnum):
    """Reasons for the Pacemaker to intervene, in the order in which they are checked."""

    STAMINA_DEPLETED = "STAMINA_DEPLETED"
    LOOP_EXHAUSTED = "LOOP_EXHAUSTED"
    ERROR_CASCADE = "ERROR_CASCADE"
    FOCUS_LOST = "FOCUS_LOST"
    STAGNATION = "STAGNATION"
    CONFIDENCE_LOW = "CONFIDENCE_LOW"


SEVERITY: dict[Reason, Severity] = {
    Reason.STAMINA_DEPLETED: "critical",
    Reason.LOOP_EXHAUSTED: "high",
    Reason.ERROR_CASCADE: "high",
    Reason.FOCUS_LOST: "medium",
    Reason.STAGNATION: "medium",
    Reason.CONFIDENCE_LOW: "low",
}


class Escalation(IntEnum):
    """The kind of intervention that a repetition calls for."""

    FINE = 0
    REPLAN = 1
    CALL = 2


class Finding(NamedTuple):
    """A report on a repetition: what was repeated, how often, since which step of the turn, and at what cost."""

    reason: Reason
    key: str
    label: str = ""
    times: int = 0
    since: int = 0
    steps: int = 0
    tokens: int = 0

    def phrase(self) -> Phrase:
        return say(f"pacemaker.found.{self.key}", label=self.label, times=self.times, since=self.since)

    def cost(self) -> Phrase:
        if self.tokens:
            return say("pacemaker.cost.tokens", steps=self.steps, tokens=self.tokens)
        return say("pacemaker.cost.steps", steps=self.steps)


class Pattern(StrEnum):
    """The situations for which a Duck Call (a question that the Pacemaker asks) has choices of its own."""

    NO_PROGRESS = "no_progress"
    LOW_CONFIDENCE = "low_confidence"
    CONFUSION = "confusion"
    TOO_MANY_TRIES = "too_many_tries"
    EXHAUSTED = "exhausted"


class Effect(StrEnum):
    """The effect of a choice of a Duck Call (a question that the Pacemaker asks). The turn carries it out, and puts the
    resolution's text into the next prompt."""

    STOP = "stop"
    """The turn ends here."""
    ACCEPT = "accept"
    """The turn ends, and the work so far is reported as the result."""
    INSTRUCT = "instruct"
    """The loop goes on with the user's words."""
    GO_ON = "go_on"
    """The turn may take as many further loops as at its beginning; nothing else changes."""
    RESTART = "restart"
    """Goes back to PLANNING. The failed attempts are removed from the context, except for a list of what not to
    repeat."""
    REPLAN = "replan"
    """Goes back to PLANNING with everything known so far, and the list of what not to repeat."""
    SPLIT = "split"
    """Goes back to PLANNING, where the model makes a plan of small steps."""
    LOOK_ELSEWHERE = "look_elsewhere"
    """The loop goes on, but the model must read other material than before."""
    TAKE_STOCK = "take_stock"
    """The model writes a summary of what is known, tried and open for the user, then goes on."""
    FIND_CAUSE = "find_cause"
    """The model states the cause that it suspects, and asks the user one question."""
    SIMPLIFY = "simplify"
    """The loop goes on, and the model pursues a smaller goal."""
    NEW_REQUEST = "new_request"
    """The goal is replaced by what the user says."""
    SECOND_OPINION = "second_opinion"
    """The next Decisions come from another configured model."""


EFFECTS = frozenset(effect.value for effect in Effect)
ENDS_TURN = frozenset({Effect.STOP, Effect.ACCEPT})
BACK_TO_PLANNING = frozenset({Effect.RESTART, Effect.REPLAN, Effect.SPLIT})
KNOWS_WHAT_WAS_TRIED = frozenset({Effect.RESTART, Effect.REPLAN, Effect.LOOK_ELSEWHERE, Effect.SECOND_OPINION})


class DuckChoice(NamedTuple):
    """One numbered choice of a Duck Call (a question that the Pacemaker asks). With `wants_text` it makes sense only
    with words of the user."""

    key: str
    effect: Effect
    wants_text: bool = False

    def label(self) -> Phrase:
        return say(f"duck.choice.{self.key}")


CHOICES: dict[Pattern, tuple[DuckChoice, ...]] = {
    Pattern.NO_PROGRESS: (
        DuckChoice("stop", Effect.STOP),
        DuckChoice("instruct", Effect.INSTRUCT, wants_text=True),
        DuckChoice("go_on", Effect.GO_ON),
        DuckChoice("restart", Effect.RESTART),
    ),
    Pattern.LOW_CONFIDENCE: (
        DuckChoice("requirements", Effect.INSTRUCT, wants_text=True),
        DuckChoice("split", Effect.SPLIT),
        DuckChoice("other_material", Effect.LOOK_ELSEWHERE),
        DuckChoice("go_on", Effect.GO_ON),
    ),
    Pattern.CONFUSION: (
        DuckChoice("essential", Effect.INSTRUCT, wants_text=True),
        DuckChoice("reset", Effect.RESTART),
        DuckChoice("take_stock", Effect.TAKE_STOCK),
        DuckChoice("other_angle", Effect.REPLAN),
    ),
    Pattern.TOO_MANY_TRIES: (
        DuckChoice("accept", Effect.ACCEPT),
        DuckChoice("find_cause", Effect.FIND_CAUSE),
        DuckChoice("simplify", Effect.SIMPLIFY),
        DuckChoice("something_else", Effect.NEW_REQUEST, wants_text=True),
    ),
    Pattern.EXHAUSTED: (
        DuckChoice("treatment", Effect.INSTRUCT, wants_text=True),
        DuckChoice("second_opinion", Effect.SECOND_OPINION),
        DuckChoice("rest", Effect.STOP),
        DuckChoice("go_on_anyway", Effect.GO_ON),
    ),
}
NOTHING_DECIDED = "nothing_decided"
"""Key of the finding that a reply decided nothing. It has its own note for the model, because no plan has failed."""
ANOTHER_WAY = DuckChoice("another_way", Effect.RESTART)


class Hint(NamedTuple):
    """A note for the next prompt, with its reason. The loop goes on."""

    why: tuple[Phrase, ...]
    for_model: tuple[Phrase, ...]
    """Notes for the model, by their names in the prompts' templates."""
    severity: Severity = "low"


class Replan(NamedTuple):
    """An intervention that goes back to PLANNING once, with a list of what was tried. The loop goes on."""

    finding: Finding
    tried: tuple[str, ...]

    @property
    def reason(self) -> Reason:
        return self.finding.reason

    @property
    def severity(self) -> Severity:
        return SEVERITY[self.reason]

    @property
    def for_model(self) -> tuple[Phrase, ...]:
        if self.finding.key == NOTHING_DECIDED:
            return (say(NOTHING_DECIDED),)
        return (say("replan"), *not_to_repeat(self.tried))


class DuckCall(NamedTuple):
    """An intervention that stops the loop and asks the user."""

    reason: Reason
    pattern: Pattern
    findings: tuple[Finding, ...]
    health: Health
    choices: tuple[DuckChoice, ...]
    tried: tuple[str, ...]

    @property
    def severity(self) -> Severity:
        return SEVERITY[self.reason]

    def situation(self) -> Phrase:
        return say(f"duck.situation.{self.pattern}")

    def found(self) -> tuple[Phrase, ...]:
        """Returns a description of what was repeated, how often, since when, and at what cost."""
        return tuple(phrase for finding in self.findings for phrase in (finding.phrase(), finding.cost()))

    def question(self) -> Question:
        choices = tuple(Choice(key=duck.key, label=duck.label(), wants_text=duck.wants_text) for duck in self.choices)
        details = (*self.found(), say(f"severity.{self.severity}"), *self.health.complaint())
        return Question(
            kind="duck_call",
            title=self.situation(),
            details=details,
            choices=choices,
            on_record=True,
            reason=self.reason,
            severity=self.severity,
        )


Verdict = Hint | Replan | DuckCall | None


class Resolution(NamedTuple):
    """The meaning of an answer to a Duck Call (a question that the Pacemaker asks): the effect, the user's words, and
    the notes for the next prompt."""

    effect: Effect
    text: str
    pinned: tuple[Phrase, ...]


def pattern_of(reason: Reason, failing: bool) -> Pattern:
    """Returns the situation for a reason. `failing` means that most of the steps were errors."""
    match reason:
        case Reason.STAMINA_DEPLETED:
            return Pattern.EXHAUSTED
        case Reason.ERROR_CASCADE:
            return Pattern.TOO_MANY_TRIES
        case Reason.FOCUS_LOST:
            return Pattern.CONFUSION
        case Reason.CONFIDENCE_LOW:
            return Pattern.LOW_CONFIDENCE
        case Reason.LOOP_EXHAUSTED if failing:
            return Pattern.TOO_MANY_TRIES
        case _:
            return Pattern.NO_PROGRESS


def choices_for(pattern: Pattern, other_model: bool) -> tuple[DuckChoice, ...]:
    """Returns a situation's four choices. Where there is only one model, "another way" replaces the second opinion."""
    choices = CHOICES[pattern]
    if other_model:
        return choices
    return tuple(ANOTHER_WAY if choice.effect is Effect.SECOND_OPINION else choice for choice in choices)


def resolve(call: DuckCall, key: str, text: str = "") -> Resolution:
    """Returns the meaning of an answer. `key` names a choice or, from a caller without a screen, any effect. Other
    answers are instructions."""
    effect_by_key = {choice.key: choice.effect for choice in call.choices}
    effect = effect_by_key.get(key) or (Effect(key) if key in EFFECTS else Effect.INSTRUCT)
    text = text.strip()
    words = (say("user_says", text=text),) if text else ()
    return Resolution(effect, text, (*words, *guidance(effect, call.tried)))


def guidance(effect: Effect, tried: tuple[str, ...]) -> tuple[Phrase, ...]:
    if effect in ENDS_TURN:
        return ()
    return (say(f"duck_{effect}"), *(not_to_repeat(tried) if effect in KNOWS_WHAT_WAS_TRIED else ()))


def not_to_repeat(tried: tuple[str, ...]) -> tuple[Phrase, ...]:
    return (say("not_to_repeat", tried="".join(f"\n- {line}" for line in tried)),) if tried else ()


RELEVANT: dict[Reason, frozenset[str]] = {
    Reason.STAMINA_DEPLETED: frozenset({"stamina"}),
    Reason.LOOP_EXHAUSTED: frozenset({"stamina"}),
    Reason.ERROR_CASCADE: frozenset({"stamina", "focus"}),
    Reason.FOCUS_LOST: frozenset({"focus"}),
    Reason.STAGNATION: frozenset({"focus"}),
    Reason.CONFIDENCE_LOW: frozenset({"mood"}),
}


def recover_vitals(vitals: Vitals, reason: Reason, settings: VitalsSettings) -> Vitals:
    """Returns the vitals (mood, focus, stamina) after the user answered a Duck Call (a question that the Pacemaker
    asks). The vitals that the question was about recover most, the others less. No vital falls."""

    def floor(vital: str) -> float:
        return settings.recovered if vital in RELEVANT[reason] else settings.rested

    return Vitals(
        mood=max(vitals.mood, floor("mood")),
        focus=max(vitals.focus, floor("focus")),
        stamina=max(vitals.stamina, floor("stamina")),
    )
