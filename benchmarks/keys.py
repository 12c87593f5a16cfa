"""How fast keys act, measured from outside at a real terminal.

usage: python -m benchmarks.keys [RUNS]      (default 10)

`esc_stream`: from Esc until the terminal says that a reply in the middle of its stream was interrupted;
`esc_command`: the same for a command of the user's own that prints without end;
`paste`: from the last byte of 10 000 pasted lines until the line shows them;
`completion`: a keystroke of an @file among 50 000 files, the slowest of several words, once they are listed.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from duckflow.agent.file_index import FileIndex
from tests.journeys.story import decide, respond
from tests.ui.console.terminal import Terminal

FILES = 50_000
WORDS = ("s", "mod", "file_99", "m4sf99", "zzz", "src/pkg_7/module_1", "aeiou")
PASTED = "\r".join(f"line {number} of a long paste" for number in range(10_000))


def slow(number: int) -> dict[str, object]:
    text = " ".join(f"{number}.{word}" for word in range(2000))
    return {"json": decide(respond(text), step="PLANNING"), "chunk": 4, "delay": 0.005}


def until(terminal: Terminal, text: bytes) -> float:
    """Returns the seconds until the terminal has printed the text once more."""
    seen, start = terminal.raw.count(text), time.perf_counter()
    while terminal.raw.count(text) == seen:
        terminal.read(0.001)
        if time.perf_counter() - start > 20:
            raise TimeoutError(text, terminal.shown())
    return time.perf_counter() - start


def keys(top: Path, runs: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {"esc_stream": [], "esc_command": [], "paste": []}
    terminal = Terminal(top, [slow(number) for number in range(3 * runs)])
    terminal.wait_for("/help")
    for _ in range(runs):
        terminal.enter("talk")
        terminal.wait_until(lambda screen: ".9 " in screen.rpartition("› talk")[2])
        terminal.type("\x1b")
        taken["esc_stream"].append(until(terminal, b"Interrupted."))
        terminal.enter("!yes")
        terminal.wait_until(lambda screen: "│ y" in screen.rpartition("› !yes")[2])
        terminal.type("\x1b")
        taken["esc_command"].append(until(terminal, b"exit code 130"))
        terminal.paste(PASTED)
        taken["paste"].append(until(terminal, b"10000 lines"))
        terminal.type("\x15")
        terminal.wait_until(lambda screen: "10000 lines" not in screen)
    terminal.close()
    return {f"{name}_ms": round(statistics.median(values) * 1e3) for name, values in taken.items()}


def completion(top: Path) -> dict[str, float]:
    for folder in range(500):
        (top / f"src/pkg_{folder % 20}/module_{folder}").mkdir(parents=True)
        for number in range(FILES // 500):
            (top / f"src/pkg_{folder % 20}/module_{folder}/some_file_{number}.py").touch()
    index = FileIndex(top)
    start = time.perf_counter()
    index.find("", 1)
    listed = time.perf_counter() - start
    slowest = 0.0
    for word in WORDS:
        start = time.perf_counter()
        index.find(word, 40)
        slowest = max(slowest, time.perf_counter() - start)
    return {"listing_ms": round(listed * 1e3), "completion_ms": round(slowest * 1e3, 1)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
        print(json.dumps(keys(Path(one), runs) | completion(Path(other))))
