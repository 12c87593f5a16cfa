"""Findings of a review, and the witnesses that demonstrate them."""

from collections.abc import Iterable
from typing import Literal

from duckflow.state.data import FrozenData

FINDING = "review.finding"
"""The operation by which a review agent reports; no other agent has it."""
FindingSeverity = Literal["high", "medium", "low"]
SEVERITIES: tuple[FindingSeverity, ...] = ("high", "medium", "low")
WitnessStatus = Literal["fails", "fails_new", "fails_before_too", "passes", "broken", "not_run"]
"""`fails`: the command fails on the change, and passes before it. `fails_new`: it fails on the change, and before it
there is nothing it could try. `broken`: the command itself did not work. `not_run`: nothing could be run here."""


class Witness(FrozenData):
    """A command, and maybe a file for it, that was run in a copy of the folder to demonstrate a finding."""

    command: str
    path: str = ""
    text: str = ""
    status: WitnessStatus = "not_run"
    code: int | None = None
    before_code: int | None = None
    output: str = ""

    @property
    def shows(self) -> bool:
        return self.status in ("fails", "fails_new")


class ReviewFinding(FrozenData):
    """Something that is wrong with a change, and the line of the changed file where it is wrong."""

    path: str
    line: int
    severity: FindingSeverity
    text: str
    witness: Witness | None = None
    agent_id: str = ""

    @property
    def shown(self) -> bool:
        return self.witness is not None and self.witness.shows

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


def by_weight(findings: Iterable[ReviewFinding]) -> list[ReviewFinding]:
    """Sorts findings: first the ones with a witness, then by severity and place."""
    return sorted(
        findings,
        key=lambda finding: (not finding.shown, SEVERITIES.index(finding.severity), finding.path, finding.line),
    )
