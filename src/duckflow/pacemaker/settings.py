"""Settings of the Pacemaker: every number has a name. Those marked measured are calibrated on recorded runs."""

from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

FROZEN = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class BaseLoops(BaseModel):
    """Loops that a turn of each task profile begins with. Each can be set by itself."""

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
    """How many loops a turn may take."""

    model_config = FROZEN

    lowest: int = Field(default=3, ge=1)
    highest: int = Field(default=20, ge=1)
    fallback: int = Field(default=15, ge=1)
    """Used when the calculation fails."""
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
    """Loops that a turn gets on top when it is advancing as it reaches its limit."""
    progress_within: int = Field(default=16, ge=1)
    """It is advancing when one of so many last loops has made progress (pacemaker/progress.py). Measured."""
    elsewhere: int = Field(default=12, ge=1)
    """Loops that only look at what nobody asked about before it is told so; after twice as many it asks. And looks that
    show nothing new, after which looking earns no more loops. Measured: one successful run of 324 goes further without
    doing something."""
    ceiling: int = Field(default=120, ge=1)
    """No turn, and no step of a plan, goes beyond this without a question, unless `highest` is higher."""
    agents_ceiling: int = Field(default=360, ge=0)
    """The loops that all agents of a turn may take together on top of that."""

    @property
    def most(self) -> int:
        return max(self.ceiling, self.highest)


class Threshold(BaseModel):
    """How often before it plans anew, and how often before it asks."""

    model_config = FROZEN

    replan: int = Field(ge=1)
    call: int = Field(ge=1)


def threshold_field(replan: int, call: int) -> Any:
    """A threshold as a default, made only when it is needed."""
    return Field(default_factory=lambda: Threshold.model_construct(replan=replan, call=call))


class WithThresholds(BaseModel):
    """A threshold of which only one number is set keeps the other."""

    model_config = FROZEN

    @model_validator(mode="before")
    @classmethod
    def _keep_the_other(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        merged = cast("dict[str, Any]", given).copy()
        for name, value in merged.items():
            field = cls.model_fields.get(name)
            if isinstance(value, dict) and field and field.annotation is Threshold:
                merged[name] = {**field.get_default(call_default_factory=True).model_dump(), **value}
        return merged


class VitalsSettings(WithThresholds):
    """What moves mood, focus and stamina, and by how much."""

    error_stamina: float = 0.10
    error_focus: float = 0.05
    success_stamina: float = 0.02
    loop_stamina: float = 0.004
    """Comes back only with rest or a completed step. Measured: long successful runs stay above 0.3."""

    stale_focus: float = 0.14
    new_focus: float = 0.10
    """Measured: together they keep focus over 0.3 in successful runs and bring it under 0.5 before a Duck Call."""

    confidence_pull: float = Field(default=0.3, ge=0, le=1)
    """Share of the way that one self-reported confidence moves mood."""
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
    """Below this its face shows it."""
    focus_beats: int = Field(default=2, ge=1)
    """At first it plans anew; when focus stays that low for so many beats, it asks."""

    recovered: float = 0.9
    rested: float = 0.7
    """After a Duck Call the vital it was about comes back to the first, the others at least to the second."""
    trend_length: int = Field(default=60, ge=2)


class DetectorSettings(WithThresholds):
    """When something counts as going in circles. Measured."""

    again: Threshold = threshold_field(3, 4)
    """How often anything may come again: a call, an error, a round of steps, talk, an edit of what was just written."""
    within: int = Field(default=12, ge=2)
    """A call or an error is the same again when it comes among so many last steps."""

    stream_repeats: int = Field(default=6, ge=2)
    stream_longest: int = Field(default=600, ge=20)
    """The same passage of at most this length, so many times on end, while the model is still writing."""


class PacemakerSettings(BaseModel):
    """How far Duckflow goes before it asks."""

    model_config = FROZEN

    limits: LimitSettings = Field(default_factory=LimitSettings.model_construct)
    vitals: VitalsSettings = Field(default_factory=VitalsSettings.model_construct)
    detectors: DetectorSettings = Field(default_factory=DetectorSettings.model_construct)
    window: int = Field(default=40, ge=20)
    """Steps kept for the findings."""
    memory: int = Field(default=4000, ge=100)
    """Signatures kept to tell new from old."""
