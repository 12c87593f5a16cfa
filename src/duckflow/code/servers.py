"""The language servers that the user has configured. A server is started when it is first needed, then used again, and
given up for good when it is slow or dead."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path, PurePosixPath

from duckflow.code.checkers import new_errors, program_for
from duckflow.code.lsp import CodePlace, Diagnostic, LanguageServer
from duckflow.code.settings import LspServer
from duckflow.programs.launch import Launch
from duckflow.rpc import RpcError

TRIES, AGAIN_SECONDS = 5, 0.5
log = logging.getLogger(__name__)
MakeLaunch = Callable[[tuple[str, ...]], Awaitable[Launch]]
"""A function that prepares the launch of a program in the work folder, confined in the same way as commands."""


class LanguageServers:
    """The language servers of one folder. Each is started when the first question to it comes."""

    def __init__(self, folder: Path, settings: Mapping[str, LspServer], launch: MakeLaunch) -> None:
        self._folder = folder
        self._settings = dict(settings)
        self._launch = launch
        self._running: dict[str, LanguageServer] = {}

    def knows(self, path: str) -> bool:
        return bool(self._for(path))

    async def references(self, path: str, line: int, column: int, text: str, seconds: float) -> set[CodePlace] | None:
        """Returns the places that refer to a definition; None if no server can answer in time."""
        for name in self._for(path):
            try:
                async with asyncio.timeout(seconds):
                    server = await self._started(name)
                    server.show(path, text)
                    # A server that has just started has not read the folder yet, so it is asked several times.
                    for _ in range(TRIES):
                        if places := await server.references(CodePlace(path, line, column), seconds):
                            return set(places)
                        await asyncio.sleep(AGAIN_SECONDS)
                    return None
            except (TimeoutError, RpcError, OSError) as problem:
                await self._give_up(name, problem)
        return None

    async def definitions(self, name: str, seconds: float) -> list[CodePlace]:
        """Returns the places that define a name, from all servers that can answer in time."""
        all_places = list[CodePlace]()
        for server_name in [key for key, settings in self._settings.items() if settings.enabled]:
            try:
                async with asyncio.timeout(seconds):
                    server = await self._started(server_name)
                    # A server that has just started has not read the folder yet, so it is asked several times.
                    for _ in range(TRIES):
                        if places := await server.definitions(name, seconds):
                            all_places += places
                            break
                        await asyncio.sleep(AGAIN_SECONDS)
            except (TimeoutError, RpcError, OSError) as problem:
                await self._give_up(server_name, problem)
        return list(dict.fromkeys(all_places))

    async def new_errors(
        self, before: Mapping[str, str], after: Mapping[str, str], seconds: float
    ) -> dict[str, list[Diagnostic]]:
        """Returns the new errors that each server reports for these texts. A file that is missing in `before` or
        `after` counts as empty there."""
        errors = dict[str, list[Diagnostic]]()
        for name in list(self._settings):
            paths = [path for path in {**before, **after} if name in self._for(path)]
            if not paths:
                continue
            try:
                async with asyncio.timeout(seconds):
                    server = await self._started(name)
                    errors_before = await _said(server, {path: before.get(path, "") for path in paths}, seconds)
                    errors_after = await _said(server, {path: after.get(path, "") for path in paths}, seconds)
                    errors[name] = new_errors(errors_before, errors_after)
            except (TimeoutError, RpcError, OSError) as problem:
                await self._give_up(name, problem)
        return errors

    async def aclose(self) -> None:
        for server in self._running.values():
            await server.aclose()
        self._running.clear()

    def _for(self, path: str) -> list[str]:
        suffix = PurePosixPath(path).suffix
        return [name for name, server in self._settings.items() if server.enabled and suffix in server.suffixes]

    async def _started(self, name: str) -> LanguageServer:
        if name not in self._running:
            settings = self._settings[name]
            program = program_for(settings.command, self._folder)
            if not program:
                raise FileNotFoundError(settings.command)
            server = self._running[name] = LanguageServer(self._folder, settings.language)
            await server.start(await self._launch((program, *settings.args)), settings.seconds)
        return self._running[name]

    async def _give_up(self, name: str, problem: Exception) -> None:
        log.warning("language server %s is not asked any more: %r", name, problem)
        self._settings.pop(name, None)
        if server := self._running.pop(name, None):
            await server.aclose()


async def _said(server: LanguageServer, texts: Mapping[str, str], seconds: float) -> list[Diagnostic]:
    for path, text in texts.items():
        server.show(path, text)
    return [diagnostic for path in texts for diagnostic in await server.diagnostics(path, seconds)]
