"""Sessions that pages show. Each session is joined once, and all its pages get the same messages."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AbstractContextManager, aclosing, contextmanager, suppress
from typing import Any, NamedTuple

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from duckflow.errors import DuckflowError, UsageError
from duckflow.events.event import Event
from duckflow.events.ports import Conversation
from duckflow.i18n.words import Words, is_language, language_of
from duckflow.state.agent import AgentState
from duckflow.view.items import ChosenItem, NoticeItem
from duckflow.view.view import View
from duckflow.web.ports import Joined, Shelf
from duckflow.web.stream import QUIET_SECONDS, Facts, Page, Pages
from duckflow.web.telling import item_message, sent, worded

PAGE = 500
MOST_STREAMS = 100
LOOK_SECONDS = 1.0
"""Seconds between two checks of the journal of a session that no process holds."""
IDLE_SECONDS = 20.0
"""Seconds that a session stays joined after its last page has left."""
PANEL_SECONDS = 1.5
"""Seconds until a panel is read again after an event."""
STATE = {
    "folder", "title", "named", "turn", "five", "plans", "active_plan", "jobs", "agents", "vitals", "usage",
    "files_changed", "asked", "comments", "reviewed", "taken_back",
}  # fmt: skip
"""The fields of the state that the page shows."""
LEFT_OUT: Any = {"jobs": {"__all__": {"messages"}}}
LANGUAGE = ("language_chosen",)
AGAIN = b"retry: 500\n\n"
QUIET = b": \n\n"
STREAM = "text/event-stream"


class SidePanel(NamedTuple):
    """A panel that a page shows beside the conversation, and the function that reads its content."""

    name: str
    read: Callable[[], Awaitable[Any]]


class WatchedSession:
    """One session, and the pages that show it."""

    def __init__(self, session_id: str, shelf: Shelf, joined: Joined | None, words: Words) -> None:
        self.session_id = session_id
        self.joined = joined
        self.words = words
        self.used = time.monotonic()
        self.streams = 0
        self.is_over = False
        self._shelf = shelf
        self._pages = Pages(words, self._facts)
        self._kept: AgentState | None = None
        """The state of a session that no process holds, once it was read from the journal."""
        self._view = View(joined.conversation.state if joined else None)
        if joined:
            self._unhear = joined.conversation.hear(self.hear)

    @property
    def conversation(self) -> Conversation:
        """Returns the conversation of a session that a process holds. An old session has none: it can only be read."""
        if self.joined is None or not self.writable:
            raise UsageError("serve.read_only")
        return self.joined.conversation

    @property
    def writable(self) -> bool:
        return self.joined is not None and not self.is_over

    @property
    def is_idle(self) -> bool:
        return not self.streams and time.monotonic() - self.used > IDLE_SECONDS

    async def stream(self, after: int, panel: SidePanel | None = None) -> AsyncGenerator[bytes]:
        """Yields the recorded events after number `after`, and then all events as they happen, without gaps or
        repetitions. Ends when the session's process ends, or when a process opens an old session again."""
        self.streams += 1
        try:
            yield AGAIN
            joined = self.joined
            byte_stream = self._live_stream(after, joined, panel) if joined else self._kept_stream(after, panel)
            async with aclosing(byte_stream):
                async for message_bytes in byte_stream:
                    yield message_bytes
        finally:
            self.streams -= 1
            self.used = time.monotonic()

    async def _live_stream(self, after: int, joined: Joined, panel: SidePanel | None) -> AsyncGenerator[bytes]:
        page, last_number = Page(), joined.conversation.number
        view = View(joined.conversation.state)
        self._pages.join(page)
        panel_task = asyncio.create_task(self._keep_panel(page, panel)) if panel else None
        try:
            while after < last_number and (messages := await self._read(view, after, last_number)):
                after = messages[-1]["number"]
                yield b"".join(map(sent, messages))
            while not (page.is_cut or self.is_over):
                yield await page.take() or QUIET
        finally:
            self._pages.leave(page)
            if panel_task:
                panel_task.cancel()

    async def _keep_panel(self, page: Page, panel: SidePanel) -> None:
        """Sends the panel's content, and sends it again whenever it has changed."""
        shown_data = b""
        while True:
            page.recorded.clear()
            data_before, shown_data = shown_data, await self._panel_data(panel)
            if shown_data != data_before:
                page.put(shown_data)
            await asyncio.sleep(PANEL_SECONDS)
            await page.recorded.wait()

    async def _panel_data(self, panel: SidePanel) -> bytes:
        try:
            fields = {"data": await panel.read(), "problem": ""}
        except DuckflowError as problem:
            fields = {"data": None, "problem": self.words.error(problem)}
        return sent({"number": 0, "items": [], "panel": {"name": panel.name, **fields}})

    async def _kept_stream(self, after: int, panel: SidePanel | None) -> AsyncGenerator[bytes]:
        quiet_since, has_new_messages = time.monotonic(), True
        view = View(await self._state())
        while self.session_id not in await asyncio.to_thread(self._shelf.running):
            while messages := await self._read(view, after):
                after, has_new_messages, self._kept = messages[-1]["number"], True, None
                yield b"".join(map(sent, messages))
            if has_new_messages:
                has_new_messages = False
                yield sent({"number": 0, "items": [], "facts": self._kept_facts(await self._state())})
                if panel:
                    yield await self._panel_data(panel)
            if time.monotonic() - quiet_since > QUIET_SECONDS:
                quiet_since = time.monotonic()
                yield QUIET
            await asyncio.sleep(LOOK_SECONDS)

    async def _read(self, view: View, after: int, until: int = 0) -> list[dict[str, Any]]:
        def read() -> list[dict[str, Any]]:
            rows = self._shelf.first(self.session_id, PAGE, after)
            return [
                item_message(number, view.hear(number, event) if event else [], self.words)
                for number, event in rows
                if not until or number <= until
            ]

        return await asyncio.to_thread(read)

    async def record(self, before: int, most: int) -> list[dict[str, Any]]:
        """Returns recorded items before number `before`, the oldest first."""
        view = View(await self._state())

        def read() -> list[dict[str, Any]]:
            rows = self._shelf.last(self.session_id, most, before)
            return [
                item_message(number, view.hear(number, event) if event else [], self.words) for number, event in rows
            ]

        return await asyncio.to_thread(read)

    async def snapshot(self) -> dict[str, Any]:
        """Returns the facts about the session, the number of its last event, and whether the user can take part."""
        if self.joined and self.writable:
            return {"number": self.joined.conversation.number, **self._facts()}
        number, self._kept = await asyncio.to_thread(self._shelf.state, self.session_id)
        return {"number": number, **self._kept_facts(self._kept)}

    async def _state(self) -> AgentState:
        if self.joined and self.writable:
            return self.joined.conversation.state
        if self._kept is None:
            _, self._kept = await asyncio.to_thread(self._shelf.state, self.session_id)
        return self._kept

    def _kept_facts(self, state: AgentState) -> Facts:
        idle_facts: Facts = {
            "in_turn": False,
            "busy": False,
            "doing": "",
            "waiting": [],
            "questions": [],
            "commands": [],
        }
        return {"writable": False, **idle_facts, **self._state_facts(state)}

    def _facts(self) -> Facts:
        if self.joined is None:
            return {}
        conversation = self.joined.conversation
        offered_commands = [
            {"name": command.name, "help": command.help.model_dump(), "words": command.words}
            for command in conversation.commands
        ]
        current_activity = self._view.now.doing
        return {
            "writable": True,
            **self._state_facts(conversation.state),
            "mode": conversation.choices.mode,
            "in_turn": conversation.in_turn,
            "busy": conversation.busy,
            "doing": worded(current_activity.model_dump() if current_activity else "", self.words),
            "waiting": worded([line._asdict() for line in conversation.waiting], self.words),
            "questions": worded([question.model_dump(mode="json") for question in conversation.questions], self.words),
            "commands": worded(offered_commands, self.words),
        }

    def _state_facts(self, state: AgentState) -> Facts:
        state_fields = state.model_dump(mode="json", include=STATE, exclude=LEFT_OUT)
        return {
            "title": state.heading,
            "language": self.words.language,
            "mode": state.mode,
            "model": state.model,
            "state": worded(state_fields, self.words),
        }

    def hear(self, number: int, event: Event) -> None:
        """Tells every page about an event."""
        items = self._view.hear(number, event)
        for item in items:
            if isinstance(item, ChosenItem) and item.language:
                self.words.language = language_of(item.language)
        self._pages.tell(number, items)
        if any(isinstance(item, NoticeItem) and item.about == "left" for item in items):
            self.end()

    def end(self) -> None:
        """Ends the streams because the session's process is gone. Pages then reconnect and read the journal."""
        self.is_over = True
        self._pages.cut()

    async def aclose(self) -> None:
        self.end()
        if self.joined:
            self._unhear()
            await self.joined.close()


