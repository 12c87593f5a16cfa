"""A session of 5000 turns, scripted model: does the budget hold, is what must stay there, what does a turn cost?

usage: python -m benchmarks.long_session [TURNS]
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.real_tokens import real_tokens
from duckflow.agent.session import reopen
from duckflow.llm.provider import Request
from duckflow.llm.scripted import WINDOW
from duckflow.memory.settings import MemorySettings
from duckflow.memory.tokens import history_budget
from tests.journeys.story import Story, act, decide, respond

FIRST = "Port the parser of this project to the new grammar, step by step."
CONSTRAINT = "no new dependencies"
RULES = "Always use tabs."
BUDGET = history_budget(MemorySettings(), WINDOW)


def reply(number: int) -> list[dict[str, Any]]:
    reading = decide(act("file_ops.read_file", path="parser.py"), step="PLANNING", next_step="continue")
    return [reading, decide(respond(f"Step {number} is done: rule_{number} moved."), step="PLANNING")]


class Watch:
    """Looks at every prompt and lets it go."""

    def __init__(self) -> None:
        self.largest = 0
        self.missing = 0
        self.prompts = 0

    def look(self, requests: list[Request]) -> None:
        for request in requests:
            self.prompts += 1
            text = "\n".join(message.text for message in request.messages)
            self.missing += not (FIRST in text and RULES in text and (self.prompts < 3 or CONSTRAINT in text))
            if self.prompts % 50 == 0:
                stable = real_tokens(request.messages[0].text)
                self.largest = max(self.largest, real_tokens(text) - stable)
        requests.clear()


async def measure(turns: int) -> dict[str, Any]:
    watch = Watch()
    with tempfile.TemporaryDirectory() as top:
        work = Path(top) / "work"
        work.mkdir()
        (work / "AGENTS.md").write_text(RULES, encoding="utf-8")
        (work / "parser.py").write_text("".join(f"def rule_{n}(self):\n    return {n}\n\n" for n in range(60)), "utf-8")
        first = decide(respond("ok"), step="PLANNING", state_delta={"constraints": [CONSTRAINT]})
        script = [first, *(line for number in range(turns) for line in reply(number))]
        story = Story(Path(top), script)
        story.session.subscribe(lambda event: story.events.clear())
        await story.tell(FIRST)
        costs: list[float] = []
        for number in range(turns):
            start = time.process_time()
            question = (
                f"次は規則 {number} です。" if number % 3 == 0 else f"Now go on with rule number {number}, please."
            )
            await story.tell(question)
            costs.append(time.process_time() - start)
            watch.look(story.model.requests)
        story.session.close()
        start = time.process_time()
        reopen(Path(top) / "home" / "s.db").session.close()
        replay = time.process_time() - start
    tenth = max(1, turns // 10)
    return {
        "turns": turns,
        "prompts": watch.prompts,
        "largest_history_and_state_tokens": watch.largest,
        "budget": BUDGET,
        "prompts_without_a_pin": watch.missing,
        "turn_ms_first_tenth": round(statistics.median(costs[:tenth]) * 1e3, 2),
        "turn_ms_last_tenth": round(statistics.median(costs[-tenth:]) * 1e3, 2),
        "replay_s": round(replay, 2),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 5000))))
