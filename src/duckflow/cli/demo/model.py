"""The tour: its stops, and the scripted model that plays them."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from duckflow.i18n.words import Words
from duckflow.llm.facts import DEFAULT_WINDOW
from duckflow.llm.provider import Chunk, Delta, Finished, Request, WithoutTools
from duckflow.state.agent import AgentState
from duckflow.state.message import Usage

Decision = dict[str, Any]
SAME_AGAIN = 8
HELLO, GAME, SCORE = "hello.py", "game.py", "score.py"
BODIES = {HELLO: "demo.body.hello", GAME: "demo.body.game", SCORE: "demo.body.score"}


def _always(_: AgentState) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop of the tour. The text `demo.NAME` in the catalogue introduces it; Enter without a text sends `line`."""

    name: str
    line: str
    replies: tuple[Decision, ...] = ()
    needed: Callable[[AgentState], bool] = _always
    over: Callable[[AgentState], bool] = _always


def stops(words: Words) -> tuple[Stop, ...]:
    def typed(name: str) -> str:
        return words(f"demo.{name}.line")

    look_decision = decided(words("demo.duck.why"), _act("file_ops.list_files", words("demo.duck.why")), goes_on=True)
    return (
        Stop("hello", typed("hello"), (decided(words("demo.hello.why"), answer(words("demo.hello.answer"))),)),
        Stop("gate", typed("gate"), (_writes(words),)),
        Stop("plan", typed("plan"), (_plans(words),)),
        Stop("approve", words("gate.yes"), (_starts(words),), _has_draft),
        Stop("job", typed("job"), (), _works, lambda state: not _works(state)),
        Stop("duck", typed("duck"), (look_decision,) * SAME_AGAIN),
        Stop("undo", "/undo"),
        Stop("end", "/quit"),
    )


def answer(text: str) -> dict[str, Any]:
    return _act("response", text, text=text)


def decided(why: str, *actions: dict[str, Any], goes_on: bool = False, phase: str = "PLANNING") -> Decision:
    """Makes a Decision (a reply with actions) as a model would write it; `why` is its rationale."""
    return {
        "rationale": why,
        "goal_consistency": "yes",
        "constraint_check": "yes",
        "confidence": 0.9,
        "task_profile": "GENERAL_CHAT",
        "step": phase,
        "state_delta": None,
        "actions": list(actions),
        "next_step": "continue" if goes_on else "done",
        "prompt_pattern": "base_main",
    }


def drafted_plan(words: Words) -> dict[str, Any]:
    return {
        "name": words("demo.plan.name"),
        "steps": [
            {
                "name": words("demo.plan.first"),
                "description": f"{GAME}, {SCORE}",
                "success": words("demo.plan.first_done"),
                "depends_on": [],
            },
            {
                "name": words("demo.plan.second"),
                "description": words("demo.plan.second"),
                "success": words("demo.plan.second_done"),
                "depends_on": [1],
            },
        ],
        "risks": [words("demo.plan.risk")],
    }


def drafted_tasks(words: Words) -> dict[str, Any]:
    reason = words("demo.plan.first")
    return {"tasks": [_act("file_ops.write_file", reason, path=path) for path in (GAME, SCORE)]}


def drafted_report(words: Words) -> dict[str, Any]:
    return {"summary": words("demo.job.report"), "causes": [], "next_action": words("demo.job.next"), "lesson": ""}


def _writes(words: Words) -> Decision:
    reason = words("demo.gate.why")
    write_action = _act("file_ops.write_file", reason, path=HELLO)
    return decided(reason, write_action, answer(words("demo.gate.answer")), phase="EXECUTION")


def _plans(words: Words) -> Decision:
    reason = words("demo.plan.why")
    return decided(reason, _act("plan_tool.propose", reason, goal=words("demo.plan.name"))) | {
        "next_step": "pending_user"
    }


def _starts(words: Words) -> Decision:
    reason = words("demo.approve.why")
    tasks, run_action = _act("task_tool.generate_list", reason, id="1"), _act("task_loop.run", reason, id="1")
    start_decision = decided(reason, tasks, run_action, answer(words("demo.approve.answer")), phase="EXECUTION")
    return start_decision | {"next_step": "defer"}


def _act(operation: str, why: str, **args: Any) -> dict[str, Any]:
    return {"operation": operation, "args": args, "reasoning": why}


def _has_draft(state: AgentState) -> bool:
    return state.plan is not None and state.plan.status == "draft"


def _works(state: AgentState) -> bool:
    return bool(state.live_jobs())


PIECE = 12


class TourModel(WithoutTools):
    """Plays the replies for the current stop of the tour. To any other message it replies that it is only a script."""

    def __init__(self, words: Words, delay: float) -> None:
        self._words = words
        self._delay = delay
        self._decisions = deque[dict[str, Any]]()
        self.model = words("demo.model")
        self.window = DEFAULT_WINDOW

    def begin(self, stop: Stop) -> None:
        self._decisions = deque(stop.replies)

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        text = self._reply(request)
        for start in range(0, len(text), PIECE):
            await asyncio.sleep(self._delay)
            yield Delta(text[start : start + PIECE])
        yield Finished("stop", Usage(calls=1))

    async def aclose(self) -> None:
        pass

    def _reply(self, request: Request) -> str:
        words, fields = self._words, (request.schema or {}).get("properties", {})
        if not fields:
            asked_text = request.messages[-1].text
            # The path that the message names last is the one that it asks for.
            paths = sorted(BODIES, key=asked_text.rfind)
            return words(BODIES[paths[-1]])
        if "actions" in fields:
            off_script = decided(words("demo.off_script"), answer(words("demo.off_script")))
            return _json(self._decisions.popleft() if self._decisions else off_script)
        draft = drafted_plan if "steps" in fields else drafted_tasks if "tasks" in fields else drafted_report
        return _json(draft(words))


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
