"""Settings of the Pacemaker. Values marked "Measured" were calibrated on recorded runs."""

from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

FROZEN = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class BaseLoops(BaseModel):
    """Loops that a turn begins with, by task profile. Each can be set by itself."""

    model_config = FROZEN

    SIMPLE_QUESTION: int = Field(default=5, ge=1)
    GENERAL_CHAT: int = Field(default=6, ge=1)
    FILE_OPERATION: int = Field(default=8, ge=1)
    CREATIVE_WRITING: int = Field(default=10, ge=1)
    CODE_ANALYSIS: int = Field(default=12, ge=1)
    DEBUGGING: int = Field(default=14, ge=1)
    MULTI_STEP_TASK: int = Field(default=15, ge=1)
    RESEARCH: int = Field(default=16, ge=1)
    COMPLEX_REASONING: int = Field(default=18, ge=1)


class LimitSettings(BaseModel):
    """Limits for the loops of a turn."""

    model_config = FROZEN

    lowest: int = Field(default=3, ge=1)
    highest: int = Field(default=20, ge=1)
    fallback: int = Field(default=15, ge=1)
    """The limit that is used when the calculation fails."""
    base: BaseLoops = Field(default_factory=BaseLoops.model_construct)

    mood_weight: float = 0.4
    focus_weight: float = 0.4
    stamina_weight: float = 0.2
    poor_below: float = 0.4
    good_above: float = 0.8
    poor_factor: float = 0.7
    good_factor: float = 1.2

    full_files: int = Field(default=8, ge=1)
    full_turns: int = Field(default=15, ge=1)
    error_weight: float = 3.0
    complexity_weight: float = 0.4

    extension: int = Field(default=5, ge=0)
    """Loops that a turn gets in addition if it makes progress when it reaches its limit."""
    progress_within: int = Field(default=16, ge=1)
    """The number of last loops that must contain some progress (pacemaker/progress.py) for an extension. Measured."""
    elsewhere: int = Field(default=12, ge=1)
    """The number of loops on things that nobody asked about, after which the model gets a hint. After the same number
    of steps that only look and find nothing new, the turn earns no more loops."""
    wandering: int = Field(default=29, ge=1)
    """The number of loops on things that nobody asked about, after which the user is asked. Measured: with 24, the user
    is asked in one more of 324 successful runs."""
    ceiling: int = Field(default=120, ge=1)
    """Loops after which every turn and every step of a plan asks the user, unless `highest` is higher."""
    agents_ceiling: int = Field(default=360, ge=0)
    """Loops that all agents of a turn may take together in addition to the ceiling."""


class Threshold(BaseModel):
    """The number of times that something may happen before the model must plan anew, and before the user is asked (Duck
    Call)."""

    model_config = FROZEN

    replan: int = Field(ge=1)
    call: int = Field(ge=1)


def threshold_field(replan: int, call: int) -> Any:
    """Makes a field with a default threshold that is created only when it is needed."""
    return Field(default_factory=lambda: Threshold.model_construct(replan=replan, call=call))


class WithThresholds(BaseModel):
    """A base for settings with thresholds: if only one number of a threshold is set, the other keeps its default."""

    model_config = FROZEN

    @model_validator(mode="before")
    @classmethod
    def _keep_the_other(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        merged_values = cast("dict[str, Any]", values).copy()
        for name, given_value in merged_values.items():
            field = cls.model_fields.get(name)
            if isinstance(given_value, dict) and field and field.annotation is Threshold:
                merged_values[name] = {**field.get_default(call_default_factory=True).model_dump(), **given_value}
        return merged_values


class VitalsSettings(WithThresholds):
    """The amounts by which events move mood, focus and stamina, and thresholds for them."""

    error_stamina: float = 0.10
    error_focus: float = 0.05
    success_stamina: float = 0.02
    loop_stamina: float = 0.004
    """Each loop lowers stamina by this much. Only rest or a completed step restores it. Measured: long successful runs
    stay above 0.3."""

    stale_focus: float = 0.14
    new_focus: float = 0.10
    """A step with news raises focus by this much. Measured: with `stale_focus` it keeps focus above 0.3 in successful
    runs, and below 0.5 before the user is asked (Duck Call)."""

    confidence_pull: float = Field(default=0.3, ge=0, le=1)
    """When the model reports its confidence, mood moves towards it by this share of the distance."""
    refused_mood: float = 0.15
    approved_mood: float = 0.05
    check_failed_mood: float = 0.10
    check_passed_mood: float = 0.02
    thanks_mood: float = 0.10

    done_focus: float = 0.20
    done_stamina: float = 0.10
    overfull_focus: float = 0.10
    turnaround_focus: float = 0.15
    rest_stamina: float = 0.20

    mood_hint: float = 0.7
    focus_hint: float = 0.5
    stamina_hint: float = 0.3
    mood_low: float = 0.6
    focus_lost: float = 0.3
    stamina_depleted: float = 0.1
    stamina_worn: float = 0.5
    """The stamina below which the status bar shows a worn face."""
    focus_beats: int = Field(default=2, ge=1)
    """The user is asked after this many loops in a row that begin with lost focus. Before that, the model plans
    anew."""

    recovered: float = 0.9
    rested: float = 0.7
    """After the user was asked (Duck Call), the other vitals rise at least to this value. The vital that the question
    was about rises to `recovered`."""
    trend_length: int = Field(default=60, ge=2)


class DetectorSettings(WithThresholds):
    """Thresholds above which repetitions count as going in circles. Measured."""

    again: Threshold = threshold_field(3, 4)
    """The first number of repetitions makes the model plan anew, the second makes Duckflow ask the user (Duck Call).
    This holds for a call, an error, a round of steps, and an edit of the model's own text; a round needs one repetition
    less. For talk, the second number leads to a new plan, and twice that number to a Duck Call."""
    within: int = Field(default=12, ge=2)
    """Number of last steps among which the same call or error counts as a repetition."""

    stream_repeats: int = Field(default=6, ge=2)
    stream_longest: int = Field(default=600, ge=20)
    """Characters of the longest passage that is looked for; a reply is stopped when a passage comes `stream_repeats`
    times in a row."""


class PacemakerSettings(BaseModel):
    """Settings for how far Duckflow goes before it asks."""

    model_config = FROZEN

    limits: LimitSettings = Field(default_factory=LimitSettings.model_construct)
    vitals: VitalsSettings = Field(default_factory=VitalsSettings.model_construct)
    detectors: DetectorSettings = Field(default_factory=DetectorSettings.model_construct)
    window: int = Field(default=40, ge=20)
    """The number of last steps that the detectors look at."""
    memory: int = Field(default=4000, ge=100)
    """The number of signatures that are kept to tell new results from old ones."""
