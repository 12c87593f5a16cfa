"""Notices in a person's language."""

import re

from duckflow.i18n.words import Words
from duckflow.state.phase import Review
from duckflow.view.items import About, NoticeItem

PASSING: frozenset[About] = frozenset(("noticed", "retry", "rejected", "model", "intervened", "reviewed", "proof"))
"""Notices that are a line for everybody who watches."""
LOUD = frozenset(("checks.failing", "checks.failing_before", "review.unverified", "review.nothing_done"))
"""Lines that speak against what the model says of its work: they must be seen beside it."""
EXIT_CODE = r": exit code (-?\d+)"
FILES = r"(?P<before>^|[;:(] ?)(?:(?P<how>there|gone): |in (?P<file>[^\s:;]+): )"


def notice_line(item: NoticeItem, words: Words) -> str:
    """One line; nothing for what needs no words."""
    what = words.phrase(item.what) if item.what else ""
    match item.about:
        case "model":
            return f"{item.subject}: {what}"
        case "intervened":
            causes, severity = " ".join(map(words.phrase, item.details)), words(f"severity.{item.severity}")
            return words(f"pacemaker.told.{item.subject}", found=causes, severity=severity)
        case "proof":
            parts = item.proof.parts() if item.proof else ()
            return words("proof.line", parts=" · ".join(map(words.phrase, parts))) if parts else ""
        case "reviewed":
            return review_line(item.review, words) if item.review and item.review.by == "model" else ""
        case "allowed":
            return words("notice.allowed", rule=what)
        case _:
            return told_evidence(what, words)


def review_line(review: Review, words: Words) -> str:
    rating, verdict = words(f"review.rating.{review.rating}"), words(f"review.verdict.{review.verdict}")
    return words("review.line", rating=rating, verdict=verdict)


def told_evidence(text: str, words: Words) -> str:
    """What is on record for the model, in the user's language."""

    def files(match: re.Match[str]) -> str:
        return match["before"] + words(f"evidence.{match['how'] or 'within'}", file=match["file"] or "")

    return re.sub(FILES, files, re.sub(EXIT_CODE, lambda match: words("evidence.exit_code", code=match[1]), text))
