"""What runs beside the turns: slash commands and the user's own commands."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from duckflow.errors import DuckflowError
from duckflow.i18n.words import Words
from duckflow.state.phrase import Phrase
from duckflow.ui.console.glyphs import Glyphs
from duckflow.ui.console.waiting import Wait

log = logging.getLogger(__name__)


class Errands:
    """Each has a spinner of its own until it is done."""

    def __init__(self, words: Words, glyphs: Glyphs, complain: Callable[[str], None]) -> None:
        self._words = words
        self._glyphs = glyphs
        self._complain = complain
        self._running: dict[asyncio.Task[None], Wait] = {}

    def __bool__(self) -> bool:
        return bool(self._running)

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        wait = Wait(self._words, self._glyphs)
        wait.begin(Phrase(key="wait.action", values={"operation": name}))
        task = asyncio.create_task(self._carry_out(work))
        self._running[task] = wait
        task.add_done_callback(self._running.pop)

    def cancel(self) -> None:
        for task in self._running:
            task.cancel()

    async def rest(self, seconds: float) -> None:
        """Until all are done, but not for ever."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=seconds)

    def lines(self, columns: int) -> list[str]:
        return [wait.line(columns) for wait in self._running.values()]

    async def _carry_out(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except DuckflowError as problem:
            self._complain(self._words.error(problem))
        except Exception:
            # A mistake of ours must not take the conversation with it.
            log.exception("an errand broke off")
            self._complain(self._words("turn.broke_off"))
