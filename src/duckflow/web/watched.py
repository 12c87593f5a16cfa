"""Sessions that pages look at: each is joined once, and every page of it is told the same."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from duckflow.errors import DuckflowError, UsageError
from duckflow.events.event import Event, LanguageChosen
from duckflow.events.ports import Conversation
from duckflow.events.talking import ConversationLeft
from duckflow.events.types import DecisionMade, LoopBegan, StreamReset, TextStreamed
from duckflow.i18n.language import language_of
from duckflow.i18n.words import Words
from duckflow.state.agent import AgentState
from duckflow.web.ports import Joined, Shelf
from duckflow.web.stream import QUIET_SECONDS, Page, ReplyOnPages
from duckflow.web.telling import message, told, worded

PAGE = 500
MOST_STREAMS = 100
LOOK_SECONDS = 1.0
"""How often the journal of a session that nobody holds is looked at."""
IDLE_SECONDS = 20.0
"""How long a session that nobody looks at stays joined."""
LANGUAGE = ("session_opened", "language_chosen")
AGAIN = b"retry: 500\n\n"
QUIET = b": \n\n"


class WatchedSession:
    """One session, and the pages that look at it."""

    def __init__(self, session_id: str, shelf: Shelf, joined: Joined | None, words: Words) -> None:
        self.session_id = session_id
        self.joined = joined
        self.words = words
        self.used = time.monotonic()
        self.streams = 0
        self.is_over = False
        self._shelf = shelf
        self._pages: set[Page] = set()
        self._reply = ReplyOnPages(self._pages)
        if joined:
            self._unhear = joined.conversation.hear(self._hear)

    @property
    def conversation(self) -> Conversation:
        """What can be talked to; an old session can only be read."""
        if self.joined is None or not self.writable:
            raise UsageError("serve.read_only")
        return self.joined.conversation

    @property
    def writable(self) -> bool:
        return self.joined is not None and not self.is_over

    @property
    def is_idle(self) -> bool:
        return not self.streams and time.monotonic() - self.used > IDLE_SECONDS

    async def stream(self, after: int) -> AsyncGenerator[bytes]:
        """What was kept after that number and then everything as it happens: nothing is left out, nothing comes twice.
        It ends when the session's process ends, or when one holds it again."""
        self.streams += 1
        try:
            yield AGAIN
            telling = self._live_stream(after, self.joined) if self.joined else self._kept_stream(after)
            async with aclosing(telling):
                async for data in telling:
                    yield data
        finally:
            self.streams -= 1
            self.used = time.monotonic()

    async def _live_stream(self, after: int, joined: Joined) -> AsyncGenerator[bytes]:
        page, until = Page(), joined.conversation.number
        self._pages.add(page)
        try:
            while after < until and (rows := await asyncio.to_thread(self._read, after, until)):
                after = rows[-1][0]
                yield b"".join(data for _, data in rows)
            while not (page.is_cut or self.is_over):
                yield await page.take() or QUIET
        finally:
            self._pages.discard(page)

    async def _kept_stream(self, after: int) -> AsyncGenerator[bytes]:
        quiet = time.monotonic()
        while self.session_id not in await asyncio.to_thread(self._shelf.running):
            if rows := await asyncio.to_thread(self._read, after, 0):
                after = rows[-1][0]
                yield b"".join(data for _, data in rows)
                continue
            if time.monotonic() - quiet > QUIET_SECONDS:
                quiet = time.monotonic()
                yield QUIET
            await asyncio.sleep(LOOK_SECONDS)

    def _read(self, after: int, until: int) -> list[tuple[int, bytes]]:
        kept = self._shelf.first(self.session_id, PAGE, after)
        return [
            (number, message(number, kind, json.loads(body), self.words))
            for number, kind, body in kept
            if not until or number <= until
        ]

    async def record(self, before: int, most: int) -> list[dict[str, Any]]:
        """A piece of the past, oldest first."""

        def read() -> list[dict[str, Any]]:
            kept = self._shelf.last(self.session_id, most, before)
            return [told(number, kind, json.loads(body), self.words) for number, kind, body in kept]

        return await asyncio.to_thread(read)

    async def snapshot(self) -> dict[str, Any]:
        """How things stand after the event of that number, and whether one can take part."""
        if self.joined is None or not self.writable:
            number, state = await asyncio.to_thread(self._shelf.state, self.session_id)
            return {"number": number, "writable": False, "questions": [], "commands": [], **self._facts(state)}
        talk = self.joined.conversation
        offered = [{"name": one.name, "help": one.help.model_dump(), "words": one.words} for one in talk.commands]
        return {
            "number": talk.number,
            "writable": True,
            **self._facts(talk.state),
            "mode": talk.choices.mode,
            "in_turn": talk.in_turn,
            "busy": talk.busy,
            "waiting": worded([one._asdict() for one in talk.waiting], self.words),
            "health": worded(talk.health_bar().model_dump(), self.words),
            "questions": worded([one.model_dump(mode="json") for one in talk.questions], self.words),
            "commands": worded(offered, self.words),
        }

    def _facts(self, state: AgentState) -> dict[str, Any]:
        left_out: Any = {"messages": True, "jobs": {"__all__": {"messages"}}}
        return {
            "language": self.words.language,
            "mode": state.mode,
            "model": state.model,
            "state": worded(state.model_dump(mode="json", exclude=left_out), self.words),
        }

    def tell(self, event: Event, number: int = 0) -> None:
        """Every page, at once."""
        if self._pages:
            data = message(number, event.kind, event.model_dump(mode="json"), self.words)
            for page in self._pages:
                page.put(data)

    def _hear(self, number: int, event: Event) -> None:
        if isinstance(event, TextStreamed):
            self._reply.take(event)
            return
        self._reply.flush()
        match event:
            case LanguageChosen():
                self.words.language = language_of(event.language)
            case LoopBegan() | StreamReset() | DecisionMade():
                self._reply.forget()
            case _:
                pass
        self.tell(event, number)
        if isinstance(event, ConversationLeft):
            self.end()

    def end(self) -> None:
        """Its process is gone; pages come back for what there is then."""
        self.is_over = True
        for page in self._pages:
            page.cut()

    async def aclose(self) -> None:
        self.end()
        if self.joined:
            self._unhear()
            await self.joined.close()


