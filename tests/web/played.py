"""Fakes of fleets and models for the page's server, for tests that need no real fleet."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from duckflow.errors import ProviderRefused, UsageError
from duckflow.state.data import say
from duckflow.state.question import Choice, Question

STATES = ("done", "running", "merged", "waiting", "failed", "choose", "done", "running", "merged", "cancelled")
FLEET = "20260101-fleet"

ASKS = Question(
    kind="text", title=say("agent.asks", text="2 or 3?"), choices=(Choice(key="stop", label=say("agent.stop")),)
)


class PlayedFleet:
    """A fleet of so many tasks, of which some ask a question. `done` records what was done to it."""

    def __init__(self, count: int = 0, asks: int = 0, alive: bool = True, question: Question = ASKS) -> None:
        self._question = question
        self.done: list[tuple[Any, ...]] = []
        self.alive = alive
        self._asks = asks
        self.tasks = [_task(number, asks) for number in range(count)]

    async def to_pick(self) -> int:
        return sum(task["state"] == "choose" for task in self.tasks)

    async def inbox(self) -> Sequence[Mapping[str, Any]]:
        shown = self._question.model_dump(mode="json")
        return [
            {"asked_id": f"a{number}", "task": f"task-{number}", "attempt": 1, "question": shown, "same": ""}
            for number in range(self._asks)
        ]

    async def fleets(self) -> Sequence[Mapping[str, Any]]:
        if not self.tasks:
            return ()
        facts = {"fleet": FLEET, "started": 1767225600.0, "budget_usd": 20.0, "cost_usd": 7.42, "tokens": 1_240_000}
        return [{**facts, "ended": False, "tasks": self.tasks, "doing": "", "told": ""}]

    async def workers(self) -> Sequence[Mapping[str, Any]]:
        worker = {
            "worker": "ann-4711-a1b2c3",
            "place": "ann",
            "machine": "ann",
            "lives": True,
            "seen": 1767225600.0,
            "running": 4,
        }
        silent = {
            "worker": "bob-99-ffffff",
            "place": "bob",
            "machine": "bob",
            "lives": False,
            "seen": 1767225600.0,
            "running": 1,
        }
        return [worker, silent] if self.alive and self.tasks else []

    async def start(self, folder: str, tasks: str, flags: Mapping[str, Sequence[str]]) -> str:
        if "refuse" in tasks:
            raise UsageError("editor.no_folder", folder=folder)
        self.done.append(("start", folder, tasks, dict(flags)))
        self.tasks = [_task(number, 0) for number in range(len(tasks.split("\n")))]
        return FLEET

    async def work(self, fleet: str) -> None:
        self.done.append(("work", fleet))
        self.alive = True

    async def answer(self, asked_id: str, text: str, choice: str, for_all_same: bool) -> bool:
        self.done.append(("answer", asked_id, text, choice))
        was, self._asks = self._asks, 0
        return bool(was)

    async def task(self, fleet: str, task: str) -> Mapping[str, Any]:
        return {"attempts": [{"open": say("fleet.too_long", minutes=3).model_dump()}], "rows": [], "lines": []}

    async def diff(self, fleet: str, task: str, attempt: int) -> str:
        return f"{fleet} {task} {attempt}"

    async def pick(self, fleet: str, task: str, attempt: int) -> None:
        self.done.append(("pick", fleet, task, attempt))

    async def carry_out(self, what: str, fleet: str, task: str, attempt: int) -> None:
        self.done.append((what, fleet, task, attempt))
        if what == "cancel":
            self.tasks = [{**one, "state": "cancelled"} if one["name"] == task else one for one in self.tasks]


def _task(number: int, asks: int) -> dict[str, Any]:
    state = STATES[number % len(STATES)]
    name = f"task-{number}"
    attempt: dict[str, Any] = {
        "number": 1,
        "state": {"merged": "done", "choose": "done", "waiting": "queued"}.get(state, state),
        "doing": "working" if state == "running" else "",
        "goes": 1,
        "taken": 0.0 if state == "waiting" else time.time() - 400,
        "seconds": 60 + number if state in ("done", "merged", "failed", "choose", "cancelled") else 0,
        "cost_usd": 0.0 if state == "waiting" else 0.02 + number / 4000,
        "tokens": 5000,
        "open_questions": 1 if number < asks else 0,
    }
    if state in ("done", "merged", "choose"):
        attempt |= {
            "files": 2,
            "added": 14 + number,
            "removed": 3,
            "fit": True,
            "checks": [{"command": "pytest", "code": 0}],
        }
    prompt = f"Give module {number} type hints and a test."
    facts = {"name": name, "prompt": prompt, "repository": "/home/ann/shop", "onto": "main", "merged": ""}
    picked = 1 if state in ("done", "merged", "choose") else None
    return {**facts, "state": state, "picked": picked, "attempts": [attempt], "doing": "", "told": ""}


class PlayedModels:
    """Models that take only the key `sk-right`. `kept` records what was saved."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str, str, bool]] = []

    async def models(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"name": "local", "window": 0, "price": None},
            {"name": "anthropic:claude-sonnet-4-5", "window": 200_000, "price": [3, 15]},
            {"name": "openai:gpt-5-mini", "window": 400_000, "price": [0.25, 2]},
        ]

    async def endpoints(self) -> Sequence[Mapping[str, Any]]:
        kept = {name for name, *_ in self.kept}
        rows = (
            ("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
            ("anthropic", "https://api.anthropic.com", ""),
        )
        return [
            {"name": name, "where": where, "key": key or ("keyring" if name in kept else ""), "fixed": bool(key)}
            for name, where, key in rows
        ]

    async def add(self, name: str, address: str, secret: str, model: str, default: bool) -> Mapping[str, Any]:
        if secret != "sk-right":
            raise ProviderRefused("model.key_refused_alone", endpoint=name, source="typed", variable="X", detail="")
        self.kept.append((name, address, model, default))
        return {"model": f"{name}:m", "told": [say("own.in_keyring").model_dump()]}

    async def lacks_default(self) -> bool:
        return not self.kept

    def hear_typed(self, question: Question, text: str) -> None:
        """Hears nothing: these models have no sessions."""

    async def check(self, name: str) -> Mapping[str, Any]:
        if name != "openai:gpt-5-mini":
            raise UsageError("model.bare_name", name=name, near="–", known="openai")
        return {"told": [say("own.answers", model=name, seconds=0.4).model_dump()]}
