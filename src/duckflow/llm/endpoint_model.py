"""Models behind an endpoint, on the wire that it speaks. Imports httpx: import it only to build a provider."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import httpx

from duckflow.errors import ToolsRefused
from duckflow.llm.abilities import Abilities, AbilityBook
from duckflow.llm.client import Clients, open_client, setback_of
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.facts import facts_of, price_of
from duckflow.llm.failures import BLIND, Failures
from duckflow.llm.keys import Key
from duckflow.llm.provider import Chunk, Finished, Remark, Request
from duckflow.llm.retry import Setback, persist
from duckflow.llm.settings import LlmSettings
from duckflow.llm.stream import ReplyListener, StreamedReply, error_text
from duckflow.llm.usage import measure
from duckflow.llm.wires.smaller import Refusal, smaller
from duckflow.llm.wires.wire import WireRequest, wire_named
from duckflow.state.phrase import say

PICTURES = "pictures"


class EndpointModel:
    """A provider that streams from an endpoint, tries again where that helps, and learns what is accepted."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        key: Key | None = None,
        settings: LlmSettings | None = None,
        book: AbilityBook | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._model = model
        self._settings = settings or LlmSettings()
        self._book = book or AbilityBook()
        self._failures = Failures(endpoint, model, key)
        self._facts = facts_of(endpoint.name, model)
        tools = "json" if self._facts.has("t") is False else "native" if endpoint.tools else ""
        known = Abilities(reply_limit=endpoint.reply_limit, tools=tools, wire=endpoint.wire)
        self._abilities = self._book.recall(endpoint.where, model, known)
        self._clients = Clients(lambda: open_client(endpoint, key, self._settings.connect_seconds))

    def __repr__(self) -> str:
        return f"EndpointModel({self.model!r}, {self._endpoint.where!r})"

    @property
    def model(self) -> str:
        return f"{self._endpoint.name}:{self._model}"

    @property
    def window(self) -> int:
        return self._settings.window or self._endpoint.window or self._facts.window

    @property
    def takes_tools(self) -> bool:
        wanted = self._settings.tools
        return wanted == "native" or (wanted == "auto" and self._abilities.tools != "json")

    @property
    def takes_pictures(self) -> bool | None:
        return False if PICTURES in self._abilities.lacks else self._facts.has("v")

    @property
    def least_price(self) -> float:
        return price_of(self._settings, self._endpoint.name, self._model).least

    def forgo_tools(self) -> None:
        self._learn(self._abilities._replace(tools="json"))

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        return persist(lambda: self._attempt(request), self._settings)

    async def aclose(self) -> None:
        await self._clients.aclose()

    async def _attempt(self, request: Request) -> AsyncGenerator[Chunk, None]:
        async with self._clients.lent() as client, aclosing(self._exchange(client, request)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _exchange(self, client: httpx.AsyncClient, request: Request) -> AsyncGenerator[Chunk, None]:
        """One try, though a request that is refused for a part it can do without is sent again without it."""
        abilities = self._abilities
        tried = {abilities}
        while True:
            wire = wire_named(abilities.wire)
            asked = WireRequest(request, self._endpoint, self._model, self._facts, abilities, self._settings)
            deadline = asyncio.get_running_loop().time() + self._first_byte_seconds
            response = await self._send(client, wire.body(asked), deadline, wire.path(self._model))
            try:
                if response.is_success:
                    for part in sorted(self._learn(abilities)):
                        yield Remark(say("model.goes_without", endpoint=self._endpoint.name, part=part))
                    listener = ReplyListener(response, self._failures, self._settings, wire.reading())
                    async with aclosing(listener.pieces(deadline)) as pieces:
                        async for piece in pieces:
                            yield piece
                    if listener.reply.calls and not abilities.tools:
                        self._learn(abilities._replace(tools="native"))
                    yield self._finished(request, listener.reply)
                    return
                answer = await error_text(response)
            finally:
                await response.aclose()
            if request.pictures and (refused := self._failures.of_pictures(response.status_code, answer)):
                self._learn(abilities.without(PICTURES) if refused.error.key == BLIND else abilities)
                raise refused
            abilities = self._lowered(asked, response, answer, tried)
            tried.add(abilities)

    @property
    def _first_byte_seconds(self) -> float:
        settings = self._settings
        return settings.local_first_byte_seconds if self._endpoint.is_loopback else settings.first_byte_seconds

    async def _send(
        self, client: httpx.AsyncClient, body: dict[str, Any], deadline: float, path: str
    ) -> httpx.Response:
        # A lone surrogate, such as a broken file name in the prompt, is no reason to fail.
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        try:
            request = client.build_request(
                "POST",
                self._endpoint.base_url + path,
                content=content,
                headers={"content-type": "application/json", "accept": "text/event-stream, application/json"},
            )
            async with asyncio.timeout_at(deadline):
                return await client.send(request, stream=True)
        except asyncio.CancelledError:
            self._clients.spoil(client)
            raise
        except TimeoutError:
            self._clients.spoil(client)
            raise self._failures.timed_out(self._first_byte_seconds) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise setback_of(error, self._endpoint, self._failures, self._settings.connect_seconds) from None

    def _finished(self, request: Request, reply: StreamedReply) -> Finished:
        price = price_of(self._settings, self._endpoint.name, self._model)
        calls, where = reply.calls, self._endpoint.name
        text = reply.text + "".join(call.arguments for call in calls)
        kept = tuple(call.model_copy(update={"extra": {where: call.extra}}) if call.extra else call for call in calls)
        extra = {where: reply.kept} if reply.kept else {}
        return Finished(reply.reason, measure(request, text, reply.reported, price), kept, extra, reply.raw)

    def _lowered(self, asked: WireRequest, response: httpx.Response, answer: str, tried: set[Abilities]) -> Abilities:
        """What to try next after a refusal. Raises when no smaller request would help."""
        status = response.status_code
        setback = self._failures.of_status(status, response.headers, answer)
        refusal = Refusal(status, answer.lower(), setback.error.key == "model.request_refused")
        lower = smaller(wire_named(asked.abilities.wire), asked, refusal)
        if lower and lower.tools == "json" and asked.request.tools and self._settings.tools == "auto":
            # Without tools it is another request altogether: whoever asked makes it.
            self._learn(lower)
            raise Setback(ToolsRefused("model.tools_refused", model=self.model))
        if lower and lower in tried:
            lower = lower._replace(reply_limit="")
        if lower is None or lower in tried:
            raise setback
        return lower

    def _learn(self, abilities: Abilities) -> frozenset[str]:
        """Remembers what is accepted; the parts that were taken until now."""
        before = self._abilities
        # A limit left out may have been too large just once.
        learned = abilities if abilities.reply_limit else abilities._replace(reply_limit=before.reply_limit)
        if learned != before:
            self._abilities = learned
            self._book.learn(self._endpoint.where, self._model, learned)
        return learned.lacks - before.lacks
