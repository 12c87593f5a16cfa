"""Plans for stories: what the model drafts, a slow operation to catch work in the middle, a user who types."""

import asyncio
from collections.abc import Callable
from typing import Any

from duckflow.events.work import JobEnded
from duckflow.llm.scripted import ScriptedReply
from duckflow.state.question import Answer, Question
from tests.journeys.story import Story, act, decide, respond

SNAKE: dict[str, Any] = {
    "name": "Snake game",
    "steps": [
        {"name": "Core loop", "description": "game.py", "success": "game.py exists", "depends_on": []},
        {"name": "Score", "description": "score.py", "success": "score.py exists", "depends_on": [1]},
    ],
    "risks": ["none"],
}
PROPOSE = decide(act("plan_tool.propose", goal="a snake game"), step="PLANNING", next_step="pending_user")


def write_tasks(*paths: str) -> dict[str, Any]:
    return {"tasks": [act("file_ops.write_file", f"write {path}", path=path) for path in paths]}


def report(summary: str = "All done.", *causes: str) -> dict[str, Any]:
    return {"summary": summary, "causes": list(causes), "next_action": "go on with the next step"}


def run_step(number: int, text: str = "It runs.") -> dict[str, Any]:
    """The Decision that plans a step's tasks and hands them to the background."""
    step = str(number)
    return decide(
        act("task_tool.generate_list", step_id=step),
        act("task_loop.run", step_id=step),
        respond(text),
        next_step="defer",
    )


def when(words: str, reply: Any, **other: Any) -> ScriptedReply:
    """A reply that waits for its request: what runs in the background has no place in the order of the conversation."""
    import json

    return ScriptedReply(reply if isinstance(reply, str) else json.dumps(reply), when=words, **other)


async def job_ended(story: Story, number: int = 1) -> JobEnded:
    await until(story, lambda: len(story.all(JobEnded)) >= number)
    await asyncio.sleep(0)
    return story.all(JobEnded)[number - 1]


async def until(story: Story, true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Looks again after every event."""
    happened = asyncio.Event()
    unsubscribe = story.session.subscribe(lambda _: happened.set())
    try:
        async with asyncio.timeout(seconds):
            while not true():
                await happened.wait()
                happened.clear()
    finally:
        unsubscribe()


class Typing(Story):
    """A person who types; questions stay open until then."""

    def answer(self, question: Question) -> Answer | None:
        return None

    async def asked(self, number: int = 1) -> Question:
        await until(self, lambda: len(self.questions) >= number)
        return self.questions[number - 1]
