"""Children that talk without end and say after each event that it was applied; they are there to be killed.

Reads folders, one a line, and forks a child for each, which writes its process id and then the number of every event
into the pipe `reported` in its folder."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TextIO

from duckflow.events.types import Event
from tests.journeys.story import Story, act, decide, respond


async def talk(top: Path, reported: TextIO) -> None:
    turn = [
        decide(act("file_ops.write_file", path="a.txt", content="x\n"), act("file_ops.delete_file", path="a.txt")),
        decide(respond("ok"), step="PLANNING"),
    ]
    story = Story(top, turn * 5000)

    def report(event: Event) -> None:
        if event.journaled:
            print(story.session.state.event_count, file=reported, flush=True)

    story.session.subscribe(report)
    while True:
        await story.tell("again")


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            folder = Path(line.rstrip("\n"))
            with (folder / "reported").open("w") as reported:
                print(os.getpid(), file=reported, flush=True)
                asyncio.run(talk(folder, reported))


if __name__ == "__main__":
    main()
