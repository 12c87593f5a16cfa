"""Models behind an OpenAI-compatible endpoint. Imports httpx: import this module only to build a provider."""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Sequence
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
from duckflow.llm.provider import Chunk, Finished, Request, data_urls
from duckflow.llm.responses import PATH, ResponsesChunks, responses_body
from duckflow.llm.retry import Setback, persist
from duckflow.llm.settings import LlmSettings
from duckflow.llm.stream import ReplyListener, StreamedReply, error_text
from duckflow.llm.usage import measure
from duckflow.state.message import PromptMessage, ToolSpec

SCHEMA_NAME = "reply"


class OpenAICompatible:
    """A provider that streams from `/chat/completions`, tries again where that helps, and learns what is accepted."""

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
        self._key = key
        self._settings = settings or LlmSettings()
        self._book = book or AbilityBook()
        self._failures = Failures(endpoint, model, key)
        facts = facts_of(endpoint.name, model)
        tools = "json" if facts.has("t") is False else "native" if endpoint.tools else ""
        wire = "responses" if endpoint.responses and facts.has("r") is not False else "chat"
        known = Abilities(reply_limit=endpoint.reply_limit, tools=tools, wire=wire)
        self._abilities = self._book.recall(endpoint.where, model, known)
        self._clients = Clients(lambda: open_client(endpoint, key, self._settings.connect_seconds))

    def __repr__(self) -> str:
        return f"OpenAICompatible({self.model!r}, {self._endpoint.where!r})"

    @property
    def model(self) -> str:
        return f"{self._endpoint.name}:{self._model}"

    @property
    def window(self) -> int:
        return self._settings.window or self._endpoint.window or facts_of(self._endpoint.name, self._model).window

    @property
    def takes_tools(self) -> bool:
        wanted = self._settings.tools
        return wanted == "native" or (wanted == "auto" and self._abilities.tools != "json")

    @property
    def takes_pictures(self) -> bool | None:
        return facts_of(self._endpoint.name, self._model).has("v") if self._abilities.pictures else False

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
            body = self._body(request, abilities)
            deadline = asyncio.get_running_loop().time() + self._first_byte_seconds
            response = await self._send(client, body, deadline, abilities.wire)
            try:
                if response.is_success:
                    self._learn(abilities)
                    told = ResponsesChunks().told if abilities.wire == "responses" else None
                    listener = ReplyListener(response, self._failures, self._settings, told)
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
                self._learn(abilities._replace(pictures=refused.error.key != BLIND))
                raise refused
            abilities = self._lowered(abilities, response, answer, body, tried)
            tried.add(abilities)

    def _body(self, request: Request, abilities: Abilities) -> dict[str, Any]:
        limit = request.max_tokens or self._settings.max_reply_tokens
        temperature = self._settings.temperature if request.temperature is None else request.temperature
        warmth = {"temperature": temperature} if temperature is not None and abilities.temperature else {}
        if abilities.wire == "responses":
            effort = self._settings.effort if abilities.effort else ""
            body = responses_body(self._model, request, self._endpoint.name, effort) | warmth
            if limit and abilities.reply_limit:
                body["max_output_tokens"] = limit
            if request.schema is not None and abilities.format != "text":
                form = _response_format(request.schema, abilities.format)
                body["text"] = {"format": form.get("json_schema", {}) | {"type": form["type"]}}
            return body
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [
                _message(one, request, self._endpoint, abilities) for one in _in_order(request.messages, abilities)
            ],
            "stream": True,
            **warmth,
            **dict(self._endpoint.extra),
        }
        if abilities.stream_usage:
            body["stream_options"] = {"include_usage": True}
        if limit and abilities.reply_limit:
            body[abilities.reply_limit] = limit
        if self._settings.effort and abilities.effort:
            body["reasoning_effort"] = self._settings.effort
        if request.tools:
            body["tools"] = [_tool(one) for one in request.tools]
        if request.schema is not None and abilities.format != "text":
            body["response_format"] = _response_format(request.schema, abilities.format)
        return body

    @property
    def _first_byte_seconds(self) -> float:
        settings = self._settings
        return settings.local_first_byte_seconds if self._endpoint.is_loopback else settings.first_byte_seconds

    async def _send(
        self, client: httpx.AsyncClient, body: dict[str, Any], deadline: float, wire: str
    ) -> httpx.Response:
        # A lone surrogate, such as a broken file name in the prompt, is no reason to fail.
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        try:
            request = client.build_request(
                "POST",
                self._endpoint.base_url + (PATH if wire == "responses" else "/chat/completions"),
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
        calls = reply.calls
        text = reply.text + "".join(call.arguments for call in calls)
        where = self._endpoint.name
        kept = tuple(call.model_copy(update={"extra": {where: call.extra}}) if call.extra else call for call in calls)
        extra = {where: reply.thinking} if calls and reply.thinking else {}
        return Finished(reply.reason, measure(request, text, reply.reported, price), kept, extra)

    def _lowered(
        self, abilities: Abilities, response: httpx.Response, answer: str, sent: dict[str, Any], tried: set[Abilities]
    ) -> Abilities:
        """What to try next after a refusal. Raises when no smaller request would help."""
        status = response.status_code
        setback = self._failures.of_status(status, response.headers, answer)
        lower = abilities.without_named(status, answer, sent)
        if lower is None and setback.error.key == "model.request_refused":
            lower = abilities.with_simpler_format(sent)
        if lower and lower.tools == "json" and "tools" in sent and self._settings.tools == "auto":
            # Without tools it is another request altogether: whoever asked makes it.
            self._learn(lower)
            raise Setback(ToolsRefused("model.tools_refused", model=self.model))
        if lower and lower in tried:
            lower = lower._replace(reply_limit="")
        if lower is None or lower in tried:
            raise setback
        return lower

    def _learn(self, abilities: Abilities) -> None:
        # A limit left out may have been too large just once.
        learned = abilities if abilities.reply_limit else abilities._replace(reply_limit=self._abilities.reply_limit)
        if learned != self._abilities:
            self._abilities = learned
            self._book.learn(self._endpoint.where, self._model, learned)


def _message(message: PromptMessage, request: Request, endpoint: Endpoint, abilities: Abilities) -> dict[str, Any]:
    """What was thought, and what was added to the calls, goes back only to where it came from."""
    told: dict[str, Any] = dict(message.extra.get(endpoint.name, {})) if abilities.thoughts else {}
    told |= {"role": message.role, "content": _content(message, request)}
    if message.answers:
        told["tool_call_id"] = _wire_id(endpoint, message.answers)
    if message.calls:
        told["tool_calls"] = [
            {
                **call.extra.get(endpoint.name, {}),
                "id": _wire_id(endpoint, call.call_id),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.calls
        ]
    return told


def _wire_id(endpoint: Endpoint, call_id: str) -> str:
    """An id that another endpoint gave may be too long for this one."""
    if not endpoint.short_ids or re.fullmatch(r"[A-Za-z0-9]{9}", call_id):
        return call_id
    return hashlib.sha256(call_id.encode()).hexdigest()[:9]


def _content(message: PromptMessage, request: Request) -> str | list[dict[str, Any]] | None:
    """The text; what is said with pictures is a list of parts."""
    pictures = [{"type": "image_url", "image_url": {"url": one}} for one in data_urls(message, request.pictures)]
    if pictures:
        return [{"type": "text", "text": message.text}, *pictures]
    return message.text or (None if message.calls else "")


def _in_order(messages: Sequence[PromptMessage], abilities: Abilities) -> list[PromptMessage]:
    """The messages; where nobody may speak after a result, what is said there stands at its end."""
    told: list[PromptMessage] = []
    for message in messages:
        if not abilities.user_after_tool and told and told[-1].role == "tool" and message.role == "user":
            result = told.pop()
            text = f"{result.text}\n\n{message.text}"
            told.append(result._replace(text=text, pictures=message.pictures))
        else:
            told.append(message)
    return told


def _tool(tool: ToolSpec) -> dict[str, Any]:
    told = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": told}


def _response_format(schema: dict[str, Any], form: str) -> dict[str, Any]:
    if form == "object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": SCHEMA_NAME, "schema": schema, "strict": form == "strict"}}
