"""Talking to an OpenAI-compatible endpoint over real HTTP."""

import asyncio
from contextlib import aclosing

import pytest
from fake_endpoint import (
    Exchange,
    FakeEndpoint,
    falls_silent,
    says,
)
from talking import HELLO, QUICK, collect, finished, provider_for, text_of

from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.provider import Chunk, Delta, Request
from duckflow.llm.settings import LlmSettings, Price
from duckflow.state.message import PromptMessage


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


async def test_the_cost_that_an_endpoint_reports_is_used() -> None:
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
        assert await asyncio.to_thread(server.asked.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.disconnected.wait, 5)


async def listen(provider: EndpointModel) -> list[Chunk]:
    return [item async for item in provider.stream(HELLO)]


async def test_no_connection_stays_behind_whenever_a_request_is_cancelled() -> None:
    with FakeEndpoint(says("hi")) as server:
        provider = provider_for(server)
        for steps in range(300):
            task = asyncio.create_task(listen(provider))
            for _ in range(steps % 100):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert text_of(await listen(provider)) == "hi"
        assert await asyncio.to_thread(server.left_by_all_but, 1)
        await provider.aclose()


async def test_a_cancelled_request_does_not_take_another_one_with_it() -> None:
    with FakeEndpoint(falls_silent(), says("hi")) as server:
        provider = provider_for(server)
        silent = asyncio.create_task(listen(provider))
        assert await asyncio.to_thread(server.asked.wait, 5)
        async with aclosing(provider.stream(HELLO)) as chunks:
            assert await anext(chunks) == Delta("hi")
            silent.cancel()
            await asyncio.gather(silent, return_exceptions=True)
            assert finished([item async for item in chunks]).reason == "stop"
        await provider.aclose()
        assert await asyncio.to_thread(server.left_by_all_but, 0)


async def test_closing_the_iterator_closes_the_connection() -> None:
    with FakeEndpoint(falls_silent("I could go on")) as server:
        provider = provider_for(server)
        async with aclosing(provider.stream(HELLO)) as chunks:
            assert await anext(chunks) == Delta("I could go on")
        assert await asyncio.to_thread(server.disconnected.wait, 5)
        await provider.aclose()


async def test_a_broken_file_name_in_the_prompt_does_not_fail_the_request() -> None:
    with FakeEndpoint(says("fine")) as server:
        request = Request((PromptMessage("user", "caf\udce9.txt"),))
        assert text_of(await collect(provider_for(server), request)) == "fine"


async def test_the_window_comes_from_settings_or_known_facts() -> None:
    assert EndpointModel(Endpoint("openai", "https://x"), "gpt-4o-mini").window == 128_000
    assert EndpointModel(Endpoint("openrouter", "https://x"), "anthropic/claude-sonnet-5").window == 1_000_000
    assert EndpointModel(Endpoint("mine", "https://x", window=9000), "duck-1").window == 9000
    assert EndpointModel(Endpoint("mine", "https://x"), "duck-1", None, LlmSettings(window=7)).window == 7
