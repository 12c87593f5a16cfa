"""The page's server on a real port, with real conversations behind it, and browsers that keep to what they are sent."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from duckflow.agent.connection import Connected
from duckflow.agent.session import Session, begin, reopen
from duckflow.cli.build import BuiltConversation, build_conversation
from duckflow.cli.setup import Setup
from duckflow.cli.shelf import SessionShelf
from duckflow.config.settings import Settings
from duckflow.i18n.words import Words
from duckflow.llm.scripted import Line, Scripted
from duckflow.remote.server import ConversationServer
from duckflow.state.data import say
from duckflow.store.paths import Paths
from duckflow.web.ports import Fleets, Models
from duckflow.web.serving import listen, place_of, serve
from duckflow.web.visitors import Visitors
from tests.journeys.cast import Cast

PATIENCE = 60
ID = "20260101-000000-abcdef"


class Talk:
    """A conversation that is held as another process would hold it: on a socket."""

    def __init__(
        self,
        top: Path,
        replies: Iterable[Line] | Cast,
        mode: str = "full-auto",
        session_id: str = ID,
        language: str = "en",
        folder: str = "work",
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.folder = top / folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.paths = Paths(top / "data", top / "config", top / "cache")
        journal = self.paths.sessions_of(self.folder) / f"{session_id}.db"
        self.session: Session = (
            reopen(journal).session if journal.exists() else begin(journal, session_id, self.folder, language)
        )
        model = replies if isinstance(replies, Cast) else Scripted(replies)
        given = {"safety": {"mode": mode}, "language": language, "memory": {"summaries": False}, **(settings or {})}
        setup = Setup(Settings.model_validate(given), self.paths, self.folder, Words(language), trust=True, home=top)

        async def connect(second: bool) -> Connected:
            return Connected(model, say("model.chosen.flag"))

        self.built: BuiltConversation = build_conversation(setup, self.session, connect)
        self.server = ConversationServer(self.built.conversation)
        self.socket = journal.with_suffix(".sock")

    async def __aenter__(self) -> "Talk":
        await self.server.serve(self.socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.socket.unlink(missing_ok=True)
        await self.built.close()
        self.session.close()
        self.server.close()


class Site:
    """A server, its address, and its visitors."""

    def __init__(
        self,
        paths: Paths,
        port: int = 0,
        host: str = "127.0.0.1",
        fleet: Fleets | None = None,
        language: str = "en",
        models: Models | None = None,
        only: Iterable[str] | None = None,
        as_browser: bool = False,
    ) -> None:
        self._as_browser = as_browser
        self._models = models
        self._listening = listen(host, port)
        self.place = place_of(self._listening)
        self.visitors = Visitors(paths.data / "web" / f"{self.place.port}.json")
        self._shelf = SessionShelf(paths, only)
        self._fleet = fleet
        self._words = Words(language)

    async def __aenter__(self) -> "Site":
        self._serving = asyncio.create_task(
            serve(
                self._listening,
                self._shelf,
                self.visitors,
                self._words,
                self._fleet,
                as_browser=self._as_browser,
                models=self._models,
            )
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._serving.cancel()
        await asyncio.wait({self._serving})

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.place.port}"

    async def visit(self) -> "Browser":
        browser = Browser(self.origin)
        answer = await browser.http.get(f"/?token={self.visitors.token}")
        assert answer.status_code == 303
        browser.top = answer.headers["location"]
        return browser


class Browser:
    """A browser that keeps the cookie and says where its requests come from."""

    def __init__(self, origin: str) -> None:
        self.http = httpx.AsyncClient(base_url=origin, timeout=PATIENCE, headers={"sec-fetch-site": "same-origin"})
        self.origin = origin
        self.top = "/"

    async def get(self, path: str) -> Any:
        answer = await self.http.get(f"{self.top}api/{path}")
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    async def post(self, path: str, status: int = 200, /, **values: Any) -> Any:
        answer = await self.http.post(f"{self.top}api/{path}", json=values, headers={"origin": self.origin})
        assert answer.status_code == status, (path, answer.text)
        return answer.json()

    @asynccontextmanager
    async def reading(self, session_id: str = ID, after: int = 0, last: int | None = None) -> AsyncGenerator["Reader"]:
        reader = Reader(self, session_id, after, last)
        task = asyncio.create_task(reader.run())
        try:
            yield reader
        finally:
            task.cancel()
            await asyncio.wait({task})


class Reader:
    """Reads a stream as a browser does: one that ends is opened again after the last number."""

    def __init__(self, browser: Browser, session_id: str, after: int, last: int | None) -> None:
        self.heard: list[dict[str, Any]] = []
        self.facts: dict[str, Any] = {"state": {}}
        self.asked: dict[str, dict[str, Any]] = {}
        """Every question that was ever open, by its id."""
        self._browser = browser
        self._path = f"{browser.top}api/sessions/{session_id}/events?after={after}"
        self._last = last
        self._more = asyncio.Event()
        self.opened = 0

    @property
    def numbers(self) -> list[int]:
        return [one["number"] for one in self.heard if one["number"]]

    @property
    def items(self) -> list[dict[str, Any]]:
        """Returns all items in the order they came, with every change of them."""
        return [item for told in self.heard for item in told["items"]]

    def of(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        """Returns items in their latest form, in the order in which they first came."""
        latest: dict[str, dict[str, Any]] = {}
        for item in self.items:
            known = {name: value for name, value in item.items() if value is not None}
            latest[item["id"]] = latest.get(item["id"], item) | known
        return [item for item in latest.values() if {**fields, "kind": kind}.items() <= item.items()]

    @property
    def turns_over(self) -> int:
        return sum(1 for item in self.of("turn") if item["outcome"])

    def _know(self, facts: dict[str, Any]) -> None:
        self.facts |= facts | {"state": self.facts["state"] | facts.get("state", {})}
        self.asked |= {question["question_id"]: question for question in self.facts["questions"]}

    async def until(self, true: Callable[[], Any]) -> Any:
        async with asyncio.timeout(PATIENCE):
            while not (found := true()):
                await self._more.wait()
                self._more.clear()
            return found

    async def run(self) -> None:
        while True:
            with suppress(httpx.TransportError):
                await self._read()
            await asyncio.sleep(0.05)

    async def _read(self) -> None:
        headers = {} if self._last is None else {"last-event-id": str(self._last)}
        async with self._browser.http.stream("GET", self._path, headers=headers) as answer:
            assert answer.status_code in (200, 503)
            self.opened += 1
            self._more.set()
            number = 0
            async for line in answer.aiter_lines():
                if line.startswith("id: "):
                    number = int(line[4:])
                elif line.startswith("data: "):
                    told = json.loads(line[6:])
                    assert told["number"] == number
                    self.heard.append(told)
                    if facts := told.get("facts"):
                        self._know(facts)
                    self._last = number or self._last
                    self._more.set()
                elif not line:
                    number = 0
