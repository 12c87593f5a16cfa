"""Drives the product's Pacemaker over recorded runs, for the reference scorer and for `benchmarks.vitals`."""

import json
import re
from typing import Any, cast

from duckflow.pacemaker.interventions import DuckCall
from duckflow.pacemaker.pacemaker import LoopView, Pacemaker
from duckflow.pacemaker.settings import PacemakerSettings
from duckflow.pacemaker.signatures import LoopStep, user_spoke
from duckflow.state.action import StepKind

PATHS = ("path", "file_path", "file_name")
WRITTEN = re.compile(r"(?<![0-9&])>>? *([\w./-]+)|\bsed -i.* ([\w./-]+)$|\A([\w./-]+)\Z", re.MULTILINE)
SAID: dict[str, StepKind] = {"message": "talk"}


class BenchDetector:
    """Says the reason exactly when the product would put a Duck Call to the user: for what it found, and, unless it is
    told otherwise, for loops used up, extensions and ceiling included.

    Default settings; one step is one loop; without confidence mood stays as it is. A recorded run cannot react to a
    hint or a replan: the Pacemaker gives them on the way, as it would in the product, and asks when what it found goes
    on nevertheless. After the answer everything starts afresh.
    """

    def __init__(self, settings: PacemakerSettings | None = None, limits: bool = True) -> None:
        self._settings = settings or PacemakerSettings()
        self._limits = limits
        self.reset()

    def reset(self) -> None:
        self.pacemaker = Pacemaker(self._settings)
        self._loop = 0

    def feed(self, step: dict[str, Any]) -> str | None:
        return self.hear(recorded(step))

    def hear(self, step: LoopStep) -> str | None:
        self._loop = 0 if step.kind == "user" else self._loop + 1
        self.pacemaker.observe(step)
        verdict = self.pacemaker.beat(LoopView(self._loop, "MULTI_STEP_TASK") if self._limits else None)
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
        text=step["args"] if step["name"] in SAID else "",
        changed=changed_files(step) if step["kind"] == "edit" else (),
    )


def changed_files(step: dict[str, Any]) -> tuple[str, ...]:
    """Returns the files that an edit says it changes: `path`, `create NAME`, `cat > NAME`, `sed -i … NAME`; the records
    have no more."""
    args = arguments(step["args"])
    if isinstance(args, dict):
        return tuple(str(args[name]) for name in PATHS if args.get(name))
    found = WRITTEN.search(args)
    return tuple(filter(None, found.groups())) if found else ()


def arguments(text: str) -> dict[str, Any] | str:
    if not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
