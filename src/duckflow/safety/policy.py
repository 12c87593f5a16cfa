"""Which risks a mode lets through, asks about, or refuses."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from duckflow.safety.risk import Assessment
from duckflow.state.mode import Mode
from duckflow.state.question import Risk

Ruling = Literal["pass", "ask", "refuse"]

PASSES: dict[Mode, frozenset[Risk]] = {
    Mode.ASK: frozenset({"low"}),
    Mode.AUTO_EDIT: frozenset({"low", "medium"}),
    Mode.PLAN: frozenset({"low"}),
    Mode.FULL_AUTO: frozenset({"low", "medium", "high"}),
}


class SafetySettings(BaseModel):
    """Settings of safety."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    mode: Mode = Mode.ASK


def judge(mode: Mode, risk: Assessment, changes: bool, doubtful: bool) -> Ruling:
    """Plan mode changes nothing. What always asks does so in every mode, and so does a change that comes from a
    doubtful reply (repaired or cut off)."""
    if mode is Mode.PLAN and changes:
        return "refuse"
    if risk.level in PASSES[mode] and not risk.always_ask and not (doubtful and changes):
        return "pass"
    return "ask"
