"""`duckflow --web`: shows the chat of this terminal in a browser, too. The page's server is a separate process that
joins the chat over its socket, so that no page can slow down typing. It ends with this process, however that ends."""

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
    """Starts the page's server when the first session can be joined. The page shows this terminal's sessions only."""

    def __init__(self, language: str) -> None:
        """`language` is the language that the user has named; if it is empty, the page uses the browser's language."""
        require_parts()
        self._language = language
        self._process: asyncio.subprocess.Process | None = None

    async def show(self, session_id: str) -> str:
        """Shows a session on the page. Returns the page's address the first time if the page starts, else an empty
        text."""
        is_first = self._process is None
        if is_first:
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
            if is_first:
                async with asyncio.timeout(START_SECONDS):
                    return (await process.stdout.readline()).decode().strip()
        return ""

    def close(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()
