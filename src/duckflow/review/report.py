"""Findings as text, as JSON, and as SARIF 2.1.0."""

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from duckflow import __version__
from duckflow.i18n.words import Words
from duckflow.state.finding import ReviewFinding, Witness, by_weight
from duckflow.state.usage import Usage

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"high": "error", "medium": "warning", "low": "note"}
SHOWN_OUTPUT = 12
"""Lines of what a witness printed."""


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
        mark = words("review.shown" if finding.shown else "review.unshown")
        lines = [f"{finding.place}  {words(f'review.severity.{finding.severity}')}  {mark}", f"  {finding.text}"]
        blocks.append("\n".join(lines + (_witness_lines(finding.witness, words) if finding.witness else [])))
    return "\n\n".join(blocks)


def _witness_lines(witness: Witness, words: Words) -> list[str]:
    lines = [f"  $ {witness.command}"] + ([f"  ({witness.path})"] if witness.path else [])
    lines.append(f"  {words(f'review.witness.{witness.status}')}")
    printed = witness.output.split("\n")[-SHOWN_OUTPUT:] if witness.shows else []
    return lines + [f"  │ {line}" for line in printed if line.strip()]


def as_json(findings: Sequence[ReviewFinding], usage: Usage, outcome: str) -> str:
    told: dict[str, Any] = {
        "outcome": outcome,
        "findings": [finding.model_dump(mode="json") | {"shown": finding.shown} for finding in by_weight(findings)],
        "usage": usage.model_dump(mode="json"),
    }
    return json.dumps(told, ensure_ascii=False, indent=1)


def as_sarif(findings: Sequence[ReviewFinding], words: Words) -> str:
    """Two rules tell apart what a witness shows and what it does not."""
    results = [_result(finding, words) for finding in by_weight(findings)]
    rules = [{"id": rule, "shortDescription": {"text": words(f"review.{rule}")}} for rule in ("shown", "unshown")]
    driver = {"name": "duckflow", "semanticVersion": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SARIF, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=1)


def _result(finding: ReviewFinding, words: Words) -> dict[str, Any]:
    region, uri = {"startLine": finding.line}, quote(finding.path)
    location = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
    result: dict[str, Any] = {
        "ruleId": "shown" if finding.shown else "unshown",
        "ruleIndex": 0 if finding.shown else 1,
        "level": LEVELS[finding.severity],
        "message": {"text": finding.text},
        "locations": [location],
    }
    if finding.witness:
        status = words(f"review.witness.{finding.witness.status}")
        result["properties"] = {"witness": finding.witness.model_dump(mode="json"), "witnessStatus": status}
    return result
