"""Duckflow beside other programs: measures them on one day, and makes docs/results.md of what was recorded.

usage: python -m benchmarks.results                                        (docs/results.md, from benchmarks/results/)
       python -m benchmarks.results [--shared ../shared] [--only SCORER] duckflow=PATH pi=PATH codex=PATH ...

A PATH is a program to measure. Measuring adds lines to the file of today; a line holds what one scorer printed for one
program, with its version and command. The page shows the newest day, and of two lines for the same the later one. Each
run has a home of its own (in $TMPDIR), and a proxy that leads nowhere keeps the programs on this machine.
"""

import argparse
import datetime
import json
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.figure_sources import headless

RECORDED = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs/results.md"
ALONE = "HTTPS_PROXY=http://127.0.0.1:9 HTTP_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 LC_ALL=C.UTF-8"
TOGETHER = "bwrap --die-with-parent --unshare-pid --dev-bind / / --proc /proc"
PI = """{"providers": {"mock": {"baseUrl": "{url}", "api": "openai-completions", "apiKey": "none", "models":
[{"id": "mock", "contextWindow": 200000}]}}}"""
OPENCODE = """{"provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "{url}", "apiKey":
"none"}, "models": {"mock": {"limit": {"context": 200000, "output": 8000}}}}}}"""
CODEX = """model = "mock"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "{url}"
wire_api = "responses"
"""


class Program(NamedTuple):
    """How a program is told of the server, and started headless with everything allowed."""

    file: str
    text: str
    line: str
    speaks: bool = True
    """It takes tools over chat completions, which is what the scripted models speak."""


PROGRAMS = {
    "pi": Program(".pi/agent/models.json", PI, "PROGRAM --offline --model mock/mock -p {prompt}"),
    "opencode": Program(".config/opencode/opencode.json", OPENCODE, "PROGRAM run -m mock/mock {prompt}"),
    "qwen": Program(
        ".qwen/settings.json",
        '{"security": {"auth": {"selectedType": "openai"}}}',
        "OPENAI_BASE_URL={url} OPENAI_API_KEY=none OPENAI_MODEL=mock PROGRAM --yolo -p {prompt}",
    ),
    "codex": Program(".codex/config.toml", CODEX, "PROGRAM exec {prompt}", speaks=False),
    "aider": Program(
        ".keep",
        "",
        "PROGRAM --openai-api-base {url} --openai-api-key none --model openai/mock --yes-always --no-check-update"
        " --no-show-model-warnings --analytics-disable --message {prompt}",
        speaks=False,
    ),
}
MINUTE = "--limit 60"
ROUNDS = 5
SCORERS = {
    "oracle": ("oracle.py", "NAME"),
    "explored": ("oracle.py", "NAME --explore 4"),
    "runaway": ("-m benchmarks.runaway runaway.py", f"NAME {MINUTE}"),
    "turn": ("overhead.py", "--runs 1"),
}


def line_of(name: str, path: str) -> str:
    """A shell line for a scorer. A scorer ends only the program at its limit; bubblewrap ends the processes it has
    started, a moment later. Its home does not lie in the folder that the scorer removes, as they may still write."""
    if name == "duckflow":
        return headless("window = 200000").replace(str(Path(sys.executable).with_name("duckflow")), path)
    program = PROGRAMS[name]
    place = Path("$HOME") / program.file
    told = f"export HOME=$(mktemp -d); mkdir -p {place.parent} && printf %s {shlex.quote(program.text)} > {place}"
    return f"{told} && exec env {ALONE} {program.line.replace('PROGRAM', f'{TOGETHER} {path}')}"


def measure(shared: Path, only: str, programs: dict[str, str]) -> Iterator[dict[str, Any]]:
    """A record for each scorer and program."""
    versions = {name: _words_of(path, "--version")[-1] for name, path in programs.items()}
    if "duckflow" in versions:
        versions["duckflow"] += f" at {_words_of('git', 'rev-parse', '--short=8', 'HEAD')[0]}"
    for scorer, (file, flags) in SCORERS.items():
        chosen = {name: line_of(name, path) for name, path in programs.items() if only in ("", scorer)}
        if scorer == "turn":
            words = [f"{name}={line.replace('{prompt}', shlex.quote('say hello'))}" for name, line in chosen.items()]
            rounds = [_printed(shared, file, *flags.split(), *words) for _ in range(ROUNDS if words else 0)]
        else:
            chosen = {name: line for name, line in chosen.items() if name not in PROGRAMS or PROGRAMS[name].speaks}
            rounds = []
        for place, (name, line) in enumerate(chosen.items()):
            told = flags.replace("NAME", name)
            rows = [row[place] for row in rounds] or _printed(shared, file, *told.split(), "--", line)
            yield {
                "scorer": scorer,
                "program": name,
                "version": versions[name],
                "command": f"{file} {told} -- {line.replace(programs[name], name)}",
                "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
                "rows": [{key: row[key] for key in row if key not in ("note", "agent", "name")} for row in rows],
            }


