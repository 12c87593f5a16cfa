"""Drives the product's Pacemaker for the reference scorer."""

import json
from typing import Any, cast

from duckflow.pacemaker.interventions import DuckCall
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.pacemaker.step import LoopStep, user_spoke

SAID = {"message": "talk"}


class BenchDetector:
    """Says the reason exactly when the product would put a Duck Call to the user.

    Default settings; no view, so no limit on loops; no confidence, so mood stays. A recorded run does not react to a
    hint or a replan: the Pacemaker gives them on the way, and asks when what it found goes on nevertheless.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.pacemaker = Pacemaker()

    def feed(self, step: dict[str, Any]) -> str | None:
        self.pacemaker.observe(recorded(step))
        verdict = self.pacemaker.beat()
        return str(verdict.reason) if isinstance(verdict, DuckCall) else None


def recorded(step: dict[str, Any]) -> LoopStep:
    """A step of the recorded runs. Where its arguments were cut, their digest stands for the rest."""
    if step["name"] == "__user__":
        return user_spoke()
    kind = SAID.get(step["name"], step["kind"])
    args = cast("str", step["args"]) + step.get("args_sha", "")
    return LoopStep(step["name"], arguments(args), step["result"] or "", step["is_error"], kind)


def arguments(text: str) -> dict[str, Any] | str:
    if not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
