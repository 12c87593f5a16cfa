"""Plays a plan of four steps on files of this repository with a scripted strong model. It counts the requests, their
characters, and the steps whose request holds their file as the conversation has read it.

usage: python -m benchmarks.four_steps"""

import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.journeys.plans import job_ended, report, when
from tests.journeys.story import Story, act, decide, respond
from tests.journeys.test_step_agents import of_step
from tests.journeys.test_steps import a_plan

FILES = ("src/duckflow/state/plan.py", "src/duckflow/state/agent.py", "src/duckflow/state/data.py", "AGENTS.md")
"""The files of the plan, one for each step."""


async def play(top: Path) -> dict[str, Any]:
    source = Path(__file__).parents[1]
    texts = [(source / name).read_text().strip() for name in FILES]
    reads = [decide(act("file_ops.read_file", path=name), next_step="continue") for name in FILES]
    search = decide(act("file_ops.grep", pattern="class ", path="src/duckflow/state"), next_step="continue")
    steps = [f"note in {name}" for name in FILES]
    edits = [act("shell.run", command=f"echo '# noted' >> {name} && tail -n 1 {name}") for name in FILES]
    plan = when("Make a plan for this goal", json.dumps(a_plan(*((step, "the note is there") for step in steps))))
    work = [of_step(step, edit) for step, edit in zip(steps, edits, strict=True)]
    looked = [*reads, search, decide(respond("I have seen them."))]
    propose = decide(act("plan_tool.propose", text="put a note in each", background=True), next_step="continue")
    story = Story(top, [*looked, propose, plan, *work, when("A background job", report())], native=True)
    shutil.copytree(source / "src/duckflow/state", story.folder / "src/duckflow/state")
    shutil.copy(source / "AGENTS.md", story.folder)
    for words in ("look at these files", "put a note in each", "yes"):
        await story.tell(words)
    job = await job_ended(story)
    await story.close()
    requests = story.model.requests
    prompts = [sum(len(message.whole) for message in request.messages) for request in requests]
    own = [text for text in map(story.prompt, range(len(requests))) if "Your step: " in text]
    return {
        "steps": len(FILES),
        "job": job.status,
        "requests": len(requests),
        "characters": sum(prompts),
        "requests of steps": len(own),
        "steps that need no second look": sum(file in text for file, text in zip(texts, own, strict=True)),
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(json.dumps(asyncio.run(play(Path(folder))), indent=2) + "\n")
