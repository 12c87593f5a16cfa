"""Talking to OpenAI-compatible endpoints, good ones and bad ones, over real HTTP."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import (
    Exchange,
    FakeEndpoint,
    bodies,
    breaks_off,
    chunk,
    falls_silent,
    formats_sent,
    refuses,
    refuses_field,
    says,
    sends,
)

from duckflow.errors import ContextTooLong, ModelError, ProviderRefused, ProviderUnreachable
from duckflow.llm.abilities import AbilityBook
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.keys import Key
from duckflow.llm.openai_compatible import OpenAICompatible
from duckflow.llm.provider import Chunk, Delta, Finished, PromptMessage, Request, Retrying
from duckflow.llm.settings import LlmSettings, Price

QUICK = LlmSettings(
    connect_seconds=5,
    first_byte_seconds=5,
    local_first_byte_seconds=5,
    between_chunks_seconds=5,
    tries=3,
    backoff_seconds=0.01,
    backoff_max_seconds=0.02,
)
HASTY = QUICK.model_copy(update={"local_first_byte_seconds": 0.15, "between_chunks_seconds": 0.15, "tries": 2})
HELLO = Request((PromptMessage("system", "Be kind."), PromptMessage("user", "こんにちは hello")))
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
AS_JSON = Request(HELLO.messages, schema=SCHEMA)
SECRET = "sk-very-secret-9f8e7d6c"


def provider_for(
    server: FakeEndpoint, settings: LlmSettings = QUICK, key: Key | None = None, book: AbilityBook | None = None
) -> OpenAICompatible:
    return OpenAICompatible(Endpoint("fake", server.url, ("FAKE_API_KEY",)), "duck-1", key, settings, book)


async def collect(provider: OpenAICompatible, request: Request = HELLO) -> list[Chunk]:
    try:
        return [chunk async for chunk in provider.stream(request)]
    finally:
        await provider.aclose()


def text_of(chunks: list[Chunk]) -> str:
    """The reply as a consumer sees it: a retry throws away what came before."""
    text = ""
    for item in chunks:
        match item:
            case Delta():
                text += item.text
            case Retrying():
                text = ""
            case Finished():
                pass
    return text


def retries(chunks: list[Chunk]) -> list[Retrying]:
    return [item for item in chunks if isinstance(item, Retrying)]


def finished(chunks: list[Chunk]) -> Finished:
    assert [item for item in chunks if isinstance(item, Finished)] == [chunks[-1]]
    assert isinstance(chunks[-1], Finished)
    return chunks[-1]


async def test_a_reply_comes_in_pieces_and_with_its_usage() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 10}}
    with FakeEndpoint(says("Hel", "lo, 世", "界", usage=usage)) as server:
        settings = QUICK.model_copy(update={"prices": {"fake:duck-1": Price(input=2, output=10, cached=1)}})
        chunks = await collect(provider_for(server, settings), Request(HELLO.messages, max_tokens=50, temperature=0))
    assert chunks[:3] == [Delta("Hel"), Delta("lo, 世"), Delta("界")]
    end = finished(chunks)
    assert end.reason == "stop"
    assert (end.usage.prompt_tokens, end.usage.completion_tokens, end.usage.cached_tokens) == (30, 7, 10)
    assert end.usage.cost_usd == pytest.approx((20 * 2 + 10 * 1 + 7 * 10) / 1e6)
    [body] = server.received
    assert body["model"] == "duck-1"
    assert body["stream"] is True
    assert body["max_tokens"] == 50
    assert body["temperature"] == 0
    assert body["messages"][1] == {"role": "user", "content": "こんにちは hello"}
    assert server.paths == ["/v1/chat/completions"]
    assert "authorization" not in server.headers_seen[0]


async def test_usage_is_estimated_when_the_endpoint_reports_none() -> None:
    with FakeEndpoint(says("世界 four")) as server:
        usage = finished(await collect(provider_for(server))).usage
    assert usage.prompt_tokens == (2 + 4) + (5 + 2 + 4)
    assert usage.completion_tokens == 2 + 2
    assert usage.cost_usd == 0


async def test_the_cost_an_endpoint_reports_is_believed() -> None:
    with FakeEndpoint(says("x", usage={"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25})) as server:
        assert finished(await collect(provider_for(server))).usage.cost_usd == 0.25


async def test_the_connection_is_used_again() -> None:
    ports: list[int] = []

    def answer(exchange: Exchange) -> None:
        ports.append(exchange.client_address[1])
        says("hi")(exchange)

    with FakeEndpoint(answer) as server:
        provider = provider_for(server)
        for _ in range(3):
            assert text_of([item async for item in provider.stream(HELLO)]) == "hi"
        await provider.aclose()
    assert len(set(ports)) == 1


@pytest.mark.parametrize(
    ("headers", "message", "seconds"),
    [
        ({"retry-after": "0.03"}, "slow down", 0.03),
        ({"retry-after-ms": "40", "retry-after": "7"}, "slow down", 0.04),
        ({"retry-after": "9999"}, "slow down", 0.05),
        ({"retry-after": "Mon, 01 Jan 2024 00:00:00 GMT"}, "slow down", 0.0),
        ({"retry-after": format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)}, "slow down", 0.05),
        ({}, "Rate limit reached. Please try again in 20ms.", 0.02),
        ({}, 'quota {"retryDelay": "0.01s"}', 0.05),
    ],
)
async def test_429_waits_as_long_as_it_is_asked_to(headers: dict[str, str], message: str, seconds: float) -> None:
    settings = QUICK.model_copy(update={"retry_after_max_seconds": 0.05, "backoff_seconds": 0.1})
    settings = settings.model_copy(update={"backoff_max_seconds": 0.1})
    with FakeEndpoint(refuses(429, message, headers), says("there you are")) as server:
        chunks = await collect(provider_for(server, settings))
    [again] = retries(chunks)
    assert again.why.key == "model.retry.busy"
    if "retryDelay" not in message:
        assert again.seconds == pytest.approx(seconds, abs=1e-6)
    assert text_of(chunks) == "there you are"


async def test_429_forever_ends_with_a_clear_word() -> None:
    with FakeEndpoint(refuses(429, "slow down", {"retry-after": "0"})) as server:
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider_for(server))
        assert len(server.received) == QUICK.tries
    assert caught.value.key == "model.busy"
    assert caught.value.values["detail"] == "slow down"


@pytest.mark.parametrize("status", [429, 402])
async def test_an_empty_purse_is_final(status: int) -> None:
    with FakeEndpoint(refuses(status, "You exceeded your current quota", code="insufficient_quota")) as server:
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider_for(server))
        assert len(server.received) == 1
    assert caught.value.key == "model.no_credit"


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 529])
async def test_a_passing_failure_is_tried_again(status: int) -> None:
    with FakeEndpoint(refuses(status, "oops"), refuses(status, "oops"), says("fine")) as server:
        chunks = await collect(provider_for(server))
    assert [item.why.key for item in retries(chunks)] == ["model.retry.server"] * 2
    assert retries(chunks)[0].why.values["status"] == status
    assert text_of(chunks) == "fine"


async def test_500_forever() -> None:
    with FakeEndpoint(bodies("<html><title>Bad Gateway</title></html>", 502)) as server:
        with pytest.raises(ProviderUnreachable) as caught:
            await collect(provider_for(server))
        assert len(server.received) == QUICK.tries
    assert caught.value.key == "model.server_failed"
    assert caught.value.values == {"where": server.url, "status": 502, "detail": "Bad Gateway"}


async def test_half_a_stream_then_a_whole_one() -> None:
    with FakeEndpoint(breaks_off("I was say"), says("I was saying this.")) as server:
        chunks = await collect(provider_for(server))
    assert [type(item) for item in chunks] == [Delta, Retrying, Delta, Finished]
    assert text_of(chunks) == "I was saying this."


async def test_a_stream_that_ends_without_a_reason_is_broken() -> None:
    with FakeEndpoint(sends(chunk("I was say"), done=False), says("whole")) as server:
        chunks = await collect(provider_for(server))
    assert retries(chunks)[0].why.key == "model.retry.broken"
    assert text_of(chunks) == "whole"


async def test_half_a_stream_forever() -> None:
    with FakeEndpoint(breaks_off("half")) as server:
        with pytest.raises(ProviderUnreachable) as caught:
            await collect(provider_for(server))
        assert len(server.received) == QUICK.tries
    assert caught.value.key == "model.broken_reply"


async def test_a_server_that_hangs_up_without_a_word() -> None:
    with FakeEndpoint(lambda exchange: exchange.hang_up(), says("back")) as server:
        assert text_of(await collect(provider_for(server))) == "back"


async def test_nothing_at_all_is_a_time_out() -> None:
    with FakeEndpoint(falls_silent()) as server:
        with pytest.raises(ProviderUnreachable) as caught:
            await collect(provider_for(server, HASTY))
        assert len(server.received) == 2
    assert caught.value.key == "model.timed_out"


async def test_a_stream_that_falls_silent_is_a_time_out() -> None:
    with FakeEndpoint(falls_silent("and then"), says("and then he spoke")) as server:
        chunks = await collect(provider_for(server, HASTY))
    assert [type(item) for item in chunks] == [Delta, Retrying, Delta, Finished]
    assert retries(chunks)[0].why.key == "model.retry.timed_out"
    assert text_of(chunks) == "and then he spoke"


async def test_an_endless_drip_ends_too() -> None:
    def drips(exchange: Exchange) -> None:
        exchange.begin()
        while True:
            exchange.piece(b": still thinking\n\n")
            if exchange.server.disconnected.wait(0.02):
                return

    settings = QUICK.model_copy(update={"reply_seconds": 0.2, "tries": 1})
    with FakeEndpoint(drips) as server, pytest.raises(ProviderUnreachable):
        await collect(provider_for(server, settings))


async def test_a_complete_reply_does_not_need_its_usage_or_its_end() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event(chunk("complete"))
        exchange.event(chunk(finish="stop"))
        exchange.hang_up()

    with FakeEndpoint(answer) as server:
        chunks = await collect(provider_for(server))
    assert text_of(chunks) == "complete"
    assert retries(chunks) == []


async def test_a_refused_connection_on_this_machine_is_tried_once_more_only() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        provider = OpenAICompatible(Endpoint("ollama", url), "duck-1", None, QUICK)
        seen: list[Chunk] = []
        with pytest.raises(ProviderUnreachable) as caught:
            async for item in provider.stream(HELLO):
                seen.append(item)
        await provider.aclose()
    assert len(retries(seen)) == 1
    assert caught.value.key == "model.nothing_listens"
    assert caught.value.values["where"] == url
    assert caught.value.exit_code == 5


async def test_a_host_that_does_not_exist() -> None:
    provider = OpenAICompatible(Endpoint("nowhere", "http://duck.invalid/v1"), "duck-1", None, QUICK)
    with pytest.raises(ProviderUnreachable) as caught:
        await collect(provider)
    assert caught.value.values["where"] == "http://duck.invalid/v1"


async def test_401_says_which_variable_to_set_and_keeps_the_key_to_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    key = Key(SECRET, "FAKE_API_KEY")
    with FakeEndpoint(refuses(401, f"Incorrect API key provided: {SECRET}\x1b[31m")) as server:
        provider = provider_for(server, key=key)
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider)
        assert len(server.received) == 1
        assert server.headers_seen[0]["authorization"] == f"Bearer {SECRET}"
    error = caught.value
    assert error.key == "model.key_refused"
    assert error.values["variable"] == "FAKE_API_KEY"
    assert error.values["entry"] == "duckflow fake"
    assert error.values["source"] == "FAKE_API_KEY"
    assert error.values["detail"] == "Incorrect API key provided: *** [31m"
    said = [repr(error), str(error), repr(provider), repr(key), str(vars(error)), caplog.text]
    assert not any(SECRET in text for text in said)


async def test_403_without_a_key_asks_for_one() -> None:
    with FakeEndpoint(refuses(403, "no key")) as server, pytest.raises(ProviderRefused) as caught:
        await collect(provider_for(server))
    assert caught.value.key == "model.key_missing"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, "The model `duck-1` does not exist or you do not have access to it."),
        (404, 'model "duck-1" not found, try pulling it first'),
        (400, "duck-1 is not a valid model ID"),
        (404, "models/duck-1 is not found for API version v1beta"),
    ],
)
async def test_an_unknown_model_is_named(status: int, message: str) -> None:
    with FakeEndpoint(refuses(status, message)) as server:
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider_for(server), AS_JSON)
        assert len(server.received) == 1
    assert caught.value.key == "model.unknown"
    assert caught.value.values["model"] == "duck-1"


@pytest.mark.parametrize("answer", [bodies("404 page not found", 404), bodies("", 301)])
async def test_a_wrong_address_is_named(answer: Callable[[Exchange], None]) -> None:
    with FakeEndpoint(answer) as server, pytest.raises(ProviderRefused) as caught:
        await collect(provider_for(server))
    assert caught.value.key == "model.wrong_address"
    assert caught.value.values["where"] == server.url


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."),
        (400, "Your input exceeds the context window of this model."),
        (400, "the request exceeds the available context size. try increasing the context size"),
        (500, "Context size has been exceeded."),
        (400, "The decoder prompt (length 9001) is longer than the maximum model length of 8192."),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575)."),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "Please reduce the length of the messages or completion."),
        (400, "This model's maximum prompt length is 131072 but the request contains 200000 tokens."),
        (400, "Input is too long for requested model."),
        (413, "Request Entity Too Large"),
        (429, "Request too large for duck-1 on tokens per min (TPM): Limit 10000, Requested 12000"),
    ],
)
async def test_a_context_too_long_in_many_words(status: int, message: str) -> None:
    with FakeEndpoint(refuses(status, message)) as server:
        with pytest.raises(ContextTooLong) as caught:
            await collect(provider_for(server), AS_JSON)
        assert len(server.received) == 1
    assert caught.value.key == "model.too_long"


async def test_a_rate_limit_about_tokens_is_not_a_context_too_long() -> None:
    words = "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 10ms."
    with FakeEndpoint(refuses(429, words), says("ok")) as server:
        assert text_of(await collect(provider_for(server))) == "ok"


async def test_html_with_200_is_no_model() -> None:
    with FakeEndpoint(bodies("<html><title>Welcome to Hotel WiFi</title><body>Log in</body></html>")) as server:
        with pytest.raises(ModelError) as caught:
            await collect(provider_for(server))
        assert len(server.received) == 1
    assert caught.value.key == "model.no_model_there"
    assert caught.value.values["detail"] == "Welcome to Hotel WiFi"


@pytest.mark.parametrize("answer", [sends("what?", "{broken"), bodies('"just a string"'), bodies({"hello": 1})])
async def test_garbage_is_no_reply(answer: Callable[[Exchange], None]) -> None:
    with FakeEndpoint(answer) as server, pytest.raises(ModelError) as caught:
        await collect(provider_for(server))
    assert caught.value.key == "model.no_model_there"


async def test_garbage_between_the_lines_is_skipped() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.begin()
        exchange.piece(b"\xef\xbb\xbf: hello\r\nevent: message\r\nnonsense\r\n\r\n")
        exchange.event("{oops")
        exchange.event(["not", "an", "object"])
        exchange.event({"choices": None})
        exchange.event(chunk("still "))
        whole = 'data: {"choices":[{"delta":{"content":"鴨"},"finish_reason":"stop"}]}\n'.encode()
        exchange.piece(whole[:40])
        exchange.piece(whole[40:44])
        exchange.piece(whole[44:])
        exchange.piece(b"data:[DONE]\n\n")
        exchange.end()

    with FakeEndpoint(answer) as server:
        assert text_of(await collect(provider_for(server))) == "still 鴨"


async def test_a_json_body_cut_off_is_tried_again() -> None:
    with FakeEndpoint(bodies('{"choices": [{"message"'), says("all")) as server:
        assert text_of(await collect(provider_for(server))) == "all"


async def test_an_endpoint_that_does_not_stream() -> None:
    whole = {
        "choices": [{"message": {"role": "assistant", "content": "in one piece"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    with FakeEndpoint(bodies(whole)) as server:
        chunks = await collect(provider_for(server))
    assert text_of(chunks) == "in one piece"
    assert finished(chunks).reason == "length"
    assert finished(chunks).usage.completion_tokens == 4


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "length"), ("content_filter", "refusal"), ("tool_calls", "stop")]
)
async def test_reasons(finish: str, reason: str) -> None:
    with FakeEndpoint(says("so", finish=finish)) as server:
        assert finished(await collect(provider_for(server))).reason == reason


async def test_a_refusal_in_words() -> None:
    refusal = {"choices": [{"delta": {"refusal": "I would rather not."}, "finish_reason": None}]}
    with FakeEndpoint(sends(refusal, chunk(finish="stop"))) as server:
        chunks = await collect(provider_for(server))
    assert text_of(chunks) == "I would rather not."
    assert finished(chunks).reason == "refusal"


async def test_reasoning_is_not_part_of_the_text() -> None:
    def thought(**delta: str) -> dict[str, Any]:
        return {"choices": [{"delta": {"content": None, **delta}}]}

    events = [thought(reasoning_content="hmm"), thought(reasoning="well"), chunk("<thi"), chunk("nk>is it 4?</thi")]
    with FakeEndpoint(sends(*events, chunk("nk>\n\n4"), chunk("2", "stop"))) as server:
        assert text_of(await collect(provider_for(server))) == "42"


async def test_content_in_parts() -> None:
    parts = {"choices": [{"delta": {"content": [{"type": "thinking"}, {"type": "text", "text": "quack"}]}}]}
    with FakeEndpoint(sends(parts, chunk(finish="stop"))) as server:
        assert text_of(await collect(provider_for(server))) == "quack"


@pytest.mark.parametrize(
    "error",
    [
        {"code": 502, "message": "upstream died"},
        {"message": "The server had an error", "type": "server_error"},
        {"message": "Overloaded", "type": "overloaded_error"},
        "something went wrong",
    ],
)
async def test_an_error_inside_the_stream_is_tried_again(error: Any) -> None:
    with FakeEndpoint(sends(chunk("hal"), {"error": error}), says("whole")) as server:
        chunks = await collect(provider_for(server))
    assert len(retries(chunks)) == 1
    assert text_of(chunks) == "whole"


async def test_a_final_error_inside_a_200_is_final() -> None:
    with FakeEndpoint(bodies({"error": {"code": 401, "message": "No auth"}})) as server:
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider_for(server))
        assert len(server.received) == 1
    assert caught.value.key == "model.key_missing"


async def test_what_is_refused_is_left_out_step_by_step_and_remembered(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "abilities.json"
    answer = refuses_field("response_format", "response_format json_schema is not supported", says('{"ok": true}'))
    with FakeEndpoint(answer) as server:
        chunks = await collect(provider_for(server, book=AbilityBook(path)), AS_JSON)
        assert formats_sent(server) == ["json_schema!", "json_schema", "json_object", "text"]
        assert text_of(chunks) == '{"ok": true}'
        assert retries(chunks) == []
        await collect(provider_for(server, book=AbilityBook(path)), AS_JSON)
        assert formats_sent(server)[4:] == ["text"]
        await collect(provider_for(server), AS_JSON)
        assert len(formats_sent(server)) == 9, "another book knows nothing"


async def test_a_schema_is_sent_as_it_is() -> None:
    with FakeEndpoint(says("{}")) as server:
        await collect(provider_for(server), AS_JSON)
    form = server.received[0]["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"] == SCHEMA
    assert form["json_schema"]["strict"] is True


async def test_a_refusal_without_reasons_is_blamed_on_the_format_only_if_that_helps() -> None:
    with FakeEndpoint(refuses_field("response_format", "Bad Request", says("{}"))) as server:
        assert text_of(await collect(provider_for(server), AS_JSON)) == "{}"
    with FakeEndpoint(refuses(400, "Bad Request")) as server, pytest.raises(ProviderRefused) as caught:
        await collect(provider_for(server), AS_JSON)
    assert caught.value.key == "model.request_refused"
    assert caught.value.values["detail"] == "Bad Request"


async def test_newer_names_and_fixed_temperatures(tmp_path: Path) -> None:
    answer = refuses_field(
        "max_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        refuses_field(
            "temperature",
            "Unsupported value: 'temperature' does not support 0 with this model.",
            refuses_field("stream_options", "Unrecognized request argument: stream_options", says("done")),
        ),
    )
    request = Request(HELLO.messages, max_tokens=9, temperature=0)
    book = AbilityBook(tmp_path / "abilities.json")
    with FakeEndpoint(answer) as server:
        assert text_of(await collect(provider_for(server, book=book), request)) == "done"
        assert server.received[-1]["max_completion_tokens"] == 9
        assert "temperature" not in server.received[-1]
        first = len(server.received)
        await collect(provider_for(server, book=book), request)
        assert len(server.received) == first + 1


async def test_an_endpoint_that_knows_no_limit_by_any_name() -> None:
    answer = refuses_field(
        "max_tokens",
        "unknown field max_tokens, did you mean max_completion_tokens",
        refuses_field("max_completion_tokens", "unknown field max_completion_tokens", says("free")),
    )
    with FakeEndpoint(answer) as server:
        assert text_of(await collect(provider_for(server), Request(HELLO.messages, max_tokens=9))) == "free"
    assert len(server.received) == 3


async def test_a_limit_too_large_is_left_out_but_not_held_against_the_endpoint(tmp_path: Path) -> None:
    book = AbilityBook(tmp_path / "abilities.json")
    words = "max_tokens is too large: 99999. This model supports at most 4096 completion tokens."
    with FakeEndpoint(refuses_field("max_tokens", words, says("ok")), says("ok")) as server:
        assert (
            text_of(await collect(provider_for(server, book=book), Request(HELLO.messages, max_tokens=99999))) == "ok"
        )
        await collect(provider_for(server, book=book), Request(HELLO.messages, max_tokens=50))
    assert server.received[-1]["max_tokens"] == 50


async def stop_by_closing(chunks: AsyncIterator[Chunk]) -> None:
    async with aclosing(chunks) as stream:  # pyright cannot know that it is a generator
        await anext(stream)


async def test_cancelling_closes_the_connection_at_once() -> None:
    with FakeEndpoint(falls_silent("I could go on")) as server:
        provider = provider_for(server)
        heard = asyncio.Event()

        async def listen() -> None:
            async for _ in provider.stream(HELLO):
                heard.set()

        task = asyncio.create_task(listen())
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.disconnected.wait, 5)
        await provider.aclose()


async def test_cancelling_while_waiting_for_the_first_word() -> None:
    with FakeEndpoint(falls_silent()) as server:
        provider = provider_for(server)
        task = asyncio.create_task(collect(provider))
        while not server.received:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.disconnected.wait, 5)


async def test_closing_the_iterator_closes_the_connection() -> None:
    with FakeEndpoint(falls_silent("I could go on")) as server:
        provider = provider_for(server)
        async with aclosing(provider.stream(HELLO)) as chunks:
            assert await anext(chunks) == Delta("I could go on")
        assert await asyncio.to_thread(server.disconnected.wait, 5)
        await provider.aclose()


async def test_a_broken_file_name_in_the_prompt_is_no_reason_to_fail() -> None:
    with FakeEndpoint(says("fine")) as server:
        request = Request((PromptMessage("user", "caf\udce9.txt"),))
        assert text_of(await collect(provider_for(server), request)) == "fine"


async def test_an_https_address_that_does_not_speak_it() -> None:
    with FakeEndpoint(says("hi")) as server:
        secure = Endpoint("fake", server.url.replace("http:", "https:"))
        with pytest.raises(ProviderUnreachable) as caught:
            await collect(OpenAICompatible(secure, "duck-1", None, QUICK))
    assert caught.value.key == "model.certificate_refused"


async def test_the_window_is_set_or_known() -> None:
    assert OpenAICompatible(Endpoint("openai", "https://x"), "gpt-4o-mini").window == 128_000
    assert OpenAICompatible(Endpoint("openrouter", "https://x"), "anthropic/claude-sonnet-5").window == 200_000
    assert OpenAICompatible(Endpoint("mine", "https://x", window=9000), "duck-1").window == 9000
    assert OpenAICompatible(Endpoint("mine", "https://x"), "duck-1", None, LlmSettings(window=7)).window == 7
