"""What a page has still to be told, and what is being said right now."""

import asyncio
import time
from collections.abc import Collection

from duckflow.events.types import TextStreamed
from duckflow.i18n.plain import plain
from duckflow.web.telling import markdown, sent

UNREAD = 8 * 1024 * 1024
"""Bytes: a page that reads more slowly is cut off. It comes back and asks for what it missed."""
QUIET_SECONDS = 15.0
PIECE_SECONDS = 0.08


class Page:
    """One reader of a stream: what it has still to be told."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._size = 0
        self._moved = asyncio.Event()
        self.is_cut = False

    def put(self, data: bytes) -> None:
        if self.is_cut:
            return
        self._waiting.append(data)
        self._size += len(data)
        if self._size > UNREAD:
            self._waiting.clear()
            self.cut()
        self._moved.set()

    def cut(self) -> None:
        self.is_cut = True
        self._moved.set()

    async def take(self) -> bytes:
        """All there is; nothing when it has been quiet for long."""
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                await self._moved.wait()
        except TimeoutError:
            return b""
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        self._moved.clear()
        return data


class ReplyOnPages:
    """What is being said: its pieces come faster than pages can be drawn, and are put together for a moment. With them
    goes all that was said so far as HTML."""

    def __init__(self, pages: Collection[Page]) -> None:
        self._pages = pages
        self._pieces: list[TextStreamed] = []
        self._said = ""
        self._pause = PIECE_SECONDS
        self._later: asyncio.TimerHandle | None = None

    def take(self, event: TextStreamed) -> None:
        if self._pieces and self._pieces[0].channel != event.channel:
            self.flush()
        self._pieces.append(event)
        self._later = self._later or asyncio.get_running_loop().call_later(self._pause, self.flush)

    def flush(self) -> None:
        if self._later:
            self._later.cancel()
            self._later = None
        if not self._pieces:
            return
        began, first = time.monotonic(), self._pieces[0]
        text = "".join(piece.text for piece in self._pieces)
        self._pieces.clear()
        self._said += text if first.channel == "say" else ""
        if not self._pages:
            return
        shown = {"html": markdown(self._said)} if first.channel == "say" else {}
        whole = first.model_copy(update={"text": plain(text)})
        data = sent({"number": 0, "kind": whole.kind, "event": whole.model_dump(mode="json"), **shown})
        for page in self._pages:
            page.put(data)
        # A long reply takes long to be drawn anew.
        self._pause = max(PIECE_SECONDS, 10 * (time.monotonic() - began))

    def forget(self) -> None:
        """What is said from now on is another one."""
        self._said = ""
        self._pause = PIECE_SECONDS
