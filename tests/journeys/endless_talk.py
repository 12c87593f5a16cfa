"""A child process that talks without end and says after each event that it was applied; it is there to be killed."""

import asyncio
import sys
from pathlib import Path

from duckflow.events.types import Event
from tests.journeys.story import Story, act, decide, respond


async def talk(top: Path) -> None:
    turn = [
        decide(act("file_ops.write_file", path="a.txt", content="x\n"), act("file_ops.delete_file", path="a.txt")),
        decide(respond("ok"), step="PLANNING"),
    ]
    story = Story(top, turn * 5000)

    def report(event: Event) -> None:
        if event.journaled:
            sys.stdout.write(f"{story.session.state.event_count}\n")
            sys.stdout.flush()

    story.session.subscribe(report)
    while True:
        await story.tell("again")


if __name__ == "__main__":
    asyncio.run(talk(Path(sys.argv[1])))