class Watching:
    """All sessions that are looked at."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._watched: dict[str, WatchedSession] = {}
        self._joining: dict[str, asyncio.Lock] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._closed = False

    async def get(self, session_id: str) -> WatchedSession:
        """Joined, where a process holds it."""
        if self._closed:
            raise DuckflowError("attach.cut")
        self._sweeping = self._sweeping or asyncio.create_task(self._sweep())
        async with self._joining.setdefault(session_id, asyncio.Lock()):
            found = self._watched.get(session_id)
            running = session_id in self._shelf.running()
            if found is None or found.is_over or (found.joined is None and running):
                if found:
                    await found.aclose()
                joined = await self._shelf.join(session_id) if running else None
                words = Words(await asyncio.to_thread(self._language, session_id))
                found = WatchedSession(session_id, self._shelf, joined, words)
                self._watched[session_id] = found
        found.used = time.monotonic()
        return found

    def _language(self, session_id: str) -> str:
        """The one that was spoken last."""
        *_, last = ("", *self._shelf.of_kinds(session_id, LANGUAGE))
        return language_of(json.loads(last[2])["language"] if last else "")

    def require_room(self) -> None:
        """For one more stream."""
        if sum(watched.streams for watched in self._watched.values()) >= MOST_STREAMS:
            raise UsageError("serve.too_many")

    def held(self, session_id: str) -> WatchedSession | None:
        """Only what is looked at already."""
        return self._watched.get(session_id)

    async def aclose(self) -> None:
        self._closed = True
        if self._sweeping:
            self._sweeping.cancel()
        for watched in self._watched.values():
            await watched.aclose()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(IDLE_SECONDS / 4)
            for session_id, watched in list(self._watched.items()):
                if watched.is_idle:
                    del self._watched[session_id]
                    self._joining.pop(session_id, None)
                    await watched.aclose()
