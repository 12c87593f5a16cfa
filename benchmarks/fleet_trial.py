"""The subjects of `benchmarks.fleet`: stand-ins, or the whole program with a scripted model in real repositories."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from duckflow.allowance import ADDRESS
from duckflow.fleet.database_engine import Engine
from duckflow.fleet.engine import AttemptState, FleetOrder, Limit
from duckflow.fleet.host import MARK
from duckflow.fleet.task import FleetTask
from tests.fleet.yard import Repository, write
from tests.journeys.story import act, decide, respond

PROGRAM = (sys.executable, "-P", "-m", "duckflow")
MODELS = "scripted:*"


class Conditions(NamedTuple):
    """The number of tasks and workers, and how bad the conditions get."""

    tasks: int = 200
    attempts: int = 2
    workers: int = 3
    at_once: int = 4
    limit: int = 8
    """The most attempts at once over all workers; 0 means as many as they take."""
    kills: int = 20
    places: int = 1
    seed: int = 22
    seconds: float = 1.0
    """The seconds that a stand-in takes."""
    lease: float = 8.0
    idle: float = 0.0
    """The seconds for which workers have nothing to do, on Postgres; with it, only this is measured."""
    together: int = 0
    """The workers that start at once on an empty Postgres, twenty times; with it, only this is measured."""
    postgres: bool = False
    restart: bool = False
    warm: bool = False
    """Workers are up before the time is taken."""
    real: bool = False
    """The whole program, with a scripted model."""
    remote: bool = False
    """The whole program with a model behind HTTP that notes when it was called; each machine has clones of shared bare
    repositories, and what is done is delivered there."""
    repositories: int = 5
    requests: int = 0
    tokens: int = 0
    """The tokens that the model may get in a minute, over all workers; 0 means no limit."""


class Call(NamedTuple):
    """The command and the environment that start a worker."""

    command: Sequence[str]
    environment: Mapping[str, str]


class Trial(Protocol):
    """One kind of attempts."""

    def call(self, place: str) -> Call: ...

    def start(self, engine: Engine, places: Sequence[str]) -> str: ...

    def judge(self, fleet: str, attempts: Sequence[AttemptState]) -> dict[str, object]:
        """Returns what can be said in the end, besides what the engine says."""
        ...


class StandIns:
    """Processes that hold a lock while they run."""

    def __init__(self, options: Conditions, address: str, folder: Path) -> None:
        self.options = options
        self._address = address
        self.ledger = folder / "ledger"

    def call(self, place: str) -> Call:
        options = self.options
        figures = (options.at_once, options.lease, self.ledger, options.seconds)
        program = (sys.executable, "-m", "tests.fleet.stand_in", self._address, place)
        return Call((*program, *map(str, figures)), os.environ)

    def start(self, engine: Engine, places: Sequence[str]) -> str:
        given = {"repository": "/r", "prompt": "p", "model": "scripted:x", "pick": "best"}
        numbers = range(self.options.tasks)
        tasks = [{"name": f"task-{number}", "attempts": self.options.attempts, **given} for number in numbers]
        limits = [Limit(model=MODELS, at_once=self.options.limit)] if self.options.limit else []
        return engine.start(FleetOrder([FleetTask.model_validate(task) for task in tasks], 0.0, places, limits))

    def judge(self, fleet: str, attempts: Sequence[AttemptState]) -> dict[str, object]:
        words = Counter(line.split()[0] for line in self.ledger.read_text().splitlines())
        return {"begun": words["begin"], "ended": words["end"], "two at once": words["TWICE"]}


class WholeProgram:
    """`duckflow fleet` as people use it: machines with homes and clones of their own, a script for each task."""

    models = MODELS

    def __init__(self, options: Conditions, address: str, folder: Path) -> None:
        self.options = options
        self._address = address
        self.folder = folder
        self.places: Sequence[str] = ()

    def call(self, place: str) -> Call:
        options = self.options
        figures = ("--at-once", str(options.at_once), "--lease", str(options.lease))
        return Call(self._command(place, "worker", *figures), self.environment(place))

    def start(self, engine: Engine, places: Sequence[str]) -> str:
        self.places = places
        tasks = self.write_tasks()
        named = [word for place in places for word in ("--places", place)]
        figures = (self.options.limit, self.options.requests, self.options.tokens)
        limit = ("--limit", f"{self.models}={'/'.join(str(figure or '') for figure in figures)}")
        return str(self.do(places[0], "run", str(tasks), "--no-work", "--json", *named, *limit)["fleet"])

    def prepare(self, places: Sequence[str]) -> None:
        first = self.folder / places[0] / "repositories"
        made = [Repository(first / f"shop-{number}") for number in range(self.options.repositories)]
        for place in places[1:]:
            for repository in made:
                clone = self.folder / place / "repositories" / repository.folder.name
                clone.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["git", "clone", "-q", str(repository.folder), str(clone)], check=True)
                git_in(clone, "config", "user.name", "A User")
                git_in(clone, "config", "user.email", "user@example.com")

    def judge(self, fleet: str, attempts: Sequence[AttemptState]) -> dict[str, object]:
        # Here one machine can reach the repositories of the other.
        told = self.do(self.places[0], "merge", fleet, "--pick", "best", "--json")
        outcomes = Counter(str(each["outcome"]) for each in told)
        good = 0
        for number in range(self.options.tasks):
            name = f"notes/{number}.txt"
            found = [
                path
                for path in self.folder.glob(f"*/repositories/shop-{number % self.options.repositories}/{name}")
                if path.read_text() == f"{number}\n"
            ]
            good += len(found) == 1
        branches = [
            branch
            for path in self.folder.glob("*/repositories/*")
            for branch in git_in(path, "branch", "--list", "duckflow/*").split("\n")
            if branch
        ]
        left = sum(git_in(path, "worktree", "list").count("\n") for path in self.folder.glob("*/repositories/*"))
        seconds = sorted(each.report.seconds for each in attempts if each.report and each.goes == 1)
        return {
            "merged": outcomes,
            "tasks whose check holds on the user's branch": good,
            "branches": len(branches),
            "worktrees left": left,
            "seconds of an attempt, median": seconds[len(seconds) // 2] if seconds else None,
            "why not done": Counter(each.report.open.key for each in attempts if each.report and each.report.open),
        }

    def write_tasks(self) -> Path:
        (self.folder / "scripts").mkdir()
        review = decide(respond(json.dumps({"rating": 9, "findings": []})))
        lines = [f"attempts = {self.options.attempts}", 'pick = "best"']
        for number in range(self.options.tasks):
            script = self.folder / "scripts" / f"{number}.jsonl"
            replies = [
                {"json": decide(act("file_ops.read_file", path=f"notes/{number}.txt")), "when": "was cut off"},
                {"json": write(f"notes/{number}.txt", f"{number}\n")},
                {"json": review, "when": "Read only"},
            ]
            script.write_text("\n".join(map(json.dumps, replies)))
            shop = f"shop-{number % self.options.repositories}"
            lines += ["[[task]]", f'name = "task-{number}"', f'repository = "{shop}"', f'model = "scripted:{script}"']
            lines += [f'prompt = "Note {number}."', f'checks = ["grep -qx {number} notes/{number}.txt"]']
        path = self.folder / "tasks.toml"
        path.write_text("\n".join(lines))
        return path

    def _command(self, place: str, what: str, *words: str) -> tuple[str, ...]:
        given = ("--database", self._address, "--place", place)
        below = str(self.folder / place / "repositories")
        return (*PROGRAM, "fleet", what, *words, *given, "--repositories", below)

    def environment(self, place: str) -> dict[str, str]:
        home = str(self.folder / place / "home")
        return {**os.environ, "DUCKFLOW_HOME": home, "HOME": home, "GIT_CONFIG_GLOBAL": "/dev/null"}

    def do(self, place: str, what: str, *words: str) -> Any:
        (self.folder / place / "home").mkdir(parents=True, exist_ok=True)
        command = self._command(place, what, *words)
        done = subprocess.run(command, env=self.environment(place), capture_output=True, text=True, check=False)
        if not done.stdout.strip():
            raise SystemExit(f"{what}: {done.stderr}")
        return json.loads(done.stdout.strip().split("\n")[-1])


class Look(NamedTuple):
    """What the processes of all attempts say at one moment."""

    sizes: Sequence[int]
    """How much memory each attempt takes with all its processes, in KB; shared pages are counted once."""
    twice: int
    """How many attempts have processes of two runs at once: each run has an address of its own for its calls."""


def look_at_attempts() -> Look:
    seen = _read_marked(path for path in Path("/proc").iterdir() if path.name.isdigit())
    # A look at all processes takes a while. Those that are still there in a second look were there at the same time.
    again = _read_marked(seen)
    addresses: dict[bytes, set[bytes]] = {}
    sizes: Counter[bytes] = Counter()
    for path, environment in again.items():
        attempt = environment[MARK.encode()]
        addresses.setdefault(attempt, set()).update({environment.get(ADDRESS.encode(), b"")} - {b""})
        with suppress(OSError, IndexError):
            sizes[attempt] += int((path / "smaps_rollup").read_text().split("Pss:")[1].split()[0])
    return Look(list(sizes.values()), sum(len(known) > 1 for known in addresses.values()))


def _read_marked(paths: Iterable[Path]) -> dict[Path, dict[bytes, bytes]]:
    """Returns the environments of the processes that belong to attempts."""
    environments: dict[Path, dict[bytes, bytes]] = {}
    for path in paths:
        with suppress(OSError):
            words = (path / "environ").read_bytes().split(b"\0")
            environment = dict(word.split(b"=", 1) for word in words if b"=" in word)
            if MARK.encode() in environment:
                environments[path] = environment
    return environments


def git_in(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout.strip()
