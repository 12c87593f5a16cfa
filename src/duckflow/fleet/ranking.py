"""Which attempt is the best: what fails a check or touches what it should not is out, the rest is put in order."""

from collections.abc import Sequence

from duckflow.fleet.task import AttemptReport, FleetTask
from duckflow.i18n.words import Words

PROOFS = ("proven", None, "unknown", "hollow")
"""The best first."""
GOOD = 8
"""A rating from which on nobody waits for another attempt."""


def rank(reports: Sequence[AttemptReport]) -> list[AttemptReport]:
    """Those that may be merged, the best first: by the review, then by what their tests prove, then by what they have
    shown themselves, then the smaller change, then the cheaper one. (All of them have passed the same checks.)"""
    return sorted((report for report in reports if report.passed), key=_merits)


def clearly_good(report: AttemptReport) -> bool:
    """Checks hold, and a review has found it good and nothing wrong with it."""
    return report.passed and bool(report.checks) and report.rating >= GOOD and not report.findings


def choose(task: FleetTask, reports: Sequence[AttemptReport], more: bool) -> int | None:
    """The number of the best one; while others still run (`more`) only of one that is clearly good."""
    ranked = [report for report in rank(reports) if not more or clearly_good(report)]
    return ranked[0].order.number if ranked else None


def _merits(report: AttemptReport) -> tuple[float, ...]:
    proof = PROOFS.index(report.proof)
    return (-report.rating, len(report.findings), proof, -len(report.evidence), report.lines_changed, report.cost_usd)


MERITS = ("review", "findings", "proof", "evidence", "size", "cost")


def why_first(reports: Sequence[AttemptReport], words: Words) -> list[str]:
    """What the best attempt has over the next one, as a line; none where there is no other that may be merged."""
    ranked = rank(reports)
    if len(ranked) < 2:
        return []
    (first, second), best = map(_merits, ranked[:2]), ranked[0].order.number
    ways = [name for name, ours, theirs in zip(MERITS, first, second, strict=True) if ours != theirs]
    reason = words(f"fleet.why.{ways[0]}" if ways else "fleet.why.equal", other=ranked[1].order.number)
    return [words("fleet.why", best=best, checks=len(ranked[0].checks), reason=reason)]


def side_by_side(reports: Sequence[AttemptReport], words: Words) -> list[list[str]]:
    """Rows of cells, a column for each attempt: those that may be merged first, with what speaks for and against."""
    ranked = rank(reports)
    shown = [*ranked, *(report for report in reports if report not in ranked)]
    rows = [["", *(f"#{report.order.number}" for report in shown)]]
    rows.append([words("fleet.row.outcome"), *(words(f"fleet.state.{report.outcome}") for report in shown)])
    rows.append([words("fleet.row.checks"), *map(_checks, shown)])
    rows.append([words("fleet.row.review"), *(f"{one.rating}/10" if one.rating else "–" for one in shown)])
    rows.append([words("fleet.row.files"), *map(_size, shown)])
    rows.append([words("fleet.row.proof"), *(words(f"fleet.proof.{one.proof}") if one.proof else "–" for one in shown)])
    rows.append([words("fleet.row.evidence"), *(str(len(report.evidence)) for report in shown)])
    rows.append([words("fleet.row.cost"), *(f"${report.cost_usd:.2f}" for report in shown)])
    rows.append([words("fleet.row.seconds"), *(f"{report.seconds:.0f} s" for report in shown)])
    rows.append([words("fleet.row.against"), *("; ".join(_against(report, words)) or "–" for report in shown)])
    return rows


def _checks(report: AttemptReport) -> str:
    good = sum(check.code == 0 for check in report.checks)
    return f"{good}/{len(report.order.task.checks)}"


def _size(report: AttemptReport) -> str:
    added, removed = (sum(getattr(file, side) for file in report.files) for side in ("added", "removed"))
    return f"{len(report.files)} (+{added} −{removed})"


def _against(report: AttemptReport, words: Words) -> list[str]:
    return [*([words.phrase(report.open)] if report.open else []), *report.findings]
