"""Each wire against a server that enforces its vendor's rules: the table in docs/models.md, a row a test."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint, refuses, refuses_field
from talking import QUICK, collect, finished, retries, text_of
from vendors import VENDORS, Said, Vendor

from duckflow.errors import ProviderRefused
from duckflow.llm.facts import AbilityBook
from duckflow.llm.provider import CallDelta, Chunk, Remark, Request, Retrying, Thought
from duckflow.state.message import PromptMessage, ToolSpec
from duckflow.state.picture import Picture
from tests.journeys.story import Story

READ = ToolSpec("file_ops_read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
DUCK = Picture(digest="d1", media="image/png", name="duck.png", width=1, height=1, size=3)
SHOWN = Request(
    (PromptMessage("system", "Be kind."), PromptMessage("user", "read both", pictures=(DUCK,))),
    tools=(READ,),
    max_tokens=2000,
    pictures={"d1": b"png"},
)
BOTH = Said("I look.", "Hm, two files.", (("c1", READ.name, {"path": "a"}), ("c2", READ.name, {"path": "b"})))
EFFORT = QUICK.model_copy(update={"effort": "high"})

every_wire = pytest.mark.parametrize("vendor", VENDORS.values(), ids=list(VENDORS))


def remarks(chunks: list[Chunk]) -> list[Any]:
    """Returns the parts of the request that the one remark says were left out."""
    parts = [str(chunk.what.values["parts"]) for chunk in chunks if isinstance(chunk, Remark)]
    assert len(parts) <= 1
    return parts[0].split(", ") if parts else []


async def conversation(vendor: Vendor, model: str = "") -> list[dict[str, Any]]:
    """Returns both requests of a conversation: one with a picture, and one with the results of two tool calls."""
    with FakeEndpoint(vendor.says(BOTH), vendor.says(Said("Both are there."))) as server:
        provider = vendor.at(server, EFFORT, model)
        chunks = [chunk async for chunk in provider.stream(SHOWN)]
        end = finished(chunks)
        assert text_of(chunks) == "I look." and end.reason == "stop"
        assert "".join(chunk.text for chunk in chunks if isinstance(chunk, Thought)) == "Hm, two files."
        assert [chunk.name for chunk in chunks if isinstance(chunk, CallDelta) and chunk.name] == [READ.name] * 2
        assert [json.loads(call.arguments) for call in end.calls] == [{"path": "a"}, {"path": "b"}]
        used = end.usage
        assert (used.prompt_tokens, used.completion_tokens, used.cached_tokens) == (27, 9, 5)
        messages = (
            *SHOWN.messages,
            PromptMessage("assistant", "I look.", end.calls, extra=end.extra),
            *(PromptMessage("tool", f"this is {call.call_id}", answers=call.call_id) for call in end.calls),
            PromptMessage("user", "[state]"),
        )
        assert text_of(await collect(provider, SHOWN._replace(messages=messages))) == "Both are there."
        return server.received


@every_wire
async def test_a_conversation_with_pictures_thoughts_and_parallel_calls(vendor: Vendor) -> None:
    first, second = await conversation(vendor)
    assert "cG5n" in json.dumps(first), "the picture is sent"
    kept = {"openrouter": "reasoning_details", "openai": "gAAAA", "anthropic": "signed", "google": "c2lnbmVk"}
    assert kept[vendor.endpoint] in json.dumps(second), "what was thought goes back"


@pytest.mark.parametrize(("wire", "mark"), [("chat", "cache_control"), ("anthropic", "cache_control")])
async def test_the_beginning_of_a_prompt_is_marked_for_the_cache(wire: str, mark: str) -> None:
    for body in await conversation(VENDORS[wire]):
        assert mark in json.dumps(body)
        assert mark not in json.dumps(body["messages"][-1]).partition("[state]")[2]


async def test_openai_gets_a_cache_key_and_the_phase_of_its_texts() -> None:
    first, second = await conversation(VENDORS["responses"])
    assert first["prompt_cache_key"] == second["prompt_cache_key"]
    assert [item["phase"] for item in second["input"] if "phase" in item] == ["commentary"]


ENDS = {
    "chat": {"length": "length", "content_filter": "filtered", "guardrail_intervened": "filtered", "new": "unknown"},
    "responses": {"max_output_tokens": "length", "content_filter": "filtered", "new": "unknown"},
    "anthropic": {
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "refusal": "refusal",
        "pause_turn": "unknown",
    },
    "google": {
        "MAX_TOKENS": "length",
        "SAFETY": "filtered",
        "MALFORMED_FUNCTION_CALL": "malformed",
        "OTHER": "unknown",
    },
}


@pytest.mark.parametrize(
    ("wire", "finish", "kind"), [(wire, *end) for wire, ends in ENDS.items() for end in ends.items()]
)
async def test_nothing_is_done_after_an_irregular_end_and_the_user_is_told(
    wire: str, finish: str, kind: str, tmp_path: Path
) -> None:
    vendor = VENDORS[wire]
    args = {"reasoning": "it was asked for", "path": "a.txt", "content": "half"}
    cut = Said("So.", "", (("c1", "file_ops_write_file", args),), finish)
    with FakeEndpoint(vendor.says(cut), vendor.says(Said("I say no more."))) as server:
        story = Story(tmp_path, [])
        story.provider = vendor.at(server, QUICK)
        outcome = await story.tell("write a.txt")
        assert not (story.folder / "a.txt").exists()
    if kind in ("length", "malformed"):
        assert outcome == "done" and len(server.received) == 2, "the model hears of it"
    else:
        assert outcome == "provider" and len(server.received) == 1
        why = story.ending().why
        assert why and why.key == f"model.ended.{kind}"


@every_wire
async def test_a_busy_server_is_waited_for_and_a_wrong_key_is_reported(vendor: Vendor) -> None:
    busy = refuses(429, "slow down", {"retry-after": "0.01"})
    with FakeEndpoint(busy, vendor.says(Said("There."))) as server:
        chunks = await collect(vendor.at(server, QUICK), SHOWN)
    assert text_of(chunks) == "There." and retries(chunks)[0].seconds == pytest.approx(0.01)
    with FakeEndpoint(refuses(401, "invalid x-api-key")) as server, pytest.raises(ProviderRefused) as caught:
        await collect(vendor.at(server, QUICK), SHOWN)
    assert caught.value.key == "model.key_refused_alone"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("effort", ["none", "minimal", "low", "medium", "high", "xhigh"])
@pytest.mark.parametrize(
    ("wire", "model"),
    [
        ("chat", ""),
        ("responses", ""),
        ("anthropic", "claude-sonnet-4-5"),
        ("anthropic", "claude-haiku-4-5"),
        ("anthropic", "claude-3-haiku-20240307"),
        ("anthropic", "claude-opus-4-6"),
        ("anthropic", "claude-sonnet-5"),
        ("google", "gemini-2.5-flash"),
        ("google", "gemini-3-pro-preview"),
    ],
)
async def test_every_effort_is_sent_as_one_that_the_model_has(wire: str, model: str, effort: Any) -> None:
    vendor = VENDORS[wire]
    for limit in (16, 2000, None):
        with FakeEndpoint(vendor.says(Said("So."))) as server:
            settings = QUICK.model_copy(update={"effort": effort, "temperature": 0.2 if wire == "anthropic" else None})
            chunks = await collect(vendor.at(server, settings, model), SHOWN._replace(max_tokens=limit))
        assert text_of(chunks) == "So." and len(server.received) == 1, "nothing had to be refused first"


UNVERIFIED = "Your organization must be verified to generate reasoning summaries. Please go to: https://platform"


async def test_an_unverified_organization_gets_no_summaries_and_is_told_once(tmp_path: Path) -> None:
    vendor, book = VENDORS["responses"], AbilityBook(tmp_path / "abilities.json")

    def answer(exchange: Any) -> None:
        asks = "summary" in exchange.endpoint.received[-1].get("reasoning", {})
        (refuses(400, UNVERIFIED, param="reasoning.summary") if asks else vendor.says(Said("So.")))(exchange)

    with FakeEndpoint(answer) as server:
        told = [remarks(await collect(vendor.at(server, EFFORT, book=book), SHOWN)) for _ in range(2)]
        assert [body.get("reasoning") for body in server.received] == [
            {"summary": "auto", "effort": "high"},
            {"effort": "high"},
            {"effort": "high"},
        ]
    assert told == [["summary"], []]
    assert all(body["tools"] and body["include"] for body in server.received)


@pytest.mark.parametrize(
    ("wire", "field"),
    [("chat", "stream_options"), ("responses", "prompt_cache_key"), ("anthropic", "thinking"), ("chat", "usage")],
)
async def test_after_an_unclear_refusal_optional_parts_are_dropped_but_never_tools(wire: str, field: str) -> None:
    vendor = VENDORS[wire]
    with FakeEndpoint(refuses_field(field, "Bad Request", vendor.says(Said("So.")))) as server:
        provider = vendor.at(server, EFFORT)
        if field == "usage":  # This part cannot be left out.
            with pytest.raises((ProviderRefused,)):
                await collect(provider, SHOWN._replace(tools=()))
            return
        chunks = await collect(provider, SHOWN)
        assert text_of(chunks) == "So." and remarks(chunks)
    assert all(body["tools"] for body in server.received) and len(server.received) == 2
    assert "user_after_tool" not in remarks(chunks), "what was not sent was not refused"


async def test_an_effort_that_a_model_lacks_becomes_the_nearest(tmp_path: Path) -> None:
    vendor, book = VENDORS["responses"], AbilityBook(tmp_path / "abilities.json")

    def answer(exchange: Any) -> None:
        effort = exchange.endpoint.received[-1]["reasoning"].get("effort")
        words = f"'reasoning.effort' does not support '{effort}'. Supported: 'minimal', 'low', 'medium' and 'high'."
        (vendor.says(Said("So.")) if effort in ("minimal", "low", "medium", "high") else refuses(400, words))(exchange)

    for wished, got in (("xhigh", "high"), ("none", "minimal")):
        with FakeEndpoint(answer) as server:
            settings = QUICK.model_copy(update={"effort": wished})
            for _ in range(2):
                await collect(vendor.at(server, settings, book=book), SHOWN)
            assert [body["reasoning"]["effort"] for body in server.received] == [wished, got, got]


async def test_models_are_listed_on_every_wire() -> None:
    from duckflow.llm.discover import fetch_models
    from duckflow.llm.endpoints import KNOWN

    with FakeEndpoint(models=[{"id": "claude-9", "max_input_tokens": 500_000}]) as server:
        claude = next(endpoint for endpoint in KNOWN if endpoint.name == "anthropic")
        [listed] = await fetch_models(claude._replace(base_url=server.url.removesuffix("/v1")), None, 5)
        assert (listed.model, listed.window, server.paths) == ("claude-9", 500_000, ["/v1/models"])
    page = json.dumps({"models": [{"name": "models/gemini-9", "inputTokenLimit": 9000}]})
    with FakeEndpoint(page=page) as server:
        google = next(endpoint for endpoint in KNOWN if endpoint.name == "google")
        [listed] = await fetch_models(google._replace(base_url=server.url), None, 5)
        assert (listed.model, listed.window) == ("gemini-9", 9000)


async def test_escape_ends_a_long_wait() -> None:
    vendor, waiting = VENDORS["anthropic"], asyncio.Event()
    with FakeEndpoint(refuses(529, "Overloaded", {"retry-after": "60"})) as server:
        provider = vendor.at(server, QUICK.model_copy(update={"patience_seconds": 600.0}))

        async def listen() -> None:
            async for chunk in provider.stream(SHOWN):
                assert isinstance(chunk, Retrying) and chunk.seconds == 60
                waiting.set()

        task = asyncio.create_task(listen())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.aclose()