class CountedStream(StreamingResponse):
    """A stream of events that counts as open from the moment it is answered, not only from its first bytes. Otherwise
    many requests that come at the same time would exceed the limit."""

    def __init__(self, content: AsyncGenerator[bytes], counted: AbstractContextManager[None]) -> None:
        super().__init__(content, media_type=STREAM)
        self._counted = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._counted:
            await super().__call__(scope, receive, send)


class Watching:
    """All sessions that pages show."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._watched: dict[tuple[str, str], WatchedSession] = {}
        """The sessions, by id and by the language of their viewers."""
        self._joining: dict[str, asyncio.Lock] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._streams = 0
        self._closed = asyncio.Event()

    async def get(self, session_id: str, language: str) -> WatchedSession:
        """Returns the session, and joins its conversation if a process holds it (has it open)."""
        if self._closed.is_set():
            raise DuckflowError("attach.cut")
        self._sweeping = self._sweeping or asyncio.create_task(self._sweep())
        async with self._joining.setdefault(session_id, asyncio.Lock()):
            session = self._watched.get((session_id, language))
            is_running = session_id in self._shelf.running()
            if session is None or session.is_over or (session.joined is None and is_running):
                if session:
                    await session.aclose()
                joined_session = await self._shelf.join(session_id) if is_running else None
                words = Words(await asyncio.to_thread(self._language, session_id, language))
                session = WatchedSession(session_id, self._shelf, joined_session, words)
                self._watched[session_id, language] = session
        session.used = time.monotonic()
        return session

    def _language(self, session_id: str, language: str) -> str:
        """Returns the language that was chosen in the session, or else the viewer's."""
        view = View()
        for number, event in self._shelf.of_kinds(session_id, LANGUAGE):
            if event:
                view.hear(number, event)
        return view.chosen.language if is_language(view.chosen.language) else language

    def streamed(self, content: AsyncGenerator[bytes]) -> "CountedStream":
        """Returns the response that streams the content. Raises an error if there is no room for another stream."""
        if self._streams >= MOST_STREAMS:
            raise UsageError("serve.too_many")
        return CountedStream(content, self.one_more_stream())

    @contextmanager
    def one_more_stream(self) -> Generator[None]:
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    async def closes_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()
        return self._closed.is_set()

    def held(self, session_id: str) -> WatchedSession | None:
        """Returns the session if a page already shows it, else None."""
        return next((session for (held_id, _), session in self._watched.items() if held_id == session_id), None)

    async def aclose(self) -> None:
        self._closed.set()
        if self._sweeping:
            self._sweeping.cancel()
        for session in self._watched.values():
            await session.aclose()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(IDLE_SECONDS / 4)
            for key, session in list(self._watched.items()):
                if session.is_idle:
                    del self._watched[key]
                    await session.aclose()
