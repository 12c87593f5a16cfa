"""How soon an editor can talk to Duckflow: from the start of the process to the answers to initialize and session/new.

usage: python -m benchmarks.editor_ready [RUNS]      (default 10 runs; the first one only warms the disk cache)
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "duckflow", "acp")


def answered(top: Path) -> tuple[float, float]:
    """Returns the seconds until each of the two answers."""
    work, script = top / "work", top / "script.jsonl"
    work.mkdir(exist_ok=True)
    script.touch()
    environment = {**os.environ, "HOME": str(top), "DUCKFLOW_HOME": str(top / "home")}
    start = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, "-m", f"scripted:{script}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        cwd=work,
    )
    ready = _until_answer(process, 1, "initialize", {"protocolVersion": 1}) - start
    session = _until_answer(process, 2, "session/new", {"cwd": str(work), "mcpServers": []}) - start
    process.communicate()
    return ready, session


def _until_answer(process: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]) -> float:
    assert process.stdin and process.stdout
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    for line in process.stdout:
        if json.loads(line).get("id") == number:
            return time.perf_counter()
    raise EOFError("it ended without an answer")


def main(arguments: list[str]) -> None:
    runs = int(arguments[0]) if arguments else 10
    with tempfile.TemporaryDirectory() as top:
        taken = [answered(Path(top)) for _ in range(runs + 1)][1:]
    ready, session = zip(*taken, strict=True)
    report: dict[str, float] = {}
    for name, seconds in (("initialize", ready), ("session_new", session)):
        report[f"{name}_ms"] = round(statistics.median(seconds) * 1e3)
        report[f"{name}_best_ms"] = round(min(seconds) * 1e3)
    print(json.dumps(report | {"runs": runs}))


if __name__ == "__main__":
    main(sys.argv[1:])
