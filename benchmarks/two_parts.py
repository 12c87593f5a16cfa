"""Everyday requests of two parts with a small model: which parts are done, which are named as not done, which are
silently missing?

usage: python -m benchmarks.two_parts [-m MODEL] [--half given|held|fresh] [--only NUMBER] [--revision REVISION]

Each request gets a small folder and the real program (`duckflow -p … --mode full-auto`, with REVISION that of another
commit). A file counts by what stands in it, a run and a look by the record, an answer by the fact in it.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from benchmarks.revisions import TOP, unpack
from benchmarks.two_parts_requests import HALVES, Part, TwoParts
from duckflow.i18n.words import Words
from duckflow.state.data import Phrase

LIMIT = 900
NAMED = {
    "file": r"not (?:been )?written|書かれていません|書いていません",
    "gone": r"not (?:been )?(?:done|moved|deleted)|(?:行って|削除されて|削除して|移動して)いません",
    "run": r"(?:not|n't) (?:been )?run\b|実行(?:して|されて)いません",
    "look": r"not (?:been )?(?:looked|read|listed)|見ていません|調べていません",
    "answer": r"not (?:been )?answered|答えていません",
}
"""The words by which the program or the model says that a part was not done."""
Verdict = Literal["done", "named", "MISSING"]


@dataclass
class Record:
    """The deeds and words of one turn, read from the stream of its events."""

    runs: list[str] = field(default_factory=list[str])
    looks: list[str] = field(default_factory=list[str])
    shown: list[str] = field(default_factory=list[str])
    answer: str = ""
    requests: int = 0

    def texts(self) -> str:
        return "\n".join((*self.shown, self.answer))


class Played(NamedTuple):
    verdicts: tuple[Verdict, ...]
    record: Record
    seconds: float
    exit_code: int


def read(lines: Sequence[str], words: Words) -> Record:
    """A run counts when it came after the last change of a file. The program's own try-outs are scripts on standard
    input and count for nothing."""
    record, commands = Record(), dict[str, str]()
    for line in lines:
        event: dict[str, Any] = json.loads(line) if line.startswith("{") else {"type": ""}
        match event["type"]:
            case "loop_began":
                record.requests += 1
            case "action_started" if event["action"]["operation"] == "shell.run":
                commands[event["action"]["action_id"]] = str(event["action"]["args"].get("command", ""))
            case "action_finished":
                _note(record, event["result"], commands)
            case "noticed" if not event["what"]["key"].startswith("checks."):
                # That no checks were run is said of every change, and names no part.
                record.shown.append(_shown(event["what"], words))
            case "turn_ended" if event["why"]:
                record.shown.append(_shown(event["why"], words))
            case "result":
                record.answer = f"{event['result']}\n{event['why']}"
            case _:
                pass
    return record


def _note(record: Record, result: Mapping[str, Any], commands: Mapping[str, str]) -> None:
    command = commands.get(result["action_id"], "")
    if result["changed"] and not command:
        record.runs.clear()
    if command and "<<" not in command and not result["for_user"]["key"].startswith("tool."):
        record.runs.append(command)
    if result["ok"] and result["effect"] == "read":
        record.looks.append(result["operation"])


def _shown(phrase: dict[str, Any], words: Words) -> str:
    try:
        return words.phrase(Phrase.model_validate(phrase))
    except KeyError:
        # Another revision has words of its own.
        return str(phrase["values"])


def judge(part: Part, folder: Path, record: Record) -> Verdict:
    path = folder / part.path
    match part.kind:
        case "file":
            done = path.is_file() and re.search(part.shows, path.read_text("utf-8", "replace")) is not None
        case "gone":
            done = not path.exists()
        case "run":
            done = any(re.search(part.shows, command) for command in record.runs)
        case "look":
            done = bool(record.looks)
        case "answer":
            done = re.search(part.shows, record.answer, re.IGNORECASE) is not None
    named = re.search(NAMED[part.kind], record.texts(), re.IGNORECASE)
    if done:
        return "done"
    return "named" if named else "MISSING"


def play(request: TwoParts, model: str, source: Path, log: Path | None) -> Played:
    with TemporaryDirectory() as top:
        folder = Path(top) / "work"
        for name, text in request.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "duckflow", "-m", model, "-p", request.text, "--mode", "full-auto", "--lang"]
        command += [request.language, "--output-format", "stream-json"]
        began = time.monotonic()
        with _output(log) as errors:
            ended = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(source), "XDG_DATA_HOME": f"{top}/data"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                timeout=LIMIT,
                check=False,
            )
            errors.write(ended.stdout)
        record = read(ended.stdout.splitlines(), Words(request.language))
        verdicts: tuple[Verdict, ...] = tuple(judge(part, folder, record) for part in request.parts)
        return Played(verdicts, record, time.monotonic() - began, ended.returncode)


@contextmanager
def _output(log: Path | None) -> Generator[Any]:
    with (log or Path(os.devnull)).open("w", encoding="utf-8") as file:
        yield file


def main(options: argparse.Namespace) -> int:
    parts = dict.fromkeys(("done", "named", "MISSING"), 0)
    whole = count = 0
    with TemporaryDirectory() as other:
        if options.revision:
            unpack(options.revision, Path(other))
        source = Path(other if options.revision else TOP) / "src"
        for number, request in enumerate(HALVES[options.half], 1):
            if options.only not in (0, number):
                continue
            log = options.logs and options.logs / f"{options.half}{number}.txt"
            played = play(request, options.model, source, log)
            told = [f"{part.kind} {verdict}" for part, verdict in zip(request.parts, played.verdicts, strict=True)]
            how = f"{played.record.requests} loops, {played.seconds:.0f} s, exit {played.exit_code}"
            print(f"{number:2} {', '.join(told)}  ({how})  {request.text}", flush=True)
            count, whole = count + 1, whole + ("MISSING" not in played.verdicts)
            for verdict in played.verdicts:
                parts[verdict] += 1
    print(f"all parts done or named in {whole} of {count}; parts: {parts}")
    return 0 if whole == count else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", default="local")
    parser.add_argument("--half", choices=tuple(HALVES), default="given")
    parser.add_argument("--only", type=int, default=0, metavar="NUMBER")
    parser.add_argument("--revision", default="", help="the program of another commit")
    parser.add_argument("--logs", type=Path, help="a folder for the streams of events")
    raise SystemExit(main(parser.parse_args()))
