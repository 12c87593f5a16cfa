"""`duckflow --web`: the chat of this terminal in a browser, too. The page's server is a process of its own that joins
the chat over its socket, so that no page can slow the keys down; it ends with this one, however that ends."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

from duckflow.cli.host_process import flag_words
from duckflow.cli.web import require_parts
from duckflow.programs.launch import Launch

START_SECONDS = 20.0


class PageBeside:
    """Started when the first session can be joined. It shows the sessions that this terminal has held, no others."""

    def __init__(self, language: str) -> None:
        """`language`: the one that the user has named; without one the page speaks its browser's."""
        require_parts()
        self._language = language
        self._process: asyncio.subprocess.Process | None = None

    async def show(self, session_id: str) -> str:
        """Gives the page's address when it has not been told yet; nothing when the page does not start."""
        begins = self._process is None
        if begins:
            pipe = asyncio.subprocess.PIPE
            command = (
                sys.executable,
                "-P",
                "-m",
                "duckflow",
                "web",
                "--beside",
                *flag_words({"--lang": self._language}),
            )
            launch = Launch(command, Path.cwd(), os.environ)
            self._process = await launch.spawn(pipe, pipe, asyncio.subprocess.DEVNULL)
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return ""
        with suppress(OSError, TimeoutError):
            process.stdin.write(f"{session_id}\n".encode())
            if begins:
                async with asyncio.timeout(START_SECONDS):
                    return (await process.stdout.readline()).decode().strip()
        return ""

    def close(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
