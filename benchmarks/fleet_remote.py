"""Machines with clones of shared bare repositories, and a model behind HTTP that notes when it was called."""

import json
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from benchmarks.fleet_trial import WholeProgram, git_in
from duckflow.fleet.engine import AttemptState
from tests.fleet.yard import Repository, write
from tests.journeys.story import act, decide

MINUTE = 60.0
CONFIG = """[llm]
tools = "json"
[llm.endpoints.bench]
base_url = "http://127.0.0.1:{port}/v1"
"""


class Seen(NamedTuple):
    """A call as the model has seen it."""

    at: float
    tokens: int


class InstantModel(ThreadingHTTPServer):
    """Answers at once with the note that is asked for, and records how often it was called."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.seen: list[Seen] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def most_in_a_minute(self) -> tuple[int, int]:
        """Returns the requests and tokens of the sixty seconds that had most of them."""
        seen = sorted(self.seen)
        windows = [[call for call in seen if first.at <= call.at < first.at + MINUTE] for first in seen]
        return max(map(len, windows), default=0), max((sum(c.tokens for c in calls) for calls in windows), default=0)


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"data": [{"id": "instant"}]}))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        number = re.findall(r"Note (\d+)\.", body)[0]
        cut_off = "was cut off" in body and '"role":"assistant"' not in body.replace(" ", "")
        name = f"notes/{number}.txt"
        reply = decide(act("file_ops.read_file", path=name)) if cut_off else write(name, f"{number}\n")
        text = json.dumps(reply)
        prompt, completion = len(body) // 4, len(text) // 4
        assert isinstance(self.server, InstantModel)
        self.server.seen.append(Seen(time.time(), prompt + completion))
        usage = {"prompt_tokens": prompt, "completion_tokens": completion}
        chunks: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"content": text}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
        ]
        self._send(
            "text/event-stream", "".join(f"data: {json.dumps(each)}\n\n" for each in chunks) + "data: [DONE]\n\n"
        )

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        # A process that was killed does not hear the answer.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.end_headers()
            self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


class SharedRemotes(WholeProgram):
    """Every machine has clones of its own of the same bare repositories; each delivers what it has done."""

    models = "bench:*"

    def prepare(self, places: Sequence[str]) -> None:
        self._model = InstantModel()
        for number in range(self.options.repositories):
            first = Repository(self.folder / "made" / f"shop-{number}")
            bare = self.folder / "remotes" / f"shop-{number}.git"
            subprocess.run(["git", "clone", "-q", "--bare", str(first.folder), str(bare)], check=True)
            for place in places:
                clone = self.folder / place / "repositories" / f"shop-{number}"
                clone.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["git", "clone", "-q", str(bare), str(clone)], check=True)
        for place in places:
            config = self.folder / place / "home" / "config" / "config.toml"
            config.parent.mkdir(parents=True)
            config.write_text(CONFIG.format(port=self._model.server_port))

    def write_tasks(self) -> Any:
        lines = ['deliver = "push"', f"attempts = {self.options.attempts}", 'pick = "best"', 'model = "bench:instant"']
        for number in range(self.options.tasks):
            shop = f"shop-{number % self.options.repositories}"
            lines += ["[[task]]", f'name = "task-{number}"', f'repository = "{shop}"', f'prompt = "Note {number}."']
            lines += [f'checks = ["grep -qx {number} notes/{number}.txt"]']
        path = self.folder / "tasks.toml"
        path.write_text("\n".join(lines))
        return path

    def judge(self, fleet: str, attempts: Sequence[AttemptState]) -> dict[str, object]:
        told = [each for place in self.places for each in self.do(place, "deliver", fleet, "--yes", "--json")]
        good, branches = 0, Counter[str]()
        for bare in (self.folder / "remotes").iterdir():
            for branch in git_in(bare, "branch", "--format=%(refname:short)", "--list", "duckflow/*").split():
                number = branch.removeprefix("duckflow/task-").partition("-")[0]
                branches[number] += 1
                good += git_in(bare, "show", f"{branch}:notes/{number}.txt") == number
        requests, tokens = self._model.most_in_a_minute()
        return {
            "delivered": sum(bool(each["where"]) for each in told),
            "branches on the remotes, right ones, tasks twice": (
                branches.total(),
                good,
                sum(count > 1 for count in branches.values()),
            ),
            "calls, most in a minute, most tokens in a minute": (len(self._model.seen), requests, tokens),
            "worktrees left": sum(
                git_in(path, "worktree", "list").count("\n") for path in self.folder.glob("*/repositories/*")
            ),
            "why not done": Counter(each.report.open.key for each in attempts if each.report and each.report.open),
        }