def _words_of(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def _printed(shared: Path, file: str, *words: str) -> list[dict[str, Any]]:
    *module, scorer = file.split()
    line = [sys.executable, *module, shared / "bench" / scorer, *words]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    return [json.loads(row) for row in done.stdout.splitlines()]


def page(records: Sequence[dict[str, Any]], day: str) -> str:
    """The results of a day, as Markdown."""
    by_scorer = {scorer: [one for one in records if one["scorer"] == scorer] for scorer in SCORERS}
    parts = [
        "# Results beside other programs",
        f"Measured on {day}, all programs on the same machine on the same day. Made by `python -m benchmarks.results` "
        f"from `benchmarks/results/{day}.jsonl`, which `python -m benchmarks.results NAME=PATH ...` has "
        "written. The scorers are the reference scorers; how each works stands in docs/benchmarks.md. Nothing here "
        "depends on how quick the machine is, but for the ratio of times, which holds within its one run. A program "
        "without a row was not measured there. Codex and aider do not offer tools over chat completions, which is what "
        "the scripted models speak, and so have a row only for the turn.",
        "## Versions",
        "Each command below stands with the version that was measured with it.",
        _table(["program", "version"], dict.fromkeys((_name(one), one["version"]) for one in records)),
        "## A model that knows the right edits",
        "Two tasks each (collide / help); requests, thousands of characters sent, of these not in the request before, "
        "edits of lines that were not in sight, places looked at again.",
        _oracle(by_scorer["oracle"]),
        "The same after four replies that only look around:",
        _oracle(by_scorer["explored"]),
        "## Models that will not stop",
        "Eleven models that go on for ever or act while they ask, and two honest ones that work for long; each run is "
        f"cut off after a minute (`{MINUTE}`). Stopped: within 30 calls, and nothing was written while it asked. Left "
        "alone: an honest one ended its work. A slow program, or a busy machine, makes fewer calls until the "
        "cut, and may not come to the end of an honest one. The models write absolute paths for programs that ask for "
        "them (qwen, opencode), and search in the shell where a program has no tool for it (pi).",
        _runaways(by_scorer["runaway"]),
        "## One turn that only answers",
        "The time is a median of five rounds in which the programs take turns, with Duckflow = 1.00, on a machine with "
        "other work.",
        _turns(by_scorer["turn"]),
        "## Commands",
        *(
            f"`{one['scorer']}`, {_name(one)} {one['version']}, {one['at']}:\n\n```\n{one['command']}\n```"
            for one in records
        ),
    ]
    return "\n\n".join(parts) + "\n"


def newest_page() -> str:
    newest = max(RECORDED.glob("*.jsonl"))
    lines = [json.loads(line) for line in newest.read_text("utf-8").splitlines()]
    latest = {(line["scorer"], line["program"]): line for line in lines}.values()
    return page(sorted(latest, key=lambda line: list(SCORERS).index(line["scorer"])), newest.stem)


def _name(record: dict[str, Any]) -> str:
    return str(record["program"])


def _oracle(records: Sequence[dict[str, Any]]) -> str:
    fields = ("solved", "requests", "kchars_in", "fresh", "blind", "looked")
    heads = ["program", "solved", "requests", "in", "fresh", "blind", "looked again"]
    rows = (
        [_name(one), *(" / ".join(_told(row[field]) for row in one["rows"]) for field in fields)] for one in records
    )
    return _table(heads, rows)


def _runaways(records: Sequence[dict[str, Any]]) -> str:
    heads = ["program", "stopped", "left alone", "cut off", "most calls of one that should be stopped", "wrote"]
    rows: list[list[Any]] = []
    for record in records:
        runs, total = record["rows"][:-1], record["rows"][-1]
        kinds = [[run["ok"] for run in runs if run["honest"] is honest] for honest in (False, True)]
        counts = [f"{sum(kind)} of {len(kind)}" for kind in kinds]
        cut = [sum(run["exit"] == "time limit" for run in runs if run["honest"] is honest) for honest in (False, True)]
        told = f"{cut[0]}, and {cut[1]} honest" if cut[1] else cut[0]
        rows.append([_name(record), *counts, told, total["most_calls"], total["acted"]])
    return _table(heads, rows)


def _turns(records: Sequence[dict[str, Any]]) -> str:
    seconds = {_name(one): statistics.median(row["wall_s"] for row in one["rows"]) for one in records}
    rows = (
        [name := _name(one), last["requests"], sum(last["bytes"]), f"{seconds[name] / seconds['duckflow']:.2f}"]
        for one in records
        for last in one["rows"][-1:]
    )
    return _table(["program", "requests", "bytes sent", "time"], rows)


def _told(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _table(heads: Sequence[str], rows: Any) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--only", default="", choices=["", *SCORERS])
    parser.add_argument("programs", nargs="*", metavar="NAME=PATH")
    options = parser.parse_args()
    if options.programs:
        today = RECORDED / f"{datetime.datetime.now(datetime.UTC).date()}.jsonl"
        RECORDED.mkdir(exist_ok=True)
        for record in measure(options.shared, options.only, dict(one.split("=", 1) for one in options.programs)):
            with today.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            print(record["scorer"], record["program"], record["version"], json.dumps(record["rows"][-1]), flush=True)
        return
    PAGE.write_text(newest_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
