"""Commands made at random and judged; those judged safe are run for real: none may change, run or send anything.

usage: python -m benchmarks.judge_fuzz [COUNT] [SEED] [SANDBOX]     (default 20000, 1 and the best there is)
0 changed, read, tried, heard is right.

They run in a throw-away folder in the project's own sandbox, with everything in it writable and with network, so that
what a judge overlooks is seen and not merely stopped: files whose content, rights and times are compared, programs that
leave a mark when a pager, an editor, an alias or a textconv starts them, and a socket that listens."""

import hashlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.judge_grammar import CommandMaker
from duckflow.programs.launch import Launch
from duckflow.safety.commands.judge import judge_command
from duckflow.safety.commands.paths import CommandFacts
from duckflow.safety.environment import GIT_ALONE
from duckflow.safety.repository import git_runs_programs
from duckflow.safety.sandbox.choose import choose
from duckflow.safety.sandbox.sandbox import Sandbox
from duckflow.safety.sandbox.settings import SandboxSettings

BATCH = 200
OUTSIDE_MARK, SECRET_MARK = MARKS = ("OUTSIDE-QUACK", "SECRET-QUACK")
SEARCHES = re.compile(r"\b(?:grep|diff)\b.* (?:-\w*[rR]|--(?:dereference-)?recursive)|\brg\b")
"""Whole folders, with secrets in them: that is not for the judge to see, but for the filter on what a tool returns."""
REFUSED = ("Permission denied", "Read-only file system", "Operation not permitted")
FILES = {
    "a.txt": "b a 1\na b 2\n",
    "b.txt": "x\n",
    "sub/c.txt": "c\n",
    "data.json": '{"a": 1}\n',
    "a.yml": "a: 1\n",
    "names": "a.txt\nb.txt\n",
    "ls": "#!/bin/sh\n: > ran-local\n",
    "script.sed": "w new-by-sed\n",
    ".gitignore": ".env\n",
}
RUNNER = """
import json, os, subprocess, sys
orders = json.load(open(sys.argv[1]))
os.chdir(orders["folder"])
found = []
for number, command in enumerate(orders["commands"]):
    try:
        done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, timeout=2)
    except subprocess.TimeoutExpired:
        continue
    out, errors = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    told = [mark for mark in orders["marks"] if mark in out] + [mark for mark in orders["refused"] if mark in errors]
    if told:
        found.append([number, told])
json.dump(found, open(sys.argv[2], "w"))
"""


@dataclass
class Tally:
    """The counts of a run."""

    made: int = 0
    safe: int = 0
    changed: dict[str, None] = field(default_factory=dict[str, None])
    leaked: dict[str, None] = field(default_factory=dict[str, None])
    refused: dict[str, None] = field(default_factory=dict[str, None])
    searched: dict[str, None] = field(default_factory=dict[str, None])
    heard: int = 0
    sandbox: str = ""

    def shown(self) -> dict[str, Any]:
        return {
            "made": self.made,
            "judged_safe_and_run": self.safe,
            "changed_or_ran": len(self.changed),
            "read_outside_or_secret": len(self.leaked),
            "tried_what_the_sandbox_refused": len(self.refused),
            "heard": self.heard,
            "searched_folders_with_secrets": len(self.searched),
            "sandbox": self.sandbox,
        }


