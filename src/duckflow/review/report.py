"""Runs witnesses (commands that show a finding), and writes findings as text, as JSON, and as SARIF 2.1.0."""

import json
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from duckflow import __version__
from duckflow.errors import DuckflowError
from duckflow.i18n.words import Words
from duckflow.programs.run import FloodError, OverrunError, collect
from duckflow.proof.settings import ProofSettings
from duckflow.proof.trial_folder import MakeLaunch, TrialFolder, Versions
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.state.agent import AgentReport
from duckflow.state.changes import ReviewFinding, Witness, WitnessStatus, by_weight
from duckflow.state.message import Usage

SECONDS = 60.0
MOST_PRINTED = 4 * 1024 * 1024
KEPT = 2_000
NO_PROGRAM = (126, 127)
PYTEST = re.compile(r"\b(?:pytest|py\.test)\b")
PYTEST_BROKEN = (2, 3, 4, 5)
"""Exit codes of pytest without a verdict: interrupted or collection errors, internal or usage errors, no tests."""


class ReviewResult(NamedTuple):
    """The result of a review."""

    findings: tuple[ReviewFinding, ...]
    report: AgentReport
    usage: Usage


@dataclass(frozen=True, slots=True)
class WitnessRunner:
    """Runs witnesses. It needs bubblewrap, because no other sandbox can put a copy in the folder's place."""

    find_sandbox: Callable[[], Awaitable[Sandbox]]
    make_launch: MakeLaunch
    settings: ProofSettings

    async def run(self, witness: Witness, before: Versions) -> Witness:
        sandbox = await self.find_sandbox()
        if sandbox.kind != "bubblewrap":
            return witness
        folder = TrialFolder(sandbox, self.make_launch, self.settings)
        test_file: Versions = {witness.path: witness.text.encode()} if witness.path else {}
        code, output = await _run(folder, witness.command, test_file)
        run_fields: dict[str, Any] = {"code": code, "output": output}
        if not _judges(witness.command, code):
            return witness.model_copy(update={**run_fields, "status": "broken"})
        if code == 0:
            return witness.model_copy(update={**run_fields, "status": "passes"})
        if not before:
            return witness.model_copy(update={**run_fields, "status": "fails_new"})
        before_code, _ = await _run(folder, witness.command, {**before, **test_file})
        # If the run on the earlier code was stopped, the witness counts as not passed there.
        was_judged = before_code is None or _judges(witness.command, before_code)
        status: WitnessStatus = "fails" if before_code == 0 else "fails_before_too" if was_judged else "fails_new"
        return witness.model_copy(update={**run_fields, "status": status, "before_code": before_code})


async def _run(folder: TrialFolder, command: str, versions: Versions) -> tuple[int | None, str]:
    """Returns the exit code and the end of the output; the code is None if the run was stopped."""
    deadline = time.monotonic() + SECONDS
    try:
        async with folder.launch(command, versions) as launch:
            seconds_left = max(1.0, deadline - time.monotonic())
            printed = await collect(launch, seconds=seconds_left, most=MOST_PRINTED)
    except (TimeoutError, OverrunError, FloodError) as problem:
        return None, type(problem).__name__
    except (DuckflowError, OSError) as problem:
        return None, str(problem)
    text = b"\n".join(filter(None, (printed.out, printed.err))).decode("utf-8", "replace").strip()
    return printed.code, text[-KEPT:]


def _judges(command: str, code: int | None) -> bool:
    """Says whether a run with this exit code has really tested something."""
    return code is not None and code not in NO_PROGRAM and not (PYTEST.search(command) and code in PYTEST_BROKEN)


SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"high": "error", "medium": "warning", "low": "note"}
SHOWN_OUTPUT = 12
"""The number of lines of a witness's output that are shown."""


def cost_line(usage: Usage, words: Words) -> str:
    return words(
        "review.cost",
        calls=usage.calls,
        tokens=f"{usage.prompt_tokens + usage.completion_tokens:,}",
        cost=f"${usage.cost_usd:.4f}",
    )


def as_text(findings: Sequence[ReviewFinding], words: Words) -> str:
    if not findings:
        return words("review.nothing")
    blocks = list[str]()
    for finding in by_weight(findings):
        shown_word = words("review.shown" if finding.shown else "review.unshown")
        lines = [f"{finding.place}  {words(f'review.severity.{finding.severity}')}  {shown_word}", f"  {finding.text}"]
        blocks.append("\n".join(lines + (_witness_lines(finding.witness, words) if finding.witness else [])))
    return "\n\n".join(blocks)


def _witness_lines(witness: Witness, words: Words) -> list[str]:
    lines = [f"  $ {witness.command}"] + ([f"  ({witness.path})"] if witness.path else [])
    lines.append(f"  {words(f'review.witness.{witness.status}')}")
    printed_lines = witness.output.split("\n")[-SHOWN_OUTPUT:] if witness.shows else []
    return lines + [f"  │ {line}" for line in printed_lines if line.strip()]


def as_json(findings: Sequence[ReviewFinding], usage: Usage, outcome: str) -> str:
    report: dict[str, Any] = {
        "outcome": outcome,
        "findings": [finding.model_dump(mode="json") | {"shown": finding.shown} for finding in by_weight(findings)],
        "usage": usage.model_dump(mode="json"),
    }
    return json.dumps(report, ensure_ascii=False, indent=1)


def as_sarif(findings: Sequence[ReviewFinding], words: Words) -> str:
    """Returns SARIF with two rules: one for findings that a witness shows, one for all others."""
    sarif_results = [_result(finding, words) for finding in by_weight(findings)]
    rules = [{"id": rule, "shortDescription": {"text": words(f"review.{rule}")}} for rule in ("shown", "unshown")]
    driver = {"name": "duckflow", "semanticVersion": __version__, "rules": rules}
    sarif_run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": sarif_results}
    return json.dumps({"$schema": SARIF, "version": "2.1.0", "runs": [sarif_run]}, ensure_ascii=False, indent=1)


def _result(finding: ReviewFinding, words: Words) -> dict[str, Any]:
    region, uri = {"startLine": finding.line}, quote(finding.path)
    location = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
    sarif_result: dict[str, Any] = {
        "ruleId": "shown" if finding.shown else "unshown",
        "ruleIndex": 0 if finding.shown else 1,
        "level": LEVELS[finding.severity],
        "message": {"text": finding.text},
        "locations": [location],
    }
    if finding.witness:
        status = words(f"review.witness.{finding.witness.status}")
        sarif_result["properties"] = {"witness": finding.witness.model_dump(mode="json"), "witnessStatus": status}
    return sarif_result
