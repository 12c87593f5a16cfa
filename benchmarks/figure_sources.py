"""Where the figures come from: each scorer and benchmark with its command, and how its output is read.

A figure's name is its source's name and the scorer's own name for it: `words.answers.yes`. The reference scorers and
their data lie outside the repository, in the folder `shared`.
"""

import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from benchmarks.revisions import is_here

COMPARED_WITH = "277bd77"
"""The commit whose starts are measured beside those of the working tree."""
NOT_BUILT = "not built yet"
AVERAGE_OF_FOLDS = re.compile(r"^out of fold, on average\s+(.*)$", re.MULTILINE)
NAME_AND_NUMBER = re.compile(r"(\w+)\s+([\d.]+)")
SHARE = re.compile(r"(\d+)/\d+")

Values = dict[str, float]


class Source(NamedTuple):
    """A command that prints figures, run from the repository's root."""

    name: str
    command: tuple[str, ...]
    read: Callable[[str], Values]
    timed: bool = False
    """The source measures times, so nothing else may run beside it."""
    quick: bool = True
    """The source is short enough for the quick run."""
    missing: str = ""
    """The reason why the source cannot run here."""


def all_sources(shared: Path) -> list[Source]:
    """Returns all sources in the order in which they are shown."""
    scorers = shared / "bench"
    without_scorers = "" if scorers.is_dir() else f"the scorers are not in {scorers}"
    outside = [source._replace(missing=without_scorers or source.missing) for source in _of_scorers(scorers)]
    folds = Source(
        "pacemaker.halves",
        (sys.executable, "-m", "benchmarks.pacemaker_folds", str(shared / "data/pacemaker")),
        read_folds,
        quick=False,
        missing=without_scorers,
    )
    approvals = Source(
        "approvals",
        (sys.executable, "-m", "benchmarks.false_approvals", "tests/words", str(shared / "data/answers")),
        read_last,
        missing=without_scorers,
    )
    return [*outside, folds, approvals, *_of_repository()]


def _of_scorers(scorers: Path) -> Iterator[Source]:
    def adapted(name: str, scorer: str, adapter: str, *before: str) -> Source:
        command = (sys.executable, str(scorers / scorer), *before, f"benchmarks.adapters:{adapter}")
        return Source(name, command, read_last, missing=_not_built(adapter))

    def against(name: str, scorer: str, read: Callable[[str], Values], settings: str, *before: str) -> Source:
        command = (sys.executable, str(scorers / scorer), "duckflow", *before, "--", headless(settings))
        return Source(name, command, read)

    yield adapted("words.answers", "words.py", "answer", "answers")
    yield adapted("words.questions", "words.py", "asks", "questions")
    yield adapted("words.scopes", "words.py", "whole_answer", "scopes")
    yield against("runaway.native", "runaway.py", read_last, "window = 200000")
    yield against("runaway.json", "runaway.py", read_last, 'window = 200000\\ntools = "json"')
    by_task = partial(read_rows, key="task")
    yield against("oracle.plain", "oracle.py", by_task, "window = 200000")
    yield against("oracle.explored", "oracle.py", by_task, "window = 200000", "--explore", "4")
    yield against("oracle.small_window", "oracle.py", by_task, "window = 32000", "--explore", "10")
    yield against("oracle.json", "oracle.py", by_task, 'window = 200000\\ntools = "json"')
    yield adapted("safety.commands", "safety.py", "classify", "commands")
    yield adapted("safety.paths", "safety.py", "workspace", "paths")
    yield adapted("safety.edits", "safety.py", "replace", "edits")
    yield adapted("safety.json", "safety.py", "parse", "json")
    timing = (sys.executable, "-m", "benchmarks.processor_time", str(scorers / "memory.py"))
    yield Source("memory", (*timing, "benchmarks.adapters:memory"), partial(read_rows, key="set"), timed=True)
    yield adapted("pacemaker.all", "pacemaker.py", "detector")


def headless(settings: str) -> str:
    """A shell line that runs the program as it is in this repository, as a user who has only these settings of `llm`.

    The scorers put in `{url}` and `{prompt}`. They run the line in a folder that lies in a temporary one of its own.
    """
    return (
        f"mkdir -p ../home/config && printf '[llm]\\n{settings}\\n' > ../home/config/config.toml"
        ' && HOME="$(realpath ../home)" DUCKFLOW_HOME="$(realpath ../home)" LC_ALL=C.UTF-8'
        f" OPENAI_BASE_URL={{url}} OPENAI_API_KEY=none {Path(sys.executable).with_name('duckflow')}"
        " -m openai:scripted -p {prompt} --mode full-auto"
    )


def _not_built(adapter: str) -> str:
    return "" if hasattr(importlib.import_module("benchmarks.adapters"), adapter) else NOT_BUILT


def _of_repository() -> Iterator[Source]:
    python = (sys.executable, "-m")
    starts = (*python, "benchmarks.starts", COMPARED_WITH)
    without_commit = "" if is_here(COMPARED_WITH) else f"this clone does not have the commit {COMPARED_WITH}"
    without_valgrind = "" if shutil.which("valgrind") else "valgrind is not installed"
    yield Source("starts.timed", starts, read_last, timed=True, quick=False, missing=without_commit)
    yield Source("starts.counted", (*starts, "--count"), read_last, missing=without_commit or without_valgrind)
    yield Source("trace", (*python, "benchmarks.trace"), read_last)
    yield Source("house", (*python, "benchmarks.house"), read_house)


def read_last(output: str) -> Values:
    """The numbers of the JSON object in the last line."""
    return dict(_numbers(json.loads(output.strip().splitlines()[-1])))


def read_rows(output: str, key: str) -> Values:
    """The numbers of a JSON object in each line; what it has at `key` names the row."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in output.strip().splitlines()]
    return {f"{row[key]}.{name}": number for row in rows for name, number in _numbers(row)}


def _numbers(fields: dict[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """Numbers by dotted names: `46/47` counts as 46, and a list of two is the median and the 95th percentile."""
    for name, value in fields.items():
        match value:
            case bool() | int() | float():
                yield f"{before}{name}", float(value)
            case str() if share := SHARE.fullmatch(value):
                yield f"{before}{name}", float(share[1])
            case [int() | float(), int() | float()]:
                yield from _numbers(dict(zip(("p50", "p95"), value, strict=True)), f"{before}{name}.")
            case dict():
                yield from _numbers(cast("dict[str, Any]", value), f"{before}{name}.")
            case _:
                pass


def read_folds(output: str) -> Values:
    """The mean of the six halves that nothing was chosen on."""
    (average,) = AVERAGE_OF_FOLDS.findall(output)
    return {name: float(number) for name, number in NAME_AND_NUMBER.findall(average)}


def read_house(output: str) -> Values:
    """The last row of the table, for all rooms; a cell may name something before its number."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in output.splitlines() if line[:1] == "|"]
    return {
        title.replace(" ", "_"): float(cell.split()[-1]) for title, cell in zip(rows[0][1:], rows[-1][1:], strict=True)
    }
