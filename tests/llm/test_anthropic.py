"""The wire of Anthropic, against a small server on loopback that speaks it."""

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest
from fake_endpoint import Answer, Exchange, FakeEndpoint, falls_silent, refuses
from talking import AS_JSON, HASTY, HELLO, QUICK, SCHEMA, collect, finished, retries, text_of

from duckflow.errors import ContextTooLong, ModelError, ProviderRefused, ProviderUnreachable
from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import KNOWN, Key
from duckflow.llm.provider import CallDelta, Delta, Request, Thought
from duckflow.llm.settings import LlmSettings
from duckflow.state.message import PromptMessage, ToolSpec

SECRET = "sk-ant-very-secret-1234"
MODEL = "claude-sonnet-4-5"


def send(exchange: Exchange, kind: str, **fields: Any) -> None:
    exchange.piece(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())


def begin(exchange: Exchange, *texts: str) -> None:
    exchange.begin()
    usage = {"input_tokens": 20, "output_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 0}
    message: dict[str, Any] = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    send(exchange, "message_start", message=message)
    send(exchange, "content_block_start", index=0, content_block={"type": "text", "text": ""})
    for text in texts:
        send(exchange, "content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def tells(*texts: str, stop: str = "end_turn") -> Answer:
    def answer(exchange: Exchange) -> None:
        begin(exchange, *texts)
        send(exchange, "content_block_stop", index=0)
        send(exchange, "message_delta", delta={"stop_reason": stop}, usage={"output_tokens": 9})
        send(exchange, "message_stop")
        exchange.end()

    return answer


def tells_half(exchange: Exchange) -> None:
    begin(exchange, "I was say")
    exchange.hang_up()


def tells_and_falls_silent(exchange: Exchange) -> None:
    begin(exchange, "I was say")
    exchange.wait_for_disconnect()


def claude_at(server: FakeEndpoint, settings: LlmSettings = QUICK, model: str = MODEL) -> EndpointModel:
    endpoint = next(endpoint for endpoint in KNOWN if endpoint.name == "anthropic")
    moved = endpoint._replace(base_url=server.url.removesuffix("/v1"), in_keyring=False)
    return EndpointModel(moved, model, Key(SECRET, "ANTHROPIC_API_KEY"), settings)


async def test_a_reply_streams_with_usage_and_cost() -> None:
    with FakeEndpoint(tells("Hel", "lo")) as server:
        request = Request((*HELLO.messages, PromptMessage("assistant", "Hm?"), PromptMessage("user", "Well?")))
        provider = claude_at(server)
        chunks = await collect(provider, request)
    assert chunks[:2] == [Delta("Hel"), Delta("lo")]
    end = finished(chunks)
    assert end.reason == "stop"
    assert (end.usage.prompt_tokens, end.usage.completion_tokens, end.usage.cached_tokens) == (25, 9, 5)
    assert end.usage.cost_usd > 0
    [body] = server.received
    assert server.paths[0].startswith("/v1/messages")
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert "Be kind." in json.dumps(body["system"])
    assert provider.model == f"anthropic:{MODEL}"
    assert provider.window == 200_000


def thinks_and_calls(exchange: Exchange) -> None:
    begin(exchange, "I look.")
    send(exchange, "content_block_stop", index=0)
    send(exchange, "content_block_start", index=1, content_block={"type": "thinking", "thinking": "", "signature": ""})
    send(exchange, "content_block_delta", index=1, delta={"type": "thinking_delta", "thinking": "Hm, a.txt"})
    send(exchange, "content_block_delta", index=1, delta={"type": "signature_delta", "signature": "signed"})
    send(exchange, "content_block_stop", index=1)
    block: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    send(exchange, "content_block_start", index=2, content_block=block)
    for piece in ('{"path":', ' "a.txt"}'):
        send(exchange, "content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": piece})
    send(exchange, "content_block_stop", index=2)
    send(exchange, "message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9})
    send(exchange, "message_stop")
    exchange.end()


async def test_tools_are_called_and_thoughts_are_sent_back_with_their_signature() -> None:
    tool = ToolSpec("read", "read a file", {"type": "object", "properties": {"path": {"type": "string"}}})
    request = Request(HELLO.messages, tools=(tool,))
    with FakeEndpoint(thinks_and_calls, tells("It is empty.")) as server:
        provider = claude_at(server, QUICK.model_copy(update={"effort": "low"}))
        assert provider.takes_tools
        chunks = [chunk async for chunk in provider.stream(request)]
        assert [chunk for chunk in chunks if isinstance(chunk, Thought)] == [Thought("Hm, a.txt")]
        assert [chunk.name for chunk in chunks if isinstance(chunk, CallDelta) and chunk.name] == ["read"]
        end = finished(chunks)
        [call] = end.calls
        assert (call.call_id, call.name, json.loads(call.arguments)) == ("toolu_1", "read", {"path": "a.txt"})
        again = (
            *HELLO.messages,
            PromptMessage("assistant", "I look.", end.calls, extra=end.extra),
            PromptMessage("tool", "nothing in it", answers="toolu_1"),
            PromptMessage("user", "[state]"),
        )
        assert text_of(await collect(provider, Request(again, tools=(tool,)))) == "It is empty."
        first, second = server.received
    assert first["tools"][0]["name"] == "read"
    kinds = [block["type"] for block in second["messages"][1]["content"]]
    assert sorted(kinds) == ["text", "thinking", "tool_use"]
    assert "signed" in json.dumps(second["messages"][1])
    result, state = second["messages"][2]["content"]
    assert result["tool_use_id"] == "toolu_1" and state["text"] == "[state]"
    assert "cache_control" in result and "cache_control" not in state, "the state at the end is not worth keeping"


async def test_a_schema_is_asked_for_natively() -> None:
    with FakeEndpoint(tells('{"ok": true}')) as server:
        assert text_of(await collect(claude_at(server), AS_JSON)) == '{"ok": true}'
    shape = server.received[0]["output_config"]["format"]
    assert shape["type"] == "json_schema"
    assert shape["schema"]["properties"] == SCHEMA["properties"]


async def test_a_refused_schema_is_left_out() -> None:
    def answer(exchange: Exchange) -> None:
        if "output_config" in exchange.endpoint.received[-1]:
            refuses(400, "output_config.format: schema is too complex", type="invalid_request_error")(exchange)
        else:
            tells("{}")(exchange)

    with FakeEndpoint(answer) as server:
        chunks = await collect(claude_at(server), AS_JSON)
    assert retries(chunks) == []
    assert text_of(chunks) == "{}"


async def test_the_reply_limit_cuts_off() -> None:
    with FakeEndpoint(tells("cut", stop="max_tokens")) as server:
        chunks = await collect(claude_at(server), Request(HELLO.messages, max_tokens=3))
    assert finished(chunks).reason == "length"
    assert server.received[0]["max_tokens"] == 3


@pytest.mark.parametrize(("status", "why"), [(429, "model.retry.busy"), (529, "model.retry.server")])
async def test_passing_failures_are_tried_again(status: int, why: str) -> None:
    with FakeEndpoint(refuses(status, "not now", {"retry-after": "0.01"}), tells("now")) as server:
        chunks = await collect(claude_at(server))
        assert len(server.received) == 2
    assert [again.why.key for again in retries(chunks)] == [why]
    assert retries(chunks)[0].seconds == pytest.approx(0.01)
    assert text_of(chunks) == "now"


async def test_after_half_a_stream_the_request_is_sent_again() -> None:
    with FakeEndpoint(tells_half, tells("I was saying this.")) as server:
        chunks = await collect(claude_at(server))
    assert len(retries(chunks)) == 1
    assert text_of(chunks) == "I was saying this."


async def test_streams_that_always_break_off_end_in_an_error() -> None:
    with FakeEndpoint(tells_half) as server, pytest.raises(ProviderUnreachable):
        await collect(claude_at(server))


@pytest.mark.parametrize("answer", [tells_and_falls_silent, falls_silent()])
async def test_silence_is_a_time_out(answer: Answer) -> None:
    with FakeEndpoint(answer) as server:
        with pytest.raises(ProviderUnreachable) as caught:
            await collect(claude_at(server, HASTY))
        assert len(server.received) == 2
    assert caught.value.key == "model.timed_out"


@pytest.mark.parametrize(
    ("status", "message", "error", "key"),
    [
        (401, f"invalid x-api-key {SECRET}", ProviderRefused, "model.key_refused_alone"),
        (404, f"model: {MODEL} not found", ProviderRefused, "model.unknown"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", ContextTooLong, "model.too_long"),
        (400, "Your credit balance is too low", ProviderRefused, "model.no_credit"),
    ],
)
async def test_final_errors_have_clear_messages(status: int, message: str, error: type[ModelError], key: str) -> None:
    with FakeEndpoint(refuses(status, message)) as server:
        with pytest.raises(error) as caught:
            await collect(claude_at(server))
        assert len(server.received) == 1
    assert caught.value.key == key
    assert SECRET not in repr(caught.value) + str(caught.value.values)


async def test_an_error_inside_the_stream_is_tried_again() -> None:
    def answer(exchange: Exchange) -> None:
        begin(exchange, "hal")
        send(exchange, "error", error={"type": "overloaded_error", "message": "Overloaded"})
        exchange.end()

    with FakeEndpoint(answer, tells("whole")) as server:
        chunks = await collect(claude_at(server))
    assert len(retries(chunks)) == 1
    assert text_of(chunks) == "whole"


async def test_an_address_where_nothing_listens() -> None:
    with FakeEndpoint(tells("x")) as server:
        pass
    with pytest.raises(ProviderUnreachable) as caught:
        await anext(claude_at(server).stream(HELLO))
    assert caught.value.key == "model.nothing_listens", "told at once"
    assert caught.value.values["where"] == server.url.removesuffix("/v1")


async def test_closing_and_cancelling_close_the_connection() -> None:
    with FakeEndpoint(tells_and_falls_silent) as server:
        provider = claude_at(server)
        async with aclosing(provider.stream(HELLO)) as chunks:
            assert await anext(chunks) == Delta("I was say")
        assert await asyncio.to_thread(server.disconnected.wait, 5)
        server.disconnected.clear()
        server.asked.clear()
        task = asyncio.create_task(collect(provider))
        assert await asyncio.to_thread(server.asked.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.disconnected.wait, 5)
