"""Drives the product's Pacemaker over recorded runs, for the reference scorer and for `benchmarks.vitals`."""

import json
from typing import Any, cast

from duckflow.pacemaker.interventions import DuckCall
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.pacemaker.settings import PacemakerSettings
from duckflow.pacemaker.step import LoopStep, user_spoke
from duckflow.state.action import StepKind

SAID: dict[str, StepKind] = {"message": "talk"}


class BenchDetector:
    """Says the reason exactly when the product would put a Duck Call to the user.

    Default settings; one step is one loop; without a view there is no limit on loops, and without confidence mood
    stays as it is. A recorded run cannot react to a hint or a replan: the Pacemaker gives them on the way, as it would
    in the product, and asks when what it found goes on nevertheless. After the answer everything starts afresh.
    """

    def __init__(self) -> None:
        self._settings = PacemakerSettings()
        self.reset()

    def reset(self) -> None:
        self.pacemaker = Pacemaker(self._settings)

    def feed(self, step: dict[str, Any]) -> str | None:
        self.pacemaker.observe(recorded(step))
        verdict = self.pacemaker.beat()
        return str(verdict.reason) if isinstance(verdict, DuckCall) else None


def recorded(step: dict[str, Any]) -> LoopStep:
    """A step of the recorded runs. Where its arguments were cut, their digest stands for the rest."""
    if step["name"] == "__user__":
        return user_spoke()
    return LoopStep(
        name=step["name"],
        args=arguments(step["args"] + step.get("args_sha", "")),
        result=step["result"] or "",
        is_error=step["is_error"],
        kind=SAID.get(step["name"]) or cast("StepKind", step["kind"]),
    )


def arguments(text: str) -> dict[str, Any] | str:
    if not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
