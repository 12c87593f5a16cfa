"""How good and how fast the code map is.

`python -m benchmarks.code_map score FOLDER REFERENCES.json [--misses]`: definitions and uses against what
`benchmarks.code_references` wrote. `python -m benchmarks.code_map speed FOLDER...`: processor time and memory of the
first map of these folders together, and of one changed file.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.code_references import QUESTION_SECONDS, SERVERS
from duckflow.code.background import MODULE
from duckflow.code.lsp import CodePlace, LanguageServer
from duckflow.code.store import CodeMap
from duckflow.code.uses import find_uses
from duckflow.programs.find import own_module
from duckflow.programs.launch import Launch
from duckflow.safety.workspace import Workspace

CHANGES = 9
Place = tuple[str, int, int]


class Score(NamedTuple):
    """Of one symbol: places that both name, that only the reference names, that only the map names, and those that the
    map says it cannot tell."""

    both: set[Place]
    missed: set[Place]
    more: set[Place]
    unsure: set[Place]


def score(folder: Path, written: dict[str, Any], misses: bool) -> None:
    with tempfile.TemporaryDirectory() as top:
        code_map = CodeMap(Workspace(folder), Path(top) / "map.db")
        code_map.refresh()
        found, scores, seconds = 0, list[tuple[str, Score]](), list[float]()
        for symbol in written["symbols"]:
            named = code_map.named(symbol["name"])
            target = next((one for one in named if (one.path, one.line) == (symbol["path"], symbol["line"])), None)
            if target is None:
                print(f"not found: {symbol['path']}:{symbol['line']} {symbol['name']}")
                continue
            found += 1
            begun = time.process_time()
            uses = find_uses(code_map, target, QUESTION_SECONDS).uses
            seconds.append(time.process_time() - begun)
            imports = {(use.path, use.line, use.column) for use in uses if use.role == "import"}
            ours = {(use.path, use.line, use.column) for use in uses if use.means == "it"} - imports
            unsure = {(use.path, use.line, use.column) for use in uses if use.means == "unsure"}
            given = {
                (path, line, column)
                for path, line, column in symbol["places"]
                if _is_name(folder, path, line, column, target.name)
            }
            theirs = given - imports - {(target.path, target.line, symbol["column"])}
            scores.append((target.qualified, Score(ours & theirs, theirs - ours, ours - theirs, unsure - theirs)))
        code_map.close()
    total = len(written["symbols"])
    both, missed = (sum(len(getattr(one, field)) for _, one in scores) for field in ("both", "missed"))
    more = {place for _, one in scores for place in one.more}
    wrong, untold = asyncio.run(_judged(folder, scores, written["language"])) if more else (0, 0)
    recall = both / max(1, both + missed)
    strict, fair = (
        both / max(1, both + len(more)),
        (both + len(more) - wrong - untold) / max(1, both + len(more) - untold),
    )
    print(f"{folder.name}: {found} of {total} definitions found ({found / total:.1%}), drawn from {written['of']}")
    print(f"  uses: {both + missed} by the reference, recall {recall:.1%}")
    print(f"  precision {fair:.1%} where the reference can tell; {strict:.1%} if the {untold} that it cannot are wrong")
    unsure = sum(len(one.unsure) for _, one in scores)
    print(
        f"  said to be untellable: {unsure}; processor time of a question: median {statistics.median(seconds):.2f} s,"
        f" longest {max(seconds):.2f} s"
    )
    if misses:
        for name, one in scores:
            for place in sorted(one.missed)[:6]:
                print(f"  missed {name}: {place[0]}:{place[1]}")
            for place in sorted(one.more)[:6]:
                print(f"  more {name}: {place[0]}:{place[1]}")


def _is_name(folder: Path, path: str, line: int, column: int, name: str) -> bool:
    """Says whether the place is a use. Other declarations of the same thing (overloads, setters) are not."""
    text = (folder / path).read_text("utf-8", "replace").split("\n")[line - 1]
    declared = re.search(r"\b(?:def|class)\s+$", text[:column])
    return text[column : column + len(name)] == name and not declared


async def _judged(folder: Path, scores: list[tuple[str, Score]], language: str) -> tuple[int, int]:
    """Of the places that only the map names: how many the reference says are something else, and of how many it says
    nothing at all."""
    server = LanguageServer(folder, language)
    await server.start(Launch(SERVERS[language], folder, os.environ), 120)
    wrong, untold, shown = 0, 0, set[str]()
    try:
        for _, one in scores:
            for path, line, column in sorted(one.more):
                if path not in shown:
                    server.show(path, (folder / path).read_text("utf-8"))
                    shown.add(path)
                try:
                    places = await server.definition(CodePlace(path, line, column), 120)
                except TimeoutError:
                    places = []
                untold += not places
                wrong += bool(places)
    finally:
        await server.aclose()
    return wrong, untold


def speed(folders: list[Path]) -> None:
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "work"
        for number, source in enumerate(folders):
            shutil.copytree(source, folder / f"{number}-{source.name}", symlinks=True)
        request: dict[str, object] = {
            "do": "map",
            "folder": str(folder),
            "private": [],
            "map": str(Path(top) / "map.db"),
        }
        subprocess.run(own_module(MODULE), input=json.dumps(request).encode(), check=True, capture_output=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        first, memory = used.ru_utime + used.ru_stime, used.ru_maxrss // 1024
        code_map = CodeMap(Workspace(folder), Path(top) / "map.db")
        files = len(code_map.files())
        assert code_map.refresh() == 0
        size = sum(path.stat().st_size for path in Path(top).glob("map.db*"))
        times = list[tuple[float, float]]()
        changed = sorted(path for path, count in code_map.files() if path.endswith(".py") and count > 3)
        for path in changed[:: max(1, len(changed) // CHANGES)][:CHANGES]:
            with (folder / path).open("a") as file:
                file.write("\n\ndef added_by_the_benchmark(): ...\n")
            begun = time.process_time()
            changes = code_map.changes()
            looked = time.process_time()
            code_map.update(changes)
            times.append((looked - begun, time.process_time() - looked))
        assert len(code_map.named("added_by_the_benchmark")) == len(times)
        bytes_read = sum((folder / path).stat().st_size for path, _ in code_map.files())
        print(
            f"{files} files, {bytes_read / 1e6:.0f} MB: first map {first:.1f} s of processor time, {memory} MiB,"
            f" {size / 1e6:.0f} MB on disk"
        )
        looking, reading = (statistics.median(kind) * 1000 for kind in zip(*times, strict=True))
        print(f"one changed file: noticed in {looking:.0f} ms, read anew in {reading:.0f} ms (medians)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    scoring = what.add_parser("score")
    scoring.add_argument("folder", type=Path)
    scoring.add_argument("references", type=Path)
    scoring.add_argument("--misses", action="store_true")
    fast = what.add_parser("speed")
    fast.add_argument("folders", type=Path, nargs="+")
    given = parser.parse_args()
    if given.what == "score":
        score(given.folder.resolve(), json.loads(given.references.read_text()), given.misses)
    else:
        speed(given.folders)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
