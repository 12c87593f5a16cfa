"""Shared by the tests of attempts: a real repository, a real Duckflow process with a scripted model, a link."""

import asyncio
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from duckflow.allowance import CallUsed, CallWanted
from duckflow.cli.fleet_workshop import make_workshop
from duckflow.fleet.attempt import carry_out
from duckflow.fleet.task import Answered, Asked, AttemptOrder, AttemptReport, FleetTask
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths
from tests.journeys.story import act, decide, respond

WAIT_SECONDS = 60.0


def write(path: str, text: str, *more: dict[str, Any]) -> dict[str, Any]:
    return decide(act("file_ops.write_file", path=path, content=text), *more, respond("Done."))


# Git makes the first repository; the others are written with the same files. A folder has no content.
MADE: dict[str, bytes | None] = {}


def _read_tree(folder: Path) -> dict[str, bytes | None]:
    paths = [path for path in sorted(folder.rglob("*")) if path.suffix != ".sample"]
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in paths}


class Repository:
    """A repository with a first commit on `main`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        if not MADE:
            self._make()
            MADE.update(_read_tree(folder))
        for name, content in MADE.items():
            (folder / name).mkdir(exist_ok=True) if content is None else (folder / name).write_bytes(content)

    def _make(self) -> None:
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A User")
        self.git("config", "user.email", "user@example.com")
        self.write("shop.py", "PRICE = 1\n")
        self.write(".gitignore", ".env\n*.log\n")
        self.commit("first")

    def git(self, *words: str) -> str:
        command = ["git", "-C", str(self.folder), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, "utf-8")

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD")

    def show(self, branch: str, name: str) -> str:
        return self.git("show", f"{branch}:{name}")

    def branches(self) -> list[str]:
        return self.git("branch", "--format=%(refname:short)").split("\n")

    def worktrees(self) -> int:
        """Returns the worktrees besides the main one."""
        return self.git("worktree", "list", "--porcelain").count("worktree ") - 1


class MemoryDesk:
    """A link that records everything, gives prepared answers, and leaves other questions open."""

    def __init__(self, *answers: Answered, seconds: float = 0.0) -> None:
        self._seconds = seconds
        self._answers = list(answers)
        self.asked: list[Asked] = []
        self.withdrawn: list[Asked] = []
        self.notes: list[str] = []
        self.states: list[str] = []
        self.cost_usd, self.tokens = 0.0, 0
        self.calls: list[CallWanted] = []
        self._awaited: dict[str, list[asyncio.Event]] = {}

    async def ask(self, asked: Asked) -> Answered:
        self.asked.append(asked)
        if not self._answers:
            await asyncio.Event().wait()
        await asyncio.sleep(self._seconds)
        return self._answers.pop(0).model_copy(update={"asked_id": asked.asked_id})

    def withdraw(self, asked: Asked) -> None:
        self.withdrawn.append(asked)

    def note(self, text: str) -> None:
        self.notes.append(text)

    async def allow(self, wanted: CallWanted) -> int:
        self.calls.append(wanted)
        return len(self.calls)

    async def used(self, call: int, used: CallUsed | None) -> None:
        self.cost_usd += used.dollars if used else 0.0
        self.tokens += used.tokens if used else 0

    def progress(self, doing: str) -> None:
        if self.states[-1:] != [doing]:
            self.states.append(doing)
            for reached in self._awaited.get(doing, ()):
                reached.set()

    async def until(self, state: str) -> None:
        if state not in self.states:
            self._awaited.setdefault(state, []).append(reached := asyncio.Event())
            await asyncio.wait_for(reached.wait(), WAIT_SECONDS)


class Yard:
    """One repository, and attempts at tasks in it."""

    def __init__(self, top: Path, monkeypatch: pytest.MonkeyPatch, language: str = "en") -> None:
        self.top = top
        for name, value in {
            "DUCKFLOW_HOME": top / "home",
            "HOME": top / "user",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }.items():
            monkeypatch.setenv(name, str(value))
        (top / "user").mkdir()
        self.repository = Repository(top / "shop")
        self.paths, self.words = Paths.of_user(), Words(language)
        self.workshop = make_workshop(self.words, self.paths)
        self._scripts = 0

    def model(self, *replies: Any) -> str:
        self._scripts += 1
        path = self.top / f"model-{self._scripts}.jsonl"
        path.write_text("\n".join(json.dumps({"json": r} if "actions" in r else r) for r in replies), "utf-8")
        return f"scripted:{path}"

    def task(self, replies: Sequence[Any], **fields: Any) -> FleetTask:
        given: dict[str, Any] = {
            "name": "raise",
            "repository": str(self.repository.folder),
            "prompt": "Raise the price.",
            "model": self.model(*replies),
            "base": self.repository.git("rev-parse", "HEAD"),
            "onto": "main",
        }
        return FleetTask.model_validate(given | fields)

    async def carry_out(self, task: FleetTask, link: MemoryDesk | None = None, **fields: Any) -> AttemptReport:
        order = AttemptOrder.model_validate({"fleet": "f1", "task": task, "number": 1} | fields)
        return await carry_out(self.workshop, order, link or MemoryDesk())