class Pond:
    """The throw-away folder: a clean repository, a hostile one, a home, and something outside of both."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.works = (top / "clean", top / "hostile")
        mark = top / "mark.sh"
        mark.write_text(f"#!/bin/sh\n: > {top}/ran-$$\ncat\n")
        mark.chmod(0o755)
        programs = dict.fromkeys(("PAGER", "GIT_PAGER", "MANPAGER", "EDITOR", "GIT_EDITOR", "BROWSER"), str(mark))
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(top / "home"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LANG": "C.UTF-8",
            **GIT_ALONE,
            **programs,
        }
        for folder in (top / "home", top / "outside"):
            folder.mkdir()
            (folder / "file.txt").write_text(f"{OUTSIDE_MARK}\n")
        for work in self.works:
            self._furnish(work)
        settings = {"core.pager": mark, "core.fsmonitor": mark, "diff.external": mark, "diff.x.textconv": mark}
        for name, value in (settings | {"alias.quack": f"!{mark}", "pager.log": mark}).items():
            self._git(self.works[1], "config", name, str(value))

    def _furnish(self, work: Path) -> None:
        (work / "sub").mkdir(parents=True)
        for name, text in FILES.items():
            (work / name).write_text(text)
        (work / "ls").chmod(0o755)
        for step in (("init", "-q"), ("add", "."), ("commit", "-qm", "pond")):
            self._git(work, *step)
        (work / ".env").write_text(f"KEY={SECRET_MARK}\n")
        (work / "a.txt").write_text("b a 1\na b 3\n")

    def _git(self, work: Path, *words: str) -> None:
        settings = ("-c", "user.name=duck", "-c", "user.email=duck@example.com", "-c", "core.fsmonitor=false")
        subprocess.run(["git", *settings, *words], cwd=work, env=self.environment, check=True, capture_output=True)

    def facts(self, work: Path) -> CommandFacts:
        return CommandFacts(str(work), str(self.top / "home"), git_runs_programs(work))

    def look(self) -> dict[str, tuple[Any, ...]]:
        """Returns everything in the pond: kind, rights, time of change, content."""
        return {str(path): _look(path) for path in sorted(self.top.rglob("*")) if path.name != "index"}


def _look(path: Path) -> tuple[Any, ...]:
    status = path.lstat()
    digest = hashlib.sha1(path.read_bytes()).hexdigest() if path.is_file() else ""
    time = 0 if path.name == ".git" else status.st_mtime_ns
    return status.st_mode, status.st_uid, status.st_size if digest else 0, time, digest


class Ear:
    """A socket that listens on this machine."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.heard = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            connection.close()
            self.heard += 1


def fuzz(count: int, seed: int, top: Path, kind: str = "auto") -> Tally:
    """Makes `count` commands; every second batch works in the hostile repository."""
    ear, tally, pond = Ear(), Tally(), Pond(new_folder(top / "pond"))
    facts = [pond.facts(work) for work in pond.works]
    sandbox = choose(SandboxSettings.model_validate({"kind": kind}), top)
    tally.sandbox = sandbox.kind
    maker = CommandMaker(random.Random(seed), ear.port, str(pond.top))
    safe = list[str](), list[str]()
    for number in range(count):
        command = maker.command()
        tally.made += 1
        which = number // BATCH % 2
        if judge_command(command, facts[which]).verdict == "safe":
            safe[which].append(command)
    tally.safe = sum(map(len, safe))
    for which, commands in enumerate(safe):
        for batch in _batches(commands):
            run_batch(batch, pond, which, sandbox, tally)
    tally.heard = ear.heard
    sandbox.close()
    return tally


def run_batch(batch: list[str], pond: Pond, which: int, sandbox: Sandbox, tally: Tally) -> None:
    """Runs the batch at once; when something has changed, its halves in the same pond, until the command is found."""
    before = pond.look()
    orders, results = pond.top.parent / "orders.json", pond.top.parent / "results.json"
    given = {"folder": str(pond.works[which]), "commands": batch, "marks": MARKS, "refused": REFUSED}
    orders.write_text(json.dumps(given))
    python = str(Path(sys.executable).resolve())
    argv = (python, "-I", "-c", RUNNER, str(orders), str(results))
    launch = sandbox.confine(Launch(argv, pond.top.parent, pond.environment), network=True)
    subprocess.run(launch.argv, cwd=launch.folder, env=launch.environment, pass_fds=launch.fds, check=True)
    launch.close()
    found: list[tuple[int, list[str]]] = json.loads(results.read_text())
    for number, told in found:
        command = batch[number]
        if told == [SECRET_MARK] and SEARCHES.search(command):
            tally.searched[command] = None
        else:
            (tally.leaked if set(told) & set(MARKS) else tally.refused)[command] = None
    if pond.look() == before:
        return
    if len(batch) == 1:
        tally.changed[batch[0]] = None
        return
    middle = len(batch) // 2
    for half in (batch[:middle], batch[middle:]):
        run_batch(half, Pond(new_folder(pond.top.parent / f"pond-{uuid.uuid4()}")), which, sandbox, tally)


def _batches(commands: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(commands), BATCH):
        yield commands[start : start + BATCH]


def new_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


if __name__ == "__main__":
    os.nice(10)
    count, seed, kind = (*sys.argv[1:], *("20000", "1", "auto")[len(sys.argv) - 1 :])
    with tempfile.TemporaryDirectory() as scratch:
        told = fuzz(int(count), int(seed), Path(scratch).resolve(), kind)
    for kind in ("changed", "leaked", "refused"):
        for command in list(getattr(told, kind))[:20]:
            print(f"{kind}: {command!r}")
    print(json.dumps(told.shown()))
