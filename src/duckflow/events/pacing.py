"""Events of the Pacemaker: the loops it counts, the vitals it measures, and how it steps in."""

from typing import Literal

from duckflow.events.event import Event
from duckflow.state.phrase import Phrase
from duckflow.state.vitals import Severity, Vitals, VitalsChange


class LoopBegan(Event):
    """`profile`: the kind of work, as far as it is known."""

    kind = "loop_began"
    turn: int
    loop: int
    limit: int
    profile: str = ""


class VitalsChanged(Event):
    kind = "vitals_changed"
    vitals: Vitals
    causes: tuple[VitalsChange, ...] = ()


class Intervened(Event):
    """The Pacemaker has stepped in without asking: with a hint for the model, or by having it plan anew."""

    kind = "intervened"
    how: Literal["hint", "replan"]
    severity: Severity
    what: tuple[Phrase, ...]
