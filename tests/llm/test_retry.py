"""Failures that are retried, and failures that are not."""

import re
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from fake_endpoint import Answer, FakeEndpoint, bodies, breaks_off, chunk, refuses, says, sends
from talking import HELLO, QUICK, collect, provider_for, retries, text_of

from duckflow.errors import ProviderRefused, ProviderUnreachable, UsageError
from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.fallback import AWAY_SECONDS, WithFallback
from duckflow.llm.provider import Delta, Finished, Remark, Retrying


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (refuses(429, "slow down", {"retry-after": "0.03"}), 0.03),
        (refuses(429, "slow down", {"retry-after-ms": "40", "retry-after": "7"}), 0.04),
        (refuses(429, "slow down", {"retry-after": "Mon, 01 Jan 2024 00:00:00 GMT"}), 0.0),
        (refuses(429, "Rate limit reached. Please try again in 20ms."), 0.02),
        (refuses(429, "You exceeded your current quota.", details=[{"retryDelay": "0.01s"}]), 0.01),
    ],
)
async def test_429_waits_as_long_as_it_is_asked_to(answer: Answer, seconds: float) -> None:
    with FakeEndpoint(answer, says("there you are")) as server:
        chunks = await collect(provider_for(server))
    [again] = retries(chunks)
    assert again.why.key == "model.retry.busy"
    assert again.seconds == pytest.approx(seconds, abs=1e-6)
    assert text_of(chunks) == "there you are"


async def test_the_pauses_grow_where_the_endpoint_asks_for_none() -> None:
    settings = QUICK.model_copy(update={"tries": 5, "backoff_seconds": 0.01, "backoff_max_seconds": 0.03})
    with FakeEndpoint(refuses(429, "slow"), refuses(429, "slow"), refuses(429, "slow"), says("ok")) as server:
        chunks = await collect(provider_for(server, settings))
    for again, longest in zip(retries(chunks), (0.01, 0.02, 0.03), strict=True):
        assert longest / 2 <= again.seconds <= longest


async def test_429_forever_ends_with_a_clear_message() -> None:
    with FakeEndpoint(refuses(429, "slow down", {"retry-after": "0"})) as server:
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider_for(server))
        assert len(server.received) > QUICK.tries, "as long as the user's patience lasts"
    assert caught.value.key == "model.busy_until"


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize(
    "headers",
    [{"retry-after": "9999"}, {"retry-after": format_datetime(datetime.now(UTC) + timedelta(hours=1))}],
)
async def test_an_endpoint_that_asks_for_too_long_a_wait_is_given_up(status: int, headers: dict[str, str]) -> None:
    with FakeEndpoint(refuses(status, "slow down", headers)) as server:
        with pytest.raises(ProviderRefused) as caught:
            await collect(provider_for(server))
        assert len(server.received) == 1
    assert caught.value.key == "model.busy_until" and caught.value.values["limit"] == "0.2"


@pytest.mark.parametrize("status", [429, 503, 529])
async def test_a_busy_endpoint_is_tried_more_often_than_a_broken_one_and_the_next_try_is_told(status: int) -> None:
    busy = refuses(status, "Overloaded", {"retry-after": "0.001"})
    with FakeEndpoint(*[busy] * (QUICK.tries + 3), says("at last")) as server:
        chunks = await collect(provider_for(server, QUICK.model_copy(update={"patience_seconds": 30.0})))
    assert text_of(chunks) == "at last"
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", str(again.why.values["until"])) for again in retries(chunks))


class Clock:
    at = 0.0

    def __call__(self) -> float:
        return self.at


async def test_another_model_takes_over_and_later_the_first_is_used_again() -> None:
    clock = Clock()
    busy = refuses(529, "Overloaded", {"retry-after": "3600"})
    with FakeEndpoint(busy, busy, says("back")) as first, FakeEndpoint(says("instead")) as other:

        async def find(name: str) -> EndpointModel:
            if name == "nowhere":
                raise UsageError("model.unknown_endpoint", name=name, known="")
            return EndpointModel(Endpoint("other", other.url), name, None, QUICK)

        provider = WithFallback(provider_for(first), ["nowhere", "duck-2"], find, clock)
        heard = [[chunk async for chunk in provider.stream(HELLO)] for _ in range(2)]
        assert [text_of(chunks) for chunks in heard] == ["instead", "instead"]
        assert (len(first.received), provider.model) == (1, "other:duck-2")
        assert [chunk.what.key for chunk in heard[0] if isinstance(chunk, Remark)] == ["model.fallback"]
        clock.at = AWAY_SECONDS + 1
        assert text_of([chunk async for chunk in provider.stream(HELLO)]) == "instead"
        clock.at = 3 * AWAY_SECONDS
        chunks = await collect(provider)
    assert text_of(chunks) == "back" and provider.model == "fake:duck-1"
    assert [chunk.what.key for chunk in chunks if isinstance(chunk, Remark)] == ["model.fallback_over"]


async def test_an_error_about_the_request_does_not_switch_models() -> None:
    async def find(name: str) -> EndpointModel:
        raise AssertionError(name)

    with FakeEndpoint(refuses(401, "no such key")) as server, pytest.raises(ProviderRefused):
        await collect(WithFallback(provider_for(server), ["duck-2"], find))


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 529])
async def test_a_passing_failure_is_tried_again(status: int) -> None:
    with FakeEndpoint(refuses(status, "oops"), refuses(status, "oops"), says("fine")) as server:
        chunks = await collect(provider_for(server))
    assert [item.why.key for item in retries(chunks)] == ["model.retry.server"] * 2
    assert retries(chunks)[0].why.values["status"] == status
    assert text_of(chunks) == "fine"


async def test_500_forever_ends_in_an_error() -> None:
    with FakeEndpoint(bodies("<html><title>Bad Gateway</title></html>", 502)) as server:
        with pytest.raises(ProviderUnreachable) as caught:
            await collect(provider_for(server))
        assert len(server.received) == QUICK.tries
    assert caught.value.key == "model.server_failed"
    assert caught.value.values == {"where": server.url, "status": 502, "detail": "Bad Gateway"}


async def test_after_half_a_stream_the_request_is_sent_again() -> None:
    with FakeEndpoint(breaks_off("I was say"), says("I was saying this.")) as server:
        chunks = await collect(provider_for(server))
    assert [type(item) for item in chunks] == [Delta, Retrying, Delta, Finished]
    assert text_of(chunks) == "I was saying this."


async def test_streams_that_always_break_off_end_in_an_error() -> None:
    with FakeEndpoint(breaks_off("half")) as server:
        with pytest.raises(ProviderUnreachable) as caught:
            await collect(provider_for(server))
        assert len(server.received) == QUICK.tries
    assert caught.value.key == "model.broken_reply"


async def test_a_server_that_closes_the_connection_without_an_answer() -> None:
    with FakeEndpoint(lambda exchange: exchange.hang_up(), says("back")) as server:
        assert text_of(await collect(provider_for(server))) == "back"


async def test_a_refused_connection_on_this_machine_is_reported_at_once() -> None:
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
