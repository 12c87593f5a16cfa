"""A look at an attempt by somebody who has not made it: a run of its own that reads only."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from duckflow.fleet.task import AttemptReport
from duckflow.i18n.words import Words
from duckflow.programs.launch import Launch
from duckflow.programs.run import ignore, run
from duckflow.state.noun import shorten

LONGEST_DIFF, LONGEST_TASK = 60_000, 8_000
MOST_FINDINGS = 12
SECONDS = 900.0
SHAPE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rating": {"type": "integer", "minimum": 1, "maximum": 10},
        "findings": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["rating", "findings"],
}


class AttemptReview(NamedTuple):
    """How good it is, from 1 to 10, and what is wrong with it."""

    rating: int
    findings: tuple[str, ...]


def review_prompt(report: AttemptReport, rule: str, words: Words) -> str:
    """`rule`: how any reviewer of Duckflow's goes about it. The diff itself is piped in: it may be long."""
    evidence = "\n".join([*(f"{check.command}: {check.code}" for check in report.checks), *report.evidence])
    asked = shorten(report.order.task.prompt, LONGEST_TASK)
    return words("fleet.review", rule=rule, prompt=asked, evidence=evidence[-LONGEST_TASK:] or "–")


async def run_review(command: Sequence[str], diff: str, folder: Path, marks: Mapping[str, str]) -> AttemptReview | None:
    """Nothing where it gave no answer that can be read: a review is a help, and nobody waits for it for ever."""
    shown = diff if len(diff) <= LONGEST_DIFF else diff[:LONGEST_DIFF] + f"\n… +{len(diff) - LONGEST_DIFF}"
    argv = (*command, "--json-schema", json.dumps(SHAPE), "--output-format", "json")
    output = bytearray()
    try:
        await run(Launch(argv, folder, {**os.environ, **marks}), output.extend, ignore, os.fsencode(shown), SECONDS)
    except TimeoutError:
        return None
    return _read(output)


def _read(output: bytearray) -> AttemptReview | None:
    try:
        told: Any = json.loads(output.decode("utf-8", "replace").strip().split("\n")[-1])
        found = cast("dict[str, Any]", told["structured"])
        return AttemptReview(int(found["rating"]), tuple(map(str, found["findings"]))[:MOST_FINDINGS])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
