"""Vitals: how Duckflow is doing, as mood, focus and stamina, each from 0 to 1."""

from typing import Literal

from duckflow.state.data import FrozenData, Unit
from duckflow.state.phrase import Phrase

Severity = Literal["low", "medium", "high", "critical"]
"""The severity of an intervention of the Pacemaker."""


class Vitals(FrozenData):
    """Mood is confidence in the plan, focus is coherence, and stamina falls with wear."""

    mood: Unit = 1.0
    focus: Unit = 1.0
    stamina: Unit = 1.0


class VitalsChange(FrozenData):
    """One change of a vital with its cause, so that it can be shown."""

    vital: str
    delta: float
    cause: Phrase
