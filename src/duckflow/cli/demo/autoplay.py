"""An input line without a keyboard: presses Enter whenever there is something to send."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from duckflow.ui.console.listener import Listener

PRESS_SECONDS = 0.05


class Autoplay:
    """For a tour that nobody sits in front of."""

    def __init__(self) -> None:
        self._listener: Listener | None = None
        self._left = asyncio.Event()

    @contextmanager
    def printing(self) -> Generator[None]:
        yield

    async def run(self) -> None:
        while not self._left.is_set():
            await asyncio.sleep(PRESS_SECONDS)
            if self._listener and self._listener.ready():
                self._listener.take("")

    async def lend(self, work: Callable[[], str]) -> str:
        return await asyncio.to_thread(work)

    async def shown(self) -> None:
        return

    def listen(self, listener: Listener | None) -> None:
        self._listener = listener

    def redraw(self) -> None:
        return

    def leave(self) -> None:
        self._left.set()
