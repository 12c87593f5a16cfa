"""Models behind an HTTP endpoint. This module is imported only to build a provider, because it loads the HTTP client,
which is slow."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from duckflow.errors import ToolsRefused
from duckflow.http import (
    BadRequest,
    ConnectTimeout,
    HttpAnswer,
    HttpClient,
    HttpError,
    NotConnected,
    ProxyFailed,
    ProxyUnknown,
    proxy_for,
)
from duckflow.llm.endpoints import Endpoint, Key
from duckflow.llm.facts import Abilities, AbilityBook, facts_of, price_of
from duckflow.llm.failures import BLIND, Failures, Setback, persist
from duckflow.llm.provider import Chunk, Finished, Remark, Request, measure
from duckflow.llm.settings import LlmSettings, Price
from duckflow.llm.stream import ReplyListener, StreamedReply, error_text
from duckflow.llm.wires.wire import WireRequest, smaller, wire_named
from duckflow.state.data import say

PICTURES = "pictures"
NO_ANSWER = "model.no_connection"


class EndpointModel:
    """A provider that streams from an endpoint, retries where that helps, and learns which optional parts of a request
    the endpoint takes."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        key: Key | None = None,
        settings: LlmSettings | None = None,
        book: AbilityBook | None = None,
    ) -> None:
        self._model = model
        self._settings = settings or LlmSettings()
        self._book = book or AbilityBook()
        self._facts = facts_of(endpoint.name, model)
        tools = "json" if self._facts.has("t") is False else "native" if endpoint.tools else ""
        default_abilities = Abilities(reply_limit=endpoint.reply_limit, tools=tools, wire=endpoint.wire)
        self._abilities = self._book.recall(endpoint.where, model, default_abilities)
        self.call(endpoint, key)

    def call(self, endpoint: Endpoint, key: Key | None) -> None:
        """Sends requests to this endpoint from now on."""
        self._endpoint = endpoint
        self._failures = Failures(endpoint, self._model, key)
        self._client = open_client(endpoint, key, self._settings.connect_seconds)

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
        tools_setting = self._settings.tools
        return tools_setting == "native" or (tools_setting == "auto" and self._abilities.tools != "json")

    @property
    def takes_pictures(self) -> bool | None:
        return False if PICTURES in self._abilities.lacks else self._facts.has("v")

    @property
    def least_price(self) -> float | None:
        price = price_of(self._settings, self._endpoint.name, self._model)
        return price.least if price else None

    def forgo_tools(self) -> None:
        self._learn(self._abilities._replace(tools="json"))

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        return persist(lambda: self._exchange(request), self._settings)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _exchange(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Makes one attempt. A request that is refused for an optional part is sent again without that part."""
        abilities = self._abilities
        tried_abilities = {abilities}
        while True:
            wire = wire_named(abilities.wire)
            wire_request = WireRequest(request, self._endpoint, self._model, self._facts, abilities, self._settings)
            deadline = asyncio.get_running_loop().time() + self._first_byte_seconds
            response = await self._send(wire.body(wire_request), deadline, wire.path(self._model))
            try:
                if response.is_success:
                    if refused_parts := self._learn(abilities):
                        refused_names = ", ".join(sorted(refused_parts))
                        yield Remark(say("model.goes_without", endpoint=self._endpoint.name, parts=refused_names))
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
                response.close()
            if request.pictures and (pictures_refusal := self._failures.of_pictures(response.status, answer)):
                self._learn(abilities.without(PICTURES) if pictures_refusal.error.key == BLIND else abilities)
                raise pictures_refusal
            abilities = self._lowered(wire_request, response, answer, tried_abilities)
            tried_abilities.add(abilities)

    @property
    def _first_byte_seconds(self) -> float:
        settings = self._settings
        return settings.local_first_byte_seconds if self._endpoint.is_loopback else settings.first_byte_seconds

    async def _send(self, body: dict[str, Any], deadline: float, path: str) -> HttpAnswer:
        # A lone surrogate, such as in a broken file name in the prompt, must not make the request fail.
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        try:
            async with asyncio.timeout_at(deadline):
                return await self._client.send("POST", path, content, headers)
        except TimeoutError:
            raise self._failures.timed_out(self._first_byte_seconds) from None
        except HttpError as error:
            raise setback_of(error, self._endpoint, self._failures, self._settings.connect_seconds) from None

    def _finished(self, request: Request, reply: StreamedReply) -> Finished:
        price = price_of(self._settings, self._endpoint.name, self._model) or Price()
        calls, endpoint_name = reply.calls, self._endpoint.name
        text = reply.text + "".join(call.arguments for call in calls)
        tagged_calls = tuple(
            call.model_copy(update={"extra": {endpoint_name: call.extra}}) if call.extra else call for call in calls
        )
        extra_fields = {endpoint_name: reply.kept} if reply.kept else {}
        return Finished(
            reply.reason, measure(request, text, reply.reported, price), tagged_calls, extra_fields, reply.raw
        )

    def _lowered(self, asked: WireRequest, response: HttpAnswer, answer: str, tried: set[Abilities]) -> Abilities:
        """Returns the parts of a request to try after a refusal. Raises a Setback, which ends this attempt, if no
        smaller request would help."""
        status = response.status
        setback = self._failures.of_status(status, response.headers, answer)
        is_reason_unclear = setback.error.key == "model.request_refused"
        fewer_abilities = smaller(wire_named(asked.abilities.wire), asked, status, answer.lower(), is_reason_unclear)
        if (
            fewer_abilities
            and fewer_abilities.tools == "json"
            and asked.request.tools
            and self._settings.tools == "auto"
        ):
            # A request without tools has other prompts as well, so the caller has to write it anew.
            self._learn(fewer_abilities)
            raise Setback(ToolsRefused("model.tools_refused", model=self.model))
        if fewer_abilities and fewer_abilities in tried:
            fewer_abilities = fewer_abilities._replace(reply_limit="")
        if fewer_abilities is None or fewer_abilities in tried:
            raise setback
        return fewer_abilities

    def _learn(self, abilities: Abilities) -> frozenset[str]:
        """Stores the parts of a request that the endpoint accepts, and returns the parts that it newly refuses."""
        old_abilities = self._abilities
        # A limit that was left out may have been too large only this once.
        new_abilities = (
            abilities if abilities.reply_limit else abilities._replace(reply_limit=old_abilities.reply_limit)
        )
        if new_abilities != old_abilities:
            self._abilities = new_abilities
            self._book.learn(self._endpoint.where, self._model, new_abilities)
        return new_abilities.lacks - old_abilities.lacks


def open_client(endpoint: Endpoint, key: Key | None, connect_seconds: float) -> HttpClient:
    headers = wire_named(endpoint.wire).headers(key) if key else {}
    return HttpClient(endpoint.base_url, headers, connect_seconds, by_proxy=not endpoint.is_loopback)


def setback_of(error: HttpError, endpoint: Endpoint, failures: Failures, connect_seconds: float) -> Setback:
    """Turns a failed HTTP exchange into the Setback (failure of one attempt) that fits it."""
    reason = str(error)
    match error:
        case ConnectTimeout():
            return failures.timed_out(connect_seconds)
        case BadRequest():
            return failures.no_connection("model.bad_request_address", reason, again=False)
        case ProxyUnknown():
            return failures.no_connection("model.proxy_unknown", again=False)
        case NotConnected(__cause__=ssl.SSLError()):
            return failures.no_connection("model.certificate_refused", reason, again=False)
        # A retry is pointless, because nobody starts a server or a proxy during the pause. So the user is told at once.
        case NotConnected(__cause__=ConnectionRefusedError()) if endpoint.is_loopback:
            return failures.no_connection("model.nothing_listens", again=False)
        case NotConnected(__cause__=ConnectionRefusedError()) if proxy := proxy_for(urlsplit(endpoint.base_url)):
            address = f"{proxy.hostname}:{proxy.port}" if proxy.port else str(proxy.hostname)
            return failures.no_connection("model.proxy_unreachable", address, again=False)
        case NotConnected():
            return failures.no_connection("model.proxy_failed" if isinstance(error, ProxyFailed) else NO_ANSWER, reason)
        case _:
            return failures.broken()
