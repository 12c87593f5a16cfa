"""Work that takes processor time (making the map, and finding uses) runs in a separate process, at the lowest priority.
A request is a JSON object on the process's standard input; the answer is a JSON object on its output."""

import asyncio
import contextlib
import gc
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from duckflow.code.store import CodeMap
from duckflow.code.syntax import Symbol
from duckflow.code.uses import Use, Uses, find_uses
from duckflow.programs.find import own_module
from duckflow.programs.launch import Launch
from duckflow.programs.run import ignore, run
from duckflow.safety.workspace import Workspace

MODULE = "duckflow.code.background"
HERE = 30
"""Up to this many changed files are read in this process, because starting another process takes longer."""
EXTRA_SECONDS = 5.0
FRESH_SECONDS = 10.0
MAP_SECONDS = 120.0


class MappedFolder:
    """The map of a work folder, brought up to date before each question."""

    def __init__(self, workspace: Workspace, path: Path) -> None:
        self.map = CodeMap(workspace, path)
        self._path = path
        self._making: asyncio.Task[Any] | None = None
        self._looked = -FRESH_SECONDS

    def start(self) -> None:
        """Begins to make the map, and does not wait for it."""
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._asked({"do": "map"}, None))

    async def fresh(self, seconds: float) -> CodeMap | None:
        """Returns the map, brought up to date with the folder; None if that takes longer than `seconds`."""
        if self._making and not self._making.done():
            await asyncio.wait([self._making], timeout=seconds)
            if not self._making.done():
                return None
        changes = await asyncio.to_thread(self.map.changes)
        if len(changes.files) <= HERE:
            await asyncio.to_thread(self.map.update, changes)
            return self.map
        self.start()
        assert self._making
        await asyncio.wait([self._making], timeout=seconds)
        return self.map if self._making.done() else None

    def current(self) -> CodeMap:
        """Returns the map without waiting, for callers in another thread. Every few seconds a thread brings it up to
        date."""
        if time.monotonic() - self._looked > FRESH_SECONDS:
            self._looked = time.monotonic()
            threading.Thread(target=self._refreshed, daemon=True).start()
        return self.map

    def _refreshed(self) -> None:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            request_json, command = json.dumps({"do": "map", **self._about()}).encode(), own_module(MODULE)
            subprocess.run(command, input=request_json, capture_output=True, timeout=MAP_SECONDS, check=False)

    def _about(self) -> dict[str, Any]:
        folder = self.map.workspace
        return {"folder": str(folder.root), "private": [*map(str, folder.private)], "map": str(self._path)}

    async def uses(self, target: Symbol, seconds: float) -> Uses:
        """Returns the uses of one definition. The map must be up to date."""
        request = {"do": "uses", "target": list(target), "seconds": seconds}
        answer = await self._asked(request, seconds + EXTRA_SECONDS)
        if not isinstance(answer, dict):
            return Uses([], self.map.mentioning(target.name))
        fields = cast("dict[str, list[Any]]", answer)
        return Uses([Use(*use) for use in fields["uses"]], fields["not_looked_at"])

    async def aclose(self) -> None:
        if self._making:
            self._making.cancel()
            await asyncio.gather(self._making, return_exceptions=True)
        self.map.close()

    async def _asked(self, request: dict[str, Any], seconds: float | None) -> Any:
        """Sends a request to a new process, and returns the answer; None if it failed or took too long."""
        stdout = bytearray()
        try:
            launch = Launch(own_module(MODULE), self.map.workspace.root, os.environ)
            await run(launch, stdout.extend, ignore, json.dumps(request | self._about()).encode(), seconds)
            return json.loads(stdout)
        except (TimeoutError, ValueError, OSError):
            return None


def carry_out(request: dict[str, Any]) -> Any:
    workspace = Workspace(Path(request["folder"]), private=[Path(path) for path in request["private"]])
    code_map = CodeMap(workspace, Path(request["map"]))
    if request["do"] == "map":
        return code_map.refresh()
    target: Sequence[Any] = request["target"]
    return find_uses(code_map, Symbol(*target), request["seconds"])._asdict()


if __name__ == "__main__":
    os.nice(19)
    # The process makes millions of small objects without reference cycles, so it does not collect garbage.
    gc.disable()
    sys.stdout.write(json.dumps(carry_out(json.load(sys.stdin))))
