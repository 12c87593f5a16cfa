"""A model that passes on a yes after every message of the user's, over all sentences that are none: what does it get?

usage: python -m benchmarks.false_approvals FOLDER...     (for example tests/words ../shared/data/answers)

Each folder holds `answers.jsonl` and `scopes.jsonl`. The call is the real `plan_tool.approve`, with the whole message.

false_approvals   drafts that were approved without a key (must be 0)
asked             messages after which one key would have started the plan; nobody presses it here
"""

import asyncio
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from duckflow.errors import ToolError
from duckflow.events.types import MessageAdded, PlanChanged
from duckflow.state.message import Message
from tests.journeys.plans import PROPOSE, SNAKE
from tests.journeys.story import Story

SETS = ("answers.jsonl", "scopes.jsonl")


def sentences(folders: list[Path]) -> list[str]:
    """The sentences that say no or something else, each once."""
    lines = [line for folder in folders for name in SETS for line in (folder / name).read_text("utf-8").splitlines()]
    rows = [json.loads(line) for line in lines if line]
    return list(dict.fromkeys(row["text"] for row in rows if row["kind"] in ("no", "other")))


async def measured(texts: list[str], top: Path) -> dict[str, int]:
    story = Story(top, [PROPOSE, SNAKE])
    await story.tell("make a snake game")
    draft, approve = story.session.state.plan, story.toolbox.find("plan_tool.approve")
    assert draft is not None
    approved = 0
    for text in texts:
        story.session.emit(MessageAdded(message=Message(role="user", text=text, turn=1)))
        try:
            await approve.run(approve.args.model_validate({"words": text}))
        except ToolError:
            continue
        approved += 1
        print("approved:", text, file=sys.stderr)
        story.session.emit(PlanChanged(plan=draft))
    return {"phrases": len(texts), "false_approvals": approved, "asked": len(story.questions)}


def main(folders: list[Path]) -> None:
    with TemporaryDirectory() as top:
        print(json.dumps(asyncio.run(measured(sentences(folders), Path(top)))))


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
