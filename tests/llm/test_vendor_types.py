"""The vendors' SDKs as an independent check: they validate what the wires send, and read what our fake servers send."""

import json
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin

import pytest
from fake_endpoint import FakeEndpoint
from talking import QUICK, collect
from test_vendors import BOTH, EFFORT, SHOWN, conversation
from typing_extensions import get_type_hints, is_typeddict
from vendors import SECRET, VENDORS, Said, Vendor

from duckflow.state.data import tables

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
PLAIN: dict[Any, tuple[type, ...]] = {
    str: (str,),
    int: (int,),
    float: (int, float),
    bool: (bool,),
    type(None): (type(None),),
}
Check = Callable[[dict[str, Any]], None]


def fault_of(value: Any, kind: Any, where: str = "body") -> str:
    """Returns the reason why a value does not fit an SDK's type, or nothing. An unknown field is a fault too."""
    if hasattr(kind, "__value__"):
        return fault_of(value, kind.__value__, where)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Annotated, Required, NotRequired):
        return fault_of(value, args[0], where)
    if origin in (Union, UnionType):
        faults = [fault_of(value, inner, where) for inner in args]
        return "" if "" in faults else max(faults, key=len)
    if origin is Literal:
        return "" if value in args else f"{where}: {value!r} is none of {args}"
    if is_typeddict(kind):
        return _fault_of_table(value, kind, where)
    if kind in (Any, object):
        return ""
    if origin in (dict, Mapping):
        return "" if isinstance(value, dict) else f"{where}: no object"
    if origin is not None and args:
        items = cast("list[Any]", value) if isinstance(value, list) else [NotImplemented]
        return next(
            (fault for number, item in enumerate(items) if (fault := fault_of(item, args[0], f"{where}[{number}]"))), ""
        )
    right = kind in PLAIN and isinstance(value, PLAIN[kind])
    return "" if right and (kind is bool or not isinstance(value, bool)) else f"{where}: {value!r} is no {kind}"


def _fault_of_table(value: Any, kind: Any, where: str) -> str:
    if not isinstance(value, dict):
        return f"{where}: no object"
    table, hints = cast("dict[str, Any]", value), get_type_hints(kind, include_extras=True)
    strange, missing = table.keys() - hints.keys(), kind.__required_keys__ - table.keys()
    if strange or missing:
        return f"{where}: {kind.__name__} has no {sorted(strange)}, wants {sorted(missing)}"
    return next((fault for name in table if (fault := fault_of(table[name], hints[name], f"{where}.{name}"))), "")


def typed(kind: Any, *ours: str) -> Check:
    """Returns a check that a body fits the SDK's own type, except for the fields `ours`."""

    def check(body: dict[str, Any]) -> None:
        assert fault_of({name: value for name, value in body.items() if name not in ours}, kind) == ""

    return check


def test_the_check_finds_faults() -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    body: dict[str, Any] = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    typed(CompletionCreateParamsStreaming)(body)
    wrong = ({"quack": 1}, {"messages": [{"role": "duck", "content": "x"}]}, {"temperature": "hot"}, {"model": None})
    assert all(fault_of(body | fault, CompletionCreateParamsStreaming) for fault in wrong)


def google_check() -> Check:
    from google.genai import types

    def check(body: dict[str, Any]) -> None:
        for content in body["contents"]:
            types.Content.model_validate(content)
        types.Content.model_validate(body["systemInstruction"])
        for tool in body.get("tools", []):
            types.Tool.model_validate(tool)
        if config := body.get("generationConfig"):
            types.GenerationConfig.model_validate(config)

    return check


def checks(wire: str) -> Check:
    # The SDKs take seconds to import, so they are not imported while tests are collected.
    if wire == "google":
        return google_check()
    if wire == "anthropic":
        from anthropic.types.message_create_params import MessageCreateParamsStreaming

        return typed(MessageCreateParamsStreaming)
    if wire == "responses":
        from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

        return typed(ResponseCreateParamsStreaming)
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

    return typed(CompletionCreateParamsStreaming, "usage")


