"""The result of a turn, for programs."""

from typing import Any

from pydantic import Field

from duckflow.errors import Outcome
from duckflow.state.data import FrozenData
from duckflow.state.message import Usage
from duckflow.state.phase import Vitals


class DoneAction(FrozenData):
    """One action of the turn. `for_model` is the result as the model got it."""

    operation: str
    ok: bool
    changed: tuple[str, ...] = ()
    for_model: str = ""


class CalledDuck(FrozenData):
    """One Duck Call: why the Pacemaker stopped the work, and what it had seen."""

    reason: str
    severity: str | None = None
    situation: str
    findings: tuple[str, ...] = ()


class TurnSummary(FrozenData):
    """The summary of a turn and its jobs. `result` is the answer; `why` explains the ending where that is needed."""

    session_id: str
    model: str
    result: str
    outcome: Outcome
    exit_code: int
    why: str = ""
    question: str = ""
    """The question that the turn has ended with."""
    duck_calls: tuple[CalledDuck, ...] = ()
    vitals: Vitals
    plan: dict[str, Any] | None = None
    turn: int
    loops: int
    actions: tuple[DoneAction, ...] = ()
    checks: str
    """The state of the latest runs of tests and linters together: none, passing, failing."""
    check_runs: tuple[dict[str, Any], ...] = ()
    proof: dict[str, Any] | None = None
    """The test of the model's claim that the work is done: the tests, by what they showed, and the verdict."""
    left_out: tuple[str, ...] = ()
    """The actions that did not run because nobody could be asked for a yes."""
    files_changed: tuple[str, ...] = ()
    usage: Usage = Field(default_factory=Usage)
