"""How many loops a turn may take, and why, in words; and what kind of task a message is."""

from typing import NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.patterns import search
from duckflow.pacemaker.settings import LimitSettings
from duckflow.state.action import TaskProfile
from duckflow.state.phrase import Phrase, say
from duckflow.state.vitals import Vitals

ALMOST = 1e-9
"""So that 15 times 1.2 is 18 and not 17.999…"""


class Load(NamedTuple):
    """What the limit depends on besides the vitals."""

    profile: str
    files: int = 0
    turns: int = 0
    error_rate: float = 0.0
    plan_running: bool = False


class LoopLimit(NamedTuple):
    """The limit with its explanation, part by part. `fallback`: the calculation failed."""

    value: int
    parts: tuple[Phrase, ...]
    complexity: float = 0.0
    fallback: bool = False
    extended: int = 0


def compute_limit(load: Load, vitals: Vitals, settings: LimitSettings) -> LoopLimit:
    """clamp(base × vitals factor × complexity factor, lowest, highest); whatever fails, the configured maximum."""
    try:
        return _calculated(load, vitals, settings)
    except (AttributeError, ValueError, TypeError, ArithmeticError) as problem:
        part = say("limit.fallback", limit=settings.fallback, reason=f"{type(problem).__name__}: {problem}")
        return LoopLimit(settings.fallback, (part,), fallback=True)


def _calculated(load: Load, vitals: Vitals, settings: LimitSettings) -> LoopLimit:
    profile_base: int = getattr(settings.base, load.profile)
    base = max(profile_base, settings.base.MULTI_STEP_TASK) if load.plan_running else profile_base
    score = vitals_score(vitals, settings)
    by_vitals = vitals_factor(score, settings)
    complex_ = complexity(load, settings)
    by_complexity = 1 + settings.complexity_weight * complex_
    raw = int(base * by_vitals * by_complexity + ALMOST)
    value = max(settings.lowest, min(raw, max(settings.lowest, settings.highest)))
    parts = [say("limit.base", profile=load.profile, base=profile_base)]
    if base != profile_base:
        parts.append(say("limit.plan", base=base))
    parts += [
        say("limit.mood", value=f"{vitals.mood:.2f}"),
        say("limit.focus", value=f"{vitals.focus:.2f}"),
        say("limit.stamina", value=f"{vitals.stamina:.2f}"),
        say(f"limit.vitals.{_word(by_vitals)}", score=round(score, 2), factor=by_vitals),
        say("limit.complexity", complexity=round(complex_, 2), factor=round(by_complexity, 2)),
        say("limit.files", files=load.files, turns=load.turns, errors=round(100 * load.error_rate)),
        say("limit.result", base=base, vitals=by_vitals, complexity=round(by_complexity, 2), limit=value),
    ]
    if value != raw:
        parts.append(say("limit.bounds", raw=raw, lowest=settings.lowest, highest=settings.highest))
    return LoopLimit(value, tuple(parts), complex_)


def extend_limit(limit: LoopLimit, by: int, ceiling: int) -> LoopLimit:
    """The limit with what progress has earned; the ceiling holds."""
    value = max(limit.value, min(limit.value + by, ceiling))
    if value == limit.value:
        return limit
    part = say("limit.extended", by=value - limit.value, limit=value)
    return limit._replace(value=value, parts=(*limit.parts, part), extended=value - limit.value)


def vitals_score(vitals: Vitals, settings: LimitSettings) -> float:
    return (
        settings.mood_weight * vitals.mood
        + settings.focus_weight * vitals.focus
        + settings.stamina_weight * vitals.stamina
    )


def vitals_factor(score: float, settings: LimitSettings) -> float:
    if score < settings.poor_below - ALMOST:
        return settings.poor_factor
    return settings.good_factor if score > settings.good_above + ALMOST else 1.0


def complexity(load: Load, settings: LimitSettings) -> float:
    """0 to 1: the mean of many files, a long conversation and frequent errors."""
    shares = (
        load.files / settings.full_files,
        load.turns / settings.full_turns,
        load.error_rate * settings.error_weight,
    )
    return sum(max(0.0, min(share, 1.0)) for share in shares) / len(shares)


def _word(factor: float) -> str:
    if factor == 1.0:
        return "normal"
    return "good" if factor > 1 else "poor"


GUESSED = (
    TaskProfile.DEBUGGING,
    TaskProfile.MULTI_STEP_TASK,
    TaskProfile.RESEARCH,
    TaskProfile.COMPLEX_REASONING,
    TaskProfile.CODE_ANALYSIS,
    TaskProfile.CREATIVE_WRITING,
    TaskProfile.FILE_OPERATION,
    TaskProfile.SIMPLE_QUESTION,
)
LONG = 400


def guess_profile(text: str, language: str = DEFAULT_LANGUAGE) -> TaskProfile:
    """The first kind of task whose words are there; by its length when there are none."""
    text = text.strip()
    for profile in GUESSED:
        if search(f"profiles.{profile.lower()}", text, language):
            return profile
    return TaskProfile.MULTI_STEP_TASK if len(text) > LONG else TaskProfile.GENERAL_CHAT
