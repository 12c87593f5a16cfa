"""Which risks a mode lets through, asks about, or refuses."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict

from duckflow.state.question import Risk

Verdict = Literal["pass", "ask", "refuse"]


class Mode(StrEnum):
    """How much Duckflow may do without asking."""

    ASK = "ask"
    AUTO_EDIT = "auto-edit"
    PLAN = "plan"
    FULL_AUTO = "full-auto"


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


def judge(mode: Mode, risk: Risk, doubtful: bool) -> Verdict:
    """A doubtful reply (repaired or cut off) never changes anything without a yes."""
    if mode is Mode.PLAN and risk != "low":
        return "refuse"
    if risk in PASSES[mode] and not (doubtful and risk != "low"):
        return "pass"
    return "ask"
