"""Ranks attempts. Those that fail a check or touch forbidden files are left out, and all others are put in order."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from duckflow.fleet.task import AttemptReport
from duckflow.i18n.words import Words, money
from duckflow.programs.launch import Launch
from duckflow.programs.run import ignore, run
from duckflow.state.data import shorten

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
    """A rating from 1 to 10, and the faults that the review has found."""

    rating: int
    findings: tuple[str, ...]


def review_prompt(report: AttemptReport, rule: str, words: Words) -> str:
    """Returns the prompt for a review. `rule` holds the general instructions. The diff may be long, so it is piped
    in."""
    evidence = "\n".join([*(f"{check.command}: {check.code}" for check in report.checks), *report.evidence])
    task_text = shorten(report.order.task.prompt, LONGEST_TASK)
    return words("fleet.review", rule=rule, prompt=task_text, evidence=evidence[-LONGEST_TASK:] or "–")


async def run_review(command: Sequence[str], diff: str, folder: Path, marks: Mapping[str, str]) -> AttemptReview | None:
    """Runs a review. Returns None where no readable answer comes in time: an attempt can do without a review."""
    shown_diff = diff if len(diff) <= LONGEST_DIFF else diff[:LONGEST_DIFF] + f"\n… +{len(diff) - LONGEST_DIFF}"
    argv = (*command, "--json-schema", json.dumps(SHAPE), "--output-format", "json")
    output = bytearray()
    try:
        await run(
            Launch(argv, folder, {**os.environ, **marks}), output.extend, ignore, os.fsencode(shown_diff), SECONDS
        )
    except TimeoutError:
        return None
    return _read(output)


def _read(output: bytearray) -> AttemptReview | None:
    try:
        answer: Any = json.loads(output.decode("utf-8", "replace").strip().split("\n")[-1])
        review_answer = cast("dict[str, Any]", answer["structured"])
        return AttemptReview(int(review_answer["rating"]), tuple(map(str, review_answer["findings"]))[:MOST_FINDINGS])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


PROOFS = ("proven", "guards", None, "unknown", "hollow")
"""Verdicts on the tests of an attempt, from the best to the worst."""
GOOD = 8
"""An attempt with at least this rating may be chosen while other attempts of the task still run."""


def rank(reports: Sequence[AttemptReport]) -> list[AttemptReport]:
    """Returns the attempts that may be merged, the best first: by review, then by the proof of their tests, then by the
    evidence of commands they ran, then by size, then by cost. All of them have passed the same checks."""
    return sorted((report for report in reports if report.passed), key=_merits)


def clearly_good(report: AttemptReport) -> bool:
    """Says whether the attempt's checks pass and its review gives a good rating and no faults."""
    return report.passed and bool(report.checks) and report.rating >= GOOD and not report.findings


def choose(reports: Sequence[AttemptReport], more: bool) -> int | None:
    """Returns the number of the best attempt, or None. While others run (`more`), the best must be clearly good."""
    ranked_reports = [report for report in rank(reports) if not more or clearly_good(report)]
    return ranked_reports[0].order.number if ranked_reports else None


def _merits(report: AttemptReport) -> tuple[float, ...]:
    proof = PROOFS.index(report.proof)
    return (-report.rating, len(report.findings), proof, -len(report.evidence), report.lines_changed, report.cost_usd)


MERITS = ("review", "findings", "proof", "evidence", "size", "cost")


def why_first(reports: Sequence[AttemptReport], words: Words) -> list[str]:
    """Returns one line that says why the best attempt comes before the second. Returns no line if fewer than two
    attempts may be merged."""
    ranked_reports = rank(reports)
    if len(ranked_reports) < 2:
        return []
    (first_merits, second_merits), best_number = map(_merits, ranked_reports[:2]), ranked_reports[0].order.number
    differing_merits = [
        name for name, ours, theirs in zip(MERITS, first_merits, second_merits, strict=True) if ours != theirs
    ]
    reason = words(
        f"fleet.why.{differing_merits[0]}" if differing_merits else "fleet.why.equal",
        other=ranked_reports[1].order.number,
    )
    return [words("fleet.why", best=best_number, reason=reason)]


def side_by_side(reports: Sequence[AttemptReport], words: Words) -> list[list[str]]:
    """Returns rows of a table that compares the attempts: a column for each, those that may be merged first."""
    ranked_reports = rank(reports)
    shown_reports = [*ranked_reports, *(report for report in reports if report not in ranked_reports)]
    rows = [["", *(f"#{report.order.number}" for report in shown_reports)]]
    rows.append([words("fleet.row.outcome"), *(words(f"fleet.state.{report.outcome}") for report in shown_reports)])
    rows.append([words("fleet.row.checks"), *map(_checks, shown_reports)])
    rows.append(
        [words("fleet.row.review"), *(f"{report.rating}/10" if report.rating else "–" for report in shown_reports)]
    )
    rows.append([words("fleet.row.files"), *map(_size, shown_reports)])
    proof_texts = [words(f"fleet.proof.{report.proof}") if report.proof else "–" for report in shown_reports]
    rows.append([words("fleet.row.proof"), *proof_texts])
    rows.append([words("fleet.row.evidence"), *(str(len(report.evidence)) for report in shown_reports)])
    rows.append([words("fleet.row.cost"), *(money(report.cost_usd) or "–" for report in shown_reports)])
    rows.append([words("fleet.row.seconds"), *(f"{report.seconds:.0f} s" for report in shown_reports)])
    rows.append([words("fleet.row.against"), *("; ".join(_against(report, words)) or "–" for report in shown_reports)])
    return rows


def _checks(report: AttemptReport) -> str:
    passed_count = sum(check.code == 0 for check in report.checks)
    return f"{passed_count}/{len(report.order.task.checks)}"


def _size(report: AttemptReport) -> str:
    lines_added, lines_removed = (sum(getattr(file, field) for file in report.files) for field in ("added", "removed"))
    return f"{len(report.files)} (+{lines_added} −{lines_removed})"


def _against(report: AttemptReport, words: Words) -> list[str]:
    return [*([words.phrase(report.open)] if report.open else []), *report.findings]
