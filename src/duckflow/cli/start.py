"""`duckflow`: shows the input line immediately, and loads everything else while the user types."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from duckflow.cli.parser import Options
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths

if TYPE_CHECKING:
    from duckflow.ui.console.line import Line


Behind = Callable[["Line", "asyncio.Task[None]", Options, Words, Paths], Awaitable[int]]


def start(options: Options, words: Words, paths: Paths) -> int:
    """Starts a chat if there is a terminal and the user has nothing to choose first; otherwise calls `talk`."""
    chooses_session = options.resume == ""
    if options.prompt is None and not chooses_session and sys.stdin.isatty() and sys.stdout.isatty():
        return asyncio.run(_prompt_first(options, words, paths))
    from duckflow.cli.talk import talk

    return talk(options, words, paths)


async def _prompt_first(options: Options, words: Words, paths: Paths) -> int:
    from duckflow.cli.signals import ended_by_signals
    from duckflow.ui.console.plain_line import open_line

    line = open_line(paths.history, words)
    with line.printing(), ended_by_signals(line.leave) as way_out:
        type_task, draw_task = asyncio.create_task(line.run()), asyncio.create_task(line.shown())
        try:
            await asyncio.wait({type_task, draw_task}, return_when=asyncio.FIRST_COMPLETED)
            # The loading runs in a thread, so that text that is typed meanwhile is shown at once.
            run_behind = await asyncio.to_thread(_load)
            return way_out.exit_code(
                0 if type_task.done() else await run_behind(line, type_task, options, words, paths)
            )
        finally:
            draw_task.cancel()
            line.leave()
            await type_task


def _load() -> Behind:
    import duckflow.ui.console.chat
    from duckflow.cli.talk import behind

    assert duckflow.ui.console.chat
    return behind
