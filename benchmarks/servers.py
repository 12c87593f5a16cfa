"""A chat with twenty MCP servers, one dead, one slow to start, one flooding, one changing its list all the time.

usage: python -m benchmarks.servers [KEYS [SERVERS]]      (default 200 keys, 20 servers)

How long a typed key takes to be echoed, while the servers start and after that; and what is left of them two seconds
after the chat was killed with -9. With `chrt -f 10` before it, and on a busy machine, the chat alone has priority: its
servers do not.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.first_key import KEY, terminal, until_echoed
from tests.journeys.processes import processes

SERVER = Path(__file__).parents[1] / "tests/tools/outside/stdio_server.py"
HABITS = ["dead", "slow", "flood", "changing"]
FIRST_KEY = 0x4E00
PAUSE_SECONDS = 0.05


def settings(mark: str, servers: int) -> str:
    tables: list[str] = []
    for number in range(servers):
        habits = HABITS[number : number + 1] + [mark]
        args = ", ".join(f'"{one}"' for one in ("-I", "-S", str(SERVER), *habits))
        tables.append(f'[mcp.servers.s{number}]\ncommand = "{sys.executable}"\nargs = [{args}]\n')
    return "\n".join(tables)


def typed(ours: int, keys: int, first: int) -> list[float]:
    """Milliseconds for each key; no two are the same, since a line that is drawn anew shows the earlier ones too."""
    found: list[float] = []
    for number in range(keys):
        key, start = chr(first + number).encode(), time.perf_counter()
        os.write(ours, key)
        found.append((until_echoed(ours, key) - start) * 1000)
        time.sleep(PAUSE_SECONDS)
    return found


def main(keys: int, servers: int) -> None:
    with tempfile.TemporaryDirectory() as top:
        work, config = Path(top, "work"), Path(top, "home/config/config.toml")
        work.mkdir()
        config.parent.mkdir(parents=True)
        config.write_text(settings(top, servers))
        Path(top, "script.jsonl").write_text('{"text": "hello"}\n')
        ours, theirs = terminal()
        home = {"HOME": top, "DUCKFLOW_HOME": f"{top}/home", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        first = ["chrt", "-R", "-f", "10"] if os.sched_getscheduler(0) == os.SCHED_FIFO else []
        command = [*first, sys.executable, "-m", "duckflow", "-m", f"scripted:{top}/script.jsonl"]
        chat = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=work,
            env={**os.environ, **home},
            start_new_session=True,
        )
        os.close(theirs)
        try:
            os.write(ours, KEY)
            until_echoed(ours)
            tell("while they start", typed(ours, keys // 2, FIRST_KEY))
            time.sleep(5)
            tell("later", typed(ours, keys // 2, FIRST_KEY + keys))
            print(f"processes of servers: {len(processes(top))}")
        finally:
            os.kill(chat.pid, signal.SIGKILL)
            chat.wait()
        time.sleep(2)
        print(f"left 2 s after kill -9: {len(processes(top))}")


def tell(when: str, found: list[float]) -> None:
    high = sorted(found)[int(len(found) * 0.99)]
    print(f"keys {when}: median {statistics.median(found):.1f} ms, 99 % {high:.1f} ms, longest {max(found):.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 200, int(sys.argv[2]) if sys.argv[2:] else 20)
