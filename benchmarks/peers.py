"""A headless turn of this program beside others, against a server on this machine that answers at once.

usage: python -m benchmarks.peers [--rounds 21] [--count] duckflow=PATH pi=PATH codex=PATH

A PATH is the program to start; a name may end in a number, so that two builds of a program can be compared. Each turn
has a fresh git folder with one small file, each program a home of its own that stays. They take turns, so that
whatever else the machine does hits all of them; the first round only warms the disk cache. Medians in milliseconds: of
the clock, and of the processor with all the processes that were started.

With `--count` valgrind counts millions of instructions instead, once each.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = ["git init -q", "git add -A", "git -c user.email=a@b -c user.name=a commit -qm start"]
VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
INSTRUCTIONS = re.compile(r"I\s+refs:\s+([\d,]+)")
PI = """{"providers": {"mock":
{"baseUrl": "URL", "api": "openai-completions", "apiKey": "k", "models": [{"id": "mock"}]}}}"""
CODEX = """
model = "mock"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "URL"
wire_api = "responses"
"""
DUCKFLOW = """
[llm.endpoints.mock]
base_url = "URL"
model = "mock"
"""
PROGRAMS = {
    "duckflow": (".config/duckflow/config.toml", DUCKFLOW, ["-m", "mock", "-p", "say hello"]),
    "pi": (".pi/agent/models.json", PI, ["--offline", "--model", "mock/mock", "-p", "say hello"]),
    "codex": (".codex/config.toml", CODEX, ["exec", "say hello"]),
}
"""The file that names the server to each program, and the arguments of a turn."""
USAGE: dict[str, int] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
DETAILS: dict[str, Any] = {
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}
MESSAGE: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "id": "m1",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
}
ANSWER: dict[str, Any] = {
    "id": "r1",
    "object": "response",
    "status": "completed",
    "output": [MESSAGE],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2} | DETAILS,
}


def _chunk(delta: dict[str, str], **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": more.pop("finish", None)}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": "mock", "choices": [choice]} | more


RESPONSES: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "r1"}},
    {"type": "response.output_item.added", "output_index": 0, "item": MESSAGE | {"content": []}},
    {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "content_index": 0, "delta": "Hello."},
    {"type": "response.output_item.done", "output_index": 0, "item": MESSAGE},
    {"type": "response.completed", "response": ANSWER},
]
COMPLETIONS = [
    _chunk({"role": "assistant", "content": ""}),
    _chunk({"content": "Hello."}),
    _chunk({}, finish="stop", usage=USAGE),
]


class _Instant(BaseHTTPRequestHandler):
    """Says "Hello." to every message, on the wire of the Responses API and on that of chat completions."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        body = json.dumps({"object": "list", "data": [{"id": "mock", "object": "model"}]}).encode()
        self._head("application/json", str(len(body)))
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self._head("text/event-stream")
        if "/responses" in self.path:
            lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in RESPONSES]
        else:
            lines = [*(f"data: {json.dumps(chunk)}\n\n" for chunk in COMPLETIONS), "data: [DONE]\n\n"]
        self.wfile.write("".join(lines).encode())
        self.close_connection = True

    def _head(self, kind: str, length: str = "") -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header(*(("content-length", length) if length else ("connection", "close")))
        self.end_headers()


@contextmanager
def _server() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Instant)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()


def _turn(command: list[str], environment: dict[str, str]) -> tuple[float, float, str]:
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "main.py").write_text("print('hi')\n", encoding="utf-8")
        for line in COMMIT:
            subprocess.run(line.split(), cwd=work, check=True)
        start, before = time.perf_counter(), _processor()
        done = subprocess.run(
            command, check=False, cwd=work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        clock, used = time.perf_counter() - start, _processor() - before
    if done.returncode or "Hello." not in done.stdout:
        raise SystemExit(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return 1000 * clock, 1000 * used, done.stderr


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _prepare(name: str, path: str, url: str, home: Path) -> list[str]:
    """Write the configuration that names the server, and return the command of a turn."""
    file, text, arguments = PROGRAMS[name.rstrip("0123456789")]
    place = home / file
    place.parent.mkdir(parents=True)
    place.write_text(text.replace("URL", url), encoding="utf-8")
    return [path, *arguments]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--count", action="store_true", help="count instructions, once each")
    parser.add_argument("programs", nargs="+", metavar="NAME=PATH")
    options = parser.parse_args()
    with _server() as url, tempfile.TemporaryDirectory() as top:
        turns: dict[str, tuple[list[str], dict[str, str]]] = {}
        for name, path in (program.split("=", 1) for program in options.programs):
            home = Path(top) / name
            environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
            turns[name] = _prepare(name, path, url, home), environment
        for command, environment in turns.values():
            _turn(command, environment)
        if options.count:
            _count(turns)
        else:
            _time(turns, options.rounds)


def _count(turns: dict[str, tuple[list[str], dict[str, str]]]) -> None:
    for name, (command, environment) in turns.items():
        counted = INSTRUCTIONS.findall(_turn([*VALGRIND, *command], environment)[2])
        print(f"{name:10} {int(counted[-1].replace(',', '')) / 1e6:7.0f} million instructions")


def _time(turns: dict[str, tuple[list[str], dict[str, str]]], rounds: int) -> None:
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, (command, environment) in turns.items():
            took[name].append(_turn(command, environment)[:2])
    for name, figures in took.items():
        clock, processor = (statistics.median(column) for column in zip(*figures, strict=True))
        best = min(clock for clock, _ in figures)
        print(f"{name:10} {clock:6.0f} ms   best {best:6.0f} ms   processor {processor:6.0f} ms")


if __name__ == "__main__":
    main()
