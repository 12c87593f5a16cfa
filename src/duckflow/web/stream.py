"""The streams to the open pages of a session, and the messages that wait to be sent to each page."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from duckflow.i18n.words import Words
from duckflow.view.items import Item, is_streaming
from duckflow.web.telling import item_message, sent

UNREAD = 8 * 1024 * 1024
"""Bytes that may wait for one page. A page that reads more slowly is cut off; it then reconnects and asks for the
events it missed."""
QUIET_SECONDS = 15.0
SOON_SECONDS = 0.08
Facts = dict[str, Any]


class Page:
    """One reader of a stream, with the messages that wait for it."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []
        self._size = 0
        self._moved = asyncio.Event()
        self.recorded = asyncio.Event()
        """Set whenever a new event of the session has been recorded."""
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
        """Returns all messages that wait for the page; empty bytes when none came for QUIET_SECONDS."""
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                await self._moved.wait()
        except TimeoutError:
            return b""
        waiting_bytes = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        self._moved.clear()
        return waiting_bytes


class Pages:
    """The open pages of a session. Items that change faster than a page can be drawn (texts being written, outputs,
    facts) are sent a moment later, in their latest form. Only changed facts are sent."""

    def __init__(self, words: Words, facts: Callable[[], Facts]) -> None:
        self._words = words
        self._read_facts = facts
        self._facts: Facts = {}
        """The facts that all open pages have got."""
        self._open: set[Page] = set()
        self._soon: dict[str, Item] = {}
        self._stale = True
        self._pause = SOON_SECONDS
        self._later: asyncio.TimerHandle | None = None

    def join(self, page: Page) -> None:
        """Adds a page, and first sends it all facts."""
        self._flush()
        self._open.add(page)
        page.put(sent({"number": 0, "items": [], "facts": self._facts}))

    def leave(self, page: Page) -> None:
        self._open.discard(page)
        if not self._open:
            self._soon.clear()

    def cut(self) -> None:
        for page in self._open:
            page.cut()

    def tell(self, number: int, items: list[Item]) -> None:
        if not self._open:
            self._stale = True
            return
        passing_items = [item for item in items if is_streaming(item)]
        if number or len(passing_items) < len(items):
            self._tell_passing()
            self._send(item_message(number, [item for item in items if not is_streaming(item)], self._words))
            self._stale = True
        self._soon |= {item.id: item for item in passing_items}
        if not self._later:
            self._later = asyncio.get_running_loop().call_later(self._pause, self._flush)

    def _flush(self) -> None:
        began_at = time.monotonic()
        if self._later:
            self._later.cancel()
            self._later = None
        self._tell_passing()
        if self._stale:
            facts_before, self._facts, self._stale = self._facts, self._read_facts(), False
            if differences := changed_facts(facts_before, self._facts):
                self._send({"number": 0, "items": [], "facts": differences})
        # A long reply or plan takes long to draw, so the next pause is longer.
        self._pause = max(SOON_SECONDS, 10 * (time.monotonic() - began_at))

    def _tell_passing(self) -> None:
        passing_items = list(self._soon.values())
        self._soon.clear()
        self._send(item_message(0, passing_items, self._words))

    def _send(self, message: dict[str, Any]) -> None:
        if not self._open or not (message["number"] or message["items"] or "facts" in message):
            return
        message_bytes = sent(message)
        for page in self._open:
            page.put(message_bytes)
            if message["number"]:
                page.recorded.set()


def changed_facts(before: Facts, after: Facts) -> Facts:
    """Returns the facts that have changed. Only the changed fields of the fact `state` are returned."""
    differences = {name: new_value for name, new_value in after.items() if before.get(name) != new_value}
    if "state" in differences and "state" in before:
        differences["state"] = changed_facts(before["state"], differences["state"])
    return differences
