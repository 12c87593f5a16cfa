"""The figures that must not get worse, with their last recorded values: `figures.json`.

A figure is listed there with the direction that is better and the slack that noise may take; its value is null until it
is measured for the first time. `make figures RECORD=1` writes values, dates and commits; the rest is written by hand.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

Mark = Literal["=", "better", "FELL", "new", "MISSING"]
BAD: tuple[Mark, ...] = ("FELL", "MISSING")
ROUNDING = 1e-9


class RecordedFigure(NamedTuple):
    """The last recorded value of a figure. `commit` is the last one that had changed the program by then."""

    better: Literal["higher", "lower"]
    slack: float = 0.0
    value: float | None = None
    date: str = ""
    commit: str = ""


Record = dict[str, RecordedFigure]


def compare(now: float | None, recorded: RecordedFigure) -> Mark:
    """The mark for a figure that was measured as `now`, or that the scorer did not print."""
    if now is None:
        return "MISSING"
    if recorded.value is None:
        return "new"
    gain = now - recorded.value if recorded.better == "higher" else recorded.value - now
    if abs(gain) <= recorded.slack + ROUNDING:
        return "="
    return "better" if gain > 0 else "FELL"


def update(record: Record, measured: Mapping[str, float], date: str, commit: str) -> Record:
    """The record with the measured values. One within its slack stays as it is, so that noise cannot wear it down."""
    changed = {
        name: recorded._replace(value=measured[name], date=date, commit=commit)
        for name, recorded in record.items()
        if name in measured and compare(measured[name], recorded) != "="
    }
    return record | changed


def read_record(file: Path) -> Record:
    fields: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return {name: RecordedFigure(**given) for name, given in fields.items()}


def write_record(file: Path, record: Record) -> None:
    """Writes each figure on one line, so that a difference shows what changed."""
    lines = (f"  {json.dumps(name)}: {json.dumps(recorded._asdict())}" for name, recorded in record.items())
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
