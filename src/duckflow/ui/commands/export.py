"""`/export`: the session as a document."""

import asyncio

from duckflow.errors import DuckflowError
from duckflow.ui.commands.command import Command
from duckflow.ui.counter import Counter
from duckflow.ui.export.document import Format, chosen_format, rendered, save, target
from duckflow.ui.export.transcript import Transcript

AT_ONCE = 200


async def export(counter: Counter, line: str) -> str:
    """`/export [md|html] [FILE]`"""
    first, _, rest = line.partition(" ")
    wanted, file = (first, rest.strip()) if first in tuple(Format) else ("", line)
    words, state = counter.words, counter.desk.state
    form = chosen_format(wanted, file)
    try:
        path = target(file, state.session_id, form)
        transcript = Transcript()
        for number, event in enumerate(counter.desk.events()):
            transcript.hear(event)
            if number % AT_ONCE == 0:
                # A long session takes a while to read; the chat stays live meanwhile.
                await asyncio.sleep(0)
        save(path, await asyncio.to_thread(rendered, transcript, words, form))
    except DuckflowError as problem:
        return words.error(problem)
    return words("export.written", path=str(path.resolve()))


GROUP = (Command("export", export, tuple(Format)),)
