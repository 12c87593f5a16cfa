"""Offers the code map to the model if the folder is large enough for it to pay."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from duckflow.agent.policies.policy import Policy, TurnSoFar
from duckflow.code.settings import OPERATIONS, CodeSettings
from duckflow.tools.toolbox import Toolbox


class OfferCodeMap(Policy):
    """Looks once, before the first request: the tools are the first part of a request, and stay as they are."""

    def __init__(self, folder: Path, toolbox: Toolbox, start: Callable[[], None], settings: CodeSettings) -> None:
        self._folder = folder
        self._toolbox = toolbox
        self._start = start
        self._settings = settings
        self._looked = False

    async def opening(self, turn: TurnSoFar) -> None:
        if self._looked or not self._settings.map:
            return
        self._looked = True
        from duckflow.code.syntax import available, is_large

        if available() and await asyncio.to_thread(is_large, self._folder, self._settings.from_files):
            self._start()
            for name in OPERATIONS:
                self._toolbox.tell(name)
