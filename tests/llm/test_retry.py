"""When another try helps, and when it does not."""

import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from fake_endpoint import Answer, FakeEndpoint, bodies, breaks_off, chunk, refuses, says, sends
from talking import HELLO, QUICK, collect, provider_for, retries, text_of

from duckflow.errors import ProviderRefused, ProviderUnreachable
from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.provider import Delta, Finished, Retrying


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (refuses(429, "slow down", {"retry-after": "0.03"}), 0.03),
        (refuses(429, "slow down", {"retry-after-ms": "40", "retry-after": "7"}), 0.04),
        (refuses(429, "slow down", {"retry-after": "9999"}), 0.05),
        (refuses(429, "slow down", {"retry-after": "Mon, 01 Jan 2024 00:00:00 GMT"}), 0.0),
        (refuses(429, "slow down", {"retry-after": format_datetime(datetime.now(UTC) + timedelta(hours=1))}), 0.05),
        (refuses(429, "Rate limit reached. Please try again in 20ms."), 0.02),
        (refuses(429, "Rate limit reached. Please try again in 1m2.5s."), 0.05),
        (refuses(429, "You exceeded your current quota.", details=[{"retryDelay": "0.01s"}]), 0.01),
    ],
)
async def test_429_waits_as_long_as_it_is_asked_to(answer: Answer, seconds: float) -> None:
    settings = QUICK.model_copy(update={"retry_after_max_seconds": 0.05})
    with FakeEndpoint(answer, says("there you are")) as server:
        chunks = await collect(provider_for(server, settings))
    [again] = retries(chunks)
    assert again.why.key == "model.retry.busy"
    assert again.seconds == pytest.approx(seconds, abs=1e-6)
    assert text_of(chunks) == "there you are"


async def test_without_a_word_from_the_endpoint_the_pauses_grow() -> None:
    settings = QUICK.model_copy(update={"tries": 5, "backoff_seconds": 0.01, "backoff_max_seconds": 0.03})
    with FakeEndpoint(refuses(429, "slow"), refuses(429, "slow"), refuses(429, "slow"), says("ok")) as server:
        chunks = await collect(provider_for(server, settings))
    for again, longest in zip(retries(chunks), (0.01, 0.02, 0.03), strict=True):
        assert longest / 2 <= again.seconds <= longest


async def test_429_forever_ends_with_a_clear_word() -> None:
    with FakeEndpoint(refuses(429, "slow down", {"retry-after": "0"})) as server:
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider_for(server))
        assert len(server.received) == QUICK.tries
    assert caught.value.key == "model.busy"
    assert caught.value.values["detail"] == "slow down"


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


async def test_half_a_stream_forever() -> None:
    with FakeEndpoint(breaks_off("half")) as server:
        with pytest.raises(ProviderUnreachable) as caught:
            await collect(provider_for(server))
        assert len(server.received) == QUICK.tries
    assert caught.value.key == "model.broken_reply"


async def test_a_server_that_hangs_up_without_a_word() -> None:
    with FakeEndpoint(lambda exchange: exchange.hang_up(), says("back")) as server:
        assert text_of(await collect(provider_for(server))) == "back"


async def test_a_refused_connection_on_this_machine_is_told_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        provider = EndpointModel(Endpoint("ollama", url), "duck-1", None, QUICK)
        with pytest.raises(ProviderUnreachable) as caught:
            await anext(provider.stream(HELLO))
        await provider.aclose()
    assert caught.value.key == "model.nothing_listens"
    assert caught.value.values["where"] == url
    assert caught.value.exit_code == 5


async def test_a_refused_connection_elsewhere_is_tried_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        provider = EndpointModel(Endpoint("far", f"http://0.0.0.0:{taken.getsockname()[1]}/v1"), "x", None, QUICK)
        assert isinstance(await anext(provider.stream(HELLO)), Retrying)
        await provider.aclose()


async def test_a_host_that_does_not_exist() -> None:
    provider = EndpointModel(Endpoint("nowhere", "http://duck.invalid/v1"), "duck-1", None, QUICK)
    with pytest.raises(ProviderUnreachable) as caught:
        await collect(provider)
    assert caught.value.values["where"] == "http://duck.invalid/v1"


async def test_a_rate_limit_about_tokens_is_not_a_context_too_long() -> None:
    words = "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 10ms."
    with FakeEndpoint(refuses(429, words), says("ok")) as server:
        assert text_of(await collect(provider_for(server))) == "ok"


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
