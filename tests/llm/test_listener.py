"""Whole and broken streams, and answers that are no reply at all."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from fake_endpoint import Exchange, FakeEndpoint, bodies, chunk, falls_silent, says, sends
from talking import HASTY, QUICK, collect, finished, provider_for, retries, text_of

from duckflow.errors import ModelError, ProviderUnreachable
from duckflow.llm.provider import Delta, Finished, Retrying
from duckflow.llm.stream import EventReader
from duckflow.state.message import Usage


async def test_a_stream_that_ends_without_a_reason_is_broken() -> None:
    with FakeEndpoint(sends(chunk("I was say"), done=False), says("whole")) as server:
        chunks = await collect(provider_for(server))
    assert retries(chunks)[0].why.key == "model.retry.broken"
    assert text_of(chunks) == "whole"


async def test_no_answer_at_all_is_a_time_out() -> None:
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


async def test_a_stream_that_never_ends_is_stopped() -> None:
    def drips(exchange: Exchange) -> None:
        exchange.begin()
        while True:
            exchange.piece(b": still thinking\n\n")
            if exchange.endpoint.disconnected.wait(0.02):
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


async def test_html_with_status_200_is_not_a_reply() -> None:
    with FakeEndpoint(bodies("<html><title>Welcome to Hotel WiFi</title><body>Log in</body></html>")) as server:
        with pytest.raises(ModelError) as caught:
            await collect(provider_for(server))
        assert len(server.received) == 1
    assert caught.value.key == "model.no_model_there"
    assert caught.value.values["detail"] == "Welcome to Hotel WiFi"


@pytest.mark.parametrize("answer", [sends("what?", "{broken"), bodies('"just a string"'), bodies({"hello": 1})])
async def test_garbage_is_not_a_reply(answer: Callable[[Exchange], None]) -> None:
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
    ("finish", "reason"),
    [("length", "length"), ("content_filter", "filtered"), ("tool_calls", "stop"), ("odd", "unknown")],
)
async def test_reasons_of_the_end_are_translated(finish: str, reason: str) -> None:
    with FakeEndpoint(says("so", finish=finish)) as server:
        assert finished(await collect(provider_for(server))).reason == reason


async def test_a_reply_that_ends_in_an_error_does_not_count() -> None:
    with FakeEndpoint(says("hal", finish="error"), says("whole")) as server:
        chunks = await collect(provider_for(server))
    assert len(retries(chunks)) == 1
    assert text_of(chunks) == "whole"


async def test_a_refusal_with_a_text() -> None:
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


async def test_content_that_is_a_list_of_parts() -> None:
    parts = {"choices": [{"delta": {"content": [{"type": "thinking"}, {"type": "text", "text": "quack"}]}}]}
    with FakeEndpoint(sends(parts, chunk(finish="stop"))) as server:
        assert text_of(await collect(provider_for(server))) == "quack"


async def test_a_reply_that_does_not_end_is_broken_off() -> None:
    def pours(exchange: Exchange) -> None:
        exchange.begin()
        while not exchange.endpoint.disconnected.wait(0):
            exchange.event(chunk("duck " * 200))

    settings = QUICK.model_copy(update={"max_reply_characters": 50_000})
    with FakeEndpoint(pours) as server:
        with pytest.raises(ModelError) as caught:
            await collect(provider_for(server, settings))
        assert len(server.received) == 1, "the next try would be no shorter"
    assert caught.value.key == "model.reply_too_long"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("line", [b'data: {"x": "' + b"a" * 4_000_000, b"data: {\n" * 100_000, b" " * 4_000_000])
def test_small_pieces_take_no_longer_than_large_ones(line: bytes) -> None:
    reader, started = EventReader(), time.process_time()
    for at in range(0, len(line), 40):
        reader.feed(line[at : at + 40])
    assert time.process_time() - started < 3


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "-5", "9" * 4000, '"many"', "null", "[]"])
async def test_odd_numbers_in_the_usage_do_no_harm(number: str) -> None:
    usage = f'{{"prompt_tokens": {number}, "completion_tokens": {number}, "cost": {number}}}'

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event(chunk("fine"))
        exchange.event(chunk(finish="stop"))
        exchange.piece(f'data: {{"choices": [], "usage": {usage}}}\n\ndata: [DONE]\n\n'.encode())

    with FakeEndpoint(answer) as server:
        used = finished(await collect(provider_for(server))).usage
    assert 0 <= used.prompt_tokens <= 10**9 and 0 <= used.completion_tokens <= 10**9
    assert 0 <= used.cost_usd <= 10**6
    assert Usage.model_validate_json(used.plus(used).model_dump_json()) == used.plus(used)