@pytest.mark.parametrize("wire", VENDORS)
async def test_every_request_fits_the_vendors_types(wire: str) -> None:
    vendor, check = VENDORS[wire], checks(wire)
    bodies = await conversation(vendor)
    for effort in ("none", "minimal", "xhigh"):
        settings = QUICK.model_copy(update={"effort": effort, "temperature": 0.5})
        for model in ("", "claude-sonnet-5") if wire == "anthropic" else ("",):
            with FakeEndpoint(vendor.says(Said("{}"))) as server:
                asked = SHOWN._replace(schema=SCHEMA, max_tokens=None)
                await collect(vendor.at(server, settings, model), asked)
            bodies += server.received
    for body in bodies:
        check(_without_marks_of_others(body, wire))


def _without_marks_of_others(body: dict[str, Any], wire: str) -> dict[str, Any]:
    """Removes OpenRouter's own fields for Claude's cache and thoughts, which OpenAI's types do not know."""
    if wire != "chat":
        return body
    messages: list[dict[str, Any]] = json.loads(json.dumps(body["messages"]))
    for message in messages:
        for name in ("reasoning", "reasoning_details"):
            message.pop(name, None)
        parts = tables(message["content"])
        for part in parts:
            part.pop("cache_control", None)
    return body | {"messages": messages}


async def read_chat(vendor: Vendor, server: FakeEndpoint) -> tuple[str, int]:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key=SECRET, base_url=server.url, max_retries=0)
    texts, calls = "", set[int]()
    messages: Any = [{"role": "user", "content": "hello"}]
    stream = await client.chat.completions.create(model=vendor.model, messages=messages, stream=True)
    async for chunk in stream:
        for choice in chunk.choices:
            texts += choice.delta.content or ""
            calls |= {call.index for call in choice.delta.tool_calls or []}
    return texts, len(calls)


async def read_responses(vendor: Vendor, server: FakeEndpoint) -> tuple[str, int]:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key=SECRET, base_url=server.url, max_retries=0)
    asked: Any = [{"role": "user", "content": "hello"}]
    texts, calls = "", 0
    async for event in await client.responses.create(model=vendor.model, input=asked, stream=True):
        texts += event.delta if event.type == "response.output_text.delta" else ""
        calls += event.type == "response.output_item.done" and event.item.type == "function_call"
    return texts, calls


async def read_anthropic(vendor: Vendor, server: FakeEndpoint) -> tuple[str, int]:
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(api_key=SECRET, base_url=server.url.removesuffix("/v1"), max_retries=0)
    asked: Any = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    async with client.messages.stream(model=vendor.model, max_tokens=9, messages=asked) as stream:
        message = await stream.get_final_message()
    texts = "".join(block.text for block in message.content if block.type == "text")
    return texts, sum(block.type == "tool_use" for block in message.content)


async def read_google(vendor: Vendor, server: FakeEndpoint) -> tuple[str, int]:
    from google import genai

    client: Any = genai.Client(api_key=SECRET, http_options={"base_url": server.url.removesuffix("/v1")})
    texts, calls = "", 0
    async for reply in await client.aio.models.generate_content_stream(model=vendor.model, contents="hello"):
        for content in [candidate.content for candidate in reply.candidates if candidate.content]:
            texts += "".join(part.text or "" for part in content.parts if not part.thought)
        calls += len(reply.function_calls or [])
    return texts, calls


READERS = {"chat": read_chat, "responses": read_responses, "anthropic": read_anthropic, "google": read_google}


@pytest.mark.slow
@pytest.mark.parametrize("wire", VENDORS)
async def test_the_vendors_parsers_read_what_our_servers_send(wire: str) -> None:
    vendor = VENDORS[wire]
    with FakeEndpoint(vendor.says(BOTH)) as server:
        assert await READERS[wire](vendor, server) == ("I look.", 2)
        ours = [chunk async for chunk in vendor.at(server, EFFORT).stream(SHOWN)]
    assert ours, "and ours reads the same"
