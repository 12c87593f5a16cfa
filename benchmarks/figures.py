"""Every figure that must not get worse, beside its last recorded value: `make figures`.

usage: python -m benchmarks.figures [--quick] [--record] [--only NAME] [--shared FOLDER] [--commands]

Sources that measure times run first and alone, the others two at a time. With `--quick` it ends within five minutes.
The exit code is 1 when a figure fell beyond its slack, or could not be measured although its source ran.
"""

import argparse
import datetime
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.figure_record import BAD, Record, compare, read_record, update, write_record
from benchmarks.figure_sources import NOT_BUILT, Source, Values, all_sources
from benchmarks.revisions import TOP

RECORD = Path(__file__).with_name("figures.json")
QUICK_SECONDS = 285.0
LONGEST_SECONDS = 3600.0
SIDE_BY_SIDE = 2
NOT_PASSED_ON = ("DUCKFLOW_", "OTEL_", "PYTHONDONTWRITEBYTECODE")
"""Variables that would change what is measured, by the beginning of their names."""


class Measured(NamedTuple):
    """The values that a source gave and the seconds it took, or why it gave none."""

    source: Source
    values: Values
    seconds: float = 0.0
    left_out: str = ""
    failed: str = ""


class Bench:
    """Runs sources until its time is up."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._running: set[subprocess.Popen[str]] = set()

    def measure(self, sources: Sequence[Source]) -> Iterator[Measured]:
        """Runs the sources that measure times first and alone, then the others."""
        yield from (self._measure(source) for source in sources if source.timed)
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            try:
                yield from pool.map(self._measure, [source for source in sources if not source.timed])
            except BaseException:
                # Else the pool would wait for them.
                for process in self._running:
                    os.killpg(process.pid, signal.SIGKILL)
                raise

    def _measure(self, source: Source) -> Measured:
        print(f"… {source.name}", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            values, failed = source.read(self._output(source.command)), ""
        except subprocess.TimeoutExpired:
            values, failed = Values(), "it was not done in time"
        except subprocess.CalledProcessError as problem:
            values, failed = Values(), f"exit code {problem.returncode}: {str(problem.stderr).strip()[-500:]}"
        except (ValueError, LookupError) as problem:
            values, failed = Values(), f"its output cannot be read: {problem}"
        return Measured(source, values, time.monotonic() - start, failed=failed)

    def _output(self, command: tuple[str, ...]) -> str:
        own = {name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)}
        left = max(0.0, self._end - time.monotonic())
        # A session of its own, so that whatever the command has started can be ended with it.
        with subprocess.Popen(
            command,
            cwd=TOP,
            env=own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            self._running.add(process)
            try:
                output, errors = process.communicate(timeout=left)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            finally:
                self._running.discard(process)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command, output, errors)
        return output


class Row(NamedTuple):
    """A line of the table."""

    figure: str
    now: str
    recorded: str
    mark: str
    seconds: str = ""


def rows(measured: Iterable[Measured], record: Record) -> Iterator[Row]:
    for each in measured:
        listed = [name for name in record if name.startswith(f"{each.source.name}.")]
        seconds = f"{each.seconds:.1f}"
        if each.left_out:
            yield Row(each.source.name, "-", "", "not built yet" if each.left_out == NOT_BUILT else "left out")
            continue
        if each.failed:
            yield Row(each.source.name, "-", "", "FAILED", seconds)
            continue
        for name in listed:
            now = each.values.get(name.removeprefix(f"{each.source.name}."))
            yield Row(name, _shown(now), _shown(record[name].value), compare(now, record[name]), seconds)
            seconds = ""


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.10g}"


def table(lines: Sequence[Row]) -> str:
    titles = Row("figure", "now", "recorded", "mark", "seconds")
    widths = [max(len(row[column]) for row in (titles, *lines)) for column in range(len(titles))]
    return "\n".join(
        f"{row.figure:<{widths[0]}}  {row.now:>{widths[1]}}  {row.recorded:>{widths[2]}}  {row.mark:<{widths[3]}}"
        f"  {row.seconds:>{widths[4]}}".rstrip()
        for row in (titles, *lines)
    )


def program_commit() -> str:
    """The last commit that changed the program, with a plus where it has changed since."""
    log = ["git", "log", "-1", "--format=%h", "--", "src"]
    commit = subprocess.run(log, cwd=TOP, check=True, capture_output=True, text=True).stdout.strip()
    status = ["git", "status", "--porcelain", "--", "src"]
    changed = subprocess.run(status, cwd=TOP, check=True, capture_output=True, text=True).stdout
    return f"{commit}+" if changed else commit


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="leave out what is long")
    parser.add_argument("--record", action="store_true", help="write what differs as the new record")
    parser.add_argument("--only", default="", metavar="NAME", help="only sources whose names begin so")
    parser.add_argument("--shared", type=Path, default=TOP.parent / "shared", help="the folder with scorers and data")
    parser.add_argument("--commands", action="store_true", help="print the command of each source and run none")
    return parser.parse_args()


def run(sources: Sequence[Source], quick: bool) -> list[Measured]:
    """Every source, in the given order; those that are left out say why."""
    measured: dict[str, Measured] = {}
    for source in sources:
        if why := source.missing or ("too long for the quick run" if quick and not source.quick else ""):
            measured[source.name] = Measured(source, Values(), left_out=why)
    for why in dict.fromkeys(each.left_out for each in measured.values()):
        names = ", ".join(name for name, each in measured.items() if each.left_out == why)
        print(f"Left out, {why}: {names}", flush=True)
    bench = Bench(QUICK_SECONDS if quick else LONGEST_SECONDS)
    for each in bench.measure([source for source in sources if source.name not in measured]):
        measured[each.source.name] = each
    return [measured[source.name] for source in sources]


def main() -> int:
    options = parse_options()
    sources = [source for source in all_sources(options.shared.resolve()) if source.name.startswith(options.only)]
    if options.commands:
        print("\n".join(f"{source.name}:\n  {shlex.join(source.command)}" for source in sources))
        return 0
    record, measured = read_record(RECORD), run(sources, options.quick)
    lines = list(rows(measured, record))
    print("\n" + table(lines))
    for each in measured:
        if each.failed:
            print(f"\n{each.source.name} failed: {each.failed}")
    if options.record:
        values = {f"{each.source.name}.{name}": value for each in measured for name, value in each.values.items()}
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        write_record(RECORD, update(record, values, today, program_commit()))
    bad = [row.figure for row in lines if row.mark in (*BAD, "FAILED")]
    print(f"\nWorse or not measured: {', '.join(bad)}" if bad else "\nNothing fell.")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
