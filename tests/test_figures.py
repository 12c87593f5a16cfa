"""How figures are compared with their record, and what is told of a source that gives none."""

import sys
from pathlib import Path

import pytest

from benchmarks.figure_record import RecordedFigure, compare, read_record, update, write_record
from benchmarks.figure_sources import Source, all_sources, read_folds, read_house, read_last, read_rows
from benchmarks.figures import RECORD, Bench, Measured, rows


@pytest.mark.parametrize(
    ("better", "slack", "recorded", "now", "mark"),
    [
        ("higher", 0.0, 97.8, 97.8, "="),
        ("higher", 0.0, 97.8, 98.0, "better"),
        ("higher", 0.0, 97.8, 97.7, "FELL"),
        ("higher", 0.5, 97.8, 97.3, "="),
        ("higher", 0.5, 97.8, 97.2, "FELL"),
        ("lower", 0.0, 3.0, 2.0, "better"),
        ("lower", 0.0, 3.0, 4.0, "FELL"),
        ("lower", 0.1, 0.2, 0.3, "="),
        ("lower", 0.1, 0.2, 0.05, "better"),
        ("lower", 0.0, None, 4.0, "new"),
        ("lower", 0.0, 3.0, None, "MISSING"),
    ],
)
def test_a_figure_beyond_its_slack_fell_or_is_better(
    better: str, slack: float, recorded: float | None, now: float | None, mark: str
) -> None:
    figure = RecordedFigure("higher" if better == "higher" else "lower", slack, recorded)
    assert compare(now, figure) == mark


def test_recording_keeps_what_is_within_its_slack(tmp_path: Path) -> None:
    record = {
        "a.same": RecordedFigure("higher", 1.0, 50.0, "2026-01-01", "aaaaaaa"),
        "a.fell": RecordedFigure("higher", 1.0, 50.0, "2026-01-01", "aaaaaaa"),
        "a.new": RecordedFigure("lower"),
        "b.not_run": RecordedFigure("lower", 0.0, 2.0, "2026-01-01", "aaaaaaa"),
    }
    measured = {"a.same": 49.5, "a.fell": 40.0, "a.new": 7.0, "a.not_listed": 1.0}
    write_record(tmp_path / "figures.json", update(record, measured, "2026-02-02", "bbbbbbb"))
    assert read_record(tmp_path / "figures.json") == {
        "a.same": record["a.same"],
        "a.fell": RecordedFigure("higher", 1.0, 40.0, "2026-02-02", "bbbbbbb"),
        "a.new": RecordedFigure("lower", 0.0, 7.0, "2026-02-02", "bbbbbbb"),
        "b.not_run": record["b.not_run"],
    }


def test_every_recorded_figure_belongs_to_one_source() -> None:
    names = [source.name for source in all_sources(Path("nowhere"))]
    for figure in read_record(RECORD):
        assert len([name for name in names if figure.startswith(f"{name}.")]) == 1, figure


def test_without_the_scorers_only_the_repository_is_measured(tmp_path: Path) -> None:
    left = {source.name for source in all_sources(tmp_path) if "scorers" not in source.missing}
    assert left == {"starts.timed", "starts.counted", "trace", "house"}


def printing(name: str, code: str) -> Source:
    return Source(name, (sys.executable, "-c", code), read_last)


def test_the_table_tells_what_fell_what_is_missing_and_what_failed() -> None:
    sources = [
        printing("good", """print('{"share": 90, "time": [1, 2]}')"""),
        printing("broken", "raise SystemExit('no data')"),
        printing("wordy", "print('all is well')"),
    ]
    record = {
        "good.share": RecordedFigure("higher", 0.0, 95.0),
        "good.time.p95": RecordedFigure("lower", 0.0, 2.0),
        "good.gone": RecordedFigure("lower", 0.0, 2.0),
    }
    measured = list(Bench(60).measure(sources))
    unbuilt = Measured(sources[0]._replace(name="later"), {}, left_out="not built yet")
    assert [(row.figure, row.mark) for row in rows([*measured, unbuilt], record)] == [
        ("good.share", "FELL"),
        ("good.time.p95", "="),
        ("good.gone", "MISSING"),
        ("broken", "FAILED"),
        ("wordy", "FAILED"),
        ("later", "not built yet"),
    ]
    assert "no data" in measured[1].failed


def test_a_source_that_takes_too_long_is_ended() -> None:
    (measured,) = Bench(0.5).measure([printing("slow", "import time; time.sleep(60)")])
    assert measured.failed == "it was not done in time"
    assert measured.seconds < 30


def test_outputs_are_read_by_the_names_that_scorers_use() -> None:
    assert read_last('noise\n{"kind": "x", "peers": {"core": "46/47"}, "solved": true}') == {
        "peers.core": 46.0,
        "solved": 1.0,
    }
    assert read_rows('{"task": "a", "n": 1}\n{"task": "b", "n": 2}', key="task") == {"a.n": 1.0, "b.n": 2.0}
    assert read_folds("x\nout of fold, on average      recall 100.0  cut  72.9\n") == {"recall": 100.0, "cut": 72.9}
    house = "| room | files | longest function |\n| --- | --- | --- |\n| ui | 2 | `a` 5 |\n| all | 9 | `wire` 127 |\n"
    assert read_house(house) == {"files": 9.0, "longest_function": 127.0}
