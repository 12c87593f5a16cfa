"""Peculiarities of single providers, over real HTTP, streamed in pieces. A link above a test documents it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Answer, FakeEndpoint, chunk, refuses, says, sends
from talking import QUICK, collect, finished, text_of

from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import KNOWN, Endpoint
from duckflow.llm.facts import AbilityBook
from duckflow.llm.provider import Request, Thought
from duckflow.state.message import PromptMessage, ToolCall, ToolSpec
from tests.journeys.story import Story, decide, respond

READ = "file_ops_read_file"
SPEC = ToolSpec(READ, "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
ASKED = Request((PromptMessage("system", "Be kind."), PromptMessage("user", "read a.txt")), tools=(SPEC,))


def named(name: str, server: FakeEndpoint, **changed: Any) -> Endpoint:
    """Returns a known endpoint with its peculiarities, moved to the test server."""
    known = next(endpoint for endpoint in KNOWN if endpoint.name == name)
    return known._replace(base_url=server.url, key_needed=False, **changed)


def speaker(name: str, server: FakeEndpoint, model: str, book: AbilityBook | None = None) -> EndpointModel:
    return EndpointModel(named(name, server), model, None, QUICK, book)


def story_of(provider: EndpointModel, top: Path) -> Story:
    story = Story(top, [])
    story.provider = provider
    for name in ("a.txt", "b.txt"):
        (story.folder / name).write_text(f"this is {name}\n")
    return story


# OpenAI, https://platform.openai.com/docs/api-reference/responses-streaming and
# https://platform.openai.com/docs/guides/reasoning (encrypted reasoning items with store=false)
THOUGHT: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA-secret"}


def responded(*, calls: bool) -> Answer:
    def events() -> Iterator[dict[str, Any]]:
        yield {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}
        yield {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}}
        yield {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Let me look."}
        yield {"type": "response.output_item.done", "output_index": 0, "item": THOUGHT}
        if calls:
            for index, name in enumerate(("a.txt", "b.txt"), 1):
                item = {"type": "function_call", "id": f"fc_{index}", "call_id": f"call_{index}", "name": READ}
                whole = json.dumps({"path": name})
                yield {"type": "response.output_item.added", "output_index": index, "item": item | {"arguments": ""}}
                for piece in (whole[:5], whole[5:]):
                    kind = "response.function_call_arguments.delta"
                    yield {"type": kind, "output_index": index, "item_id": f"fc_{index}", "delta": piece}
                yield {"type": "response.function_call_arguments.done", "output_index": index, "arguments": whole}
                yield {"type": "response.output_item.done", "output_index": index, "item": item | {"arguments": whole}}
        else:
            yield {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "id": "m"}}
            for piece in ("Both ", "are there."):
                yield {"type": "response.output_text.delta", "output_index": 1, "delta": piece}
        used = {"input_tokens": 900, "input_tokens_details": {"cached_tokens": 600}, "output_tokens": 50}
        yield {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "usage": used}}

    return sends(*events(), done=False)


async def test_openai_reasoning_models_call_tools_on_the_responses_wire(tmp_path: Path) -> None:
    with FakeEndpoint(responded(calls=True), responded(calls=False)) as server:
        story = story_of(speaker("openai", server, "gpt-5-mini"), tmp_path)
        assert await story.tell("read both") == "done"
        assert story.said() == ["Both are there."]
        assert server.paths == ["/v1/responses"] * 2
        first, second = server.received
    assert (first["store"], first["include"]) == (False, ["reasoning.encrypted_content"])
    assert {"type": "function", "strict": False}.items() <= first["tools"][0].items()
    assert "previous_response_id" not in second
    kinds = [item.get("type", item.get("role")) for item in second["input"]]
    at = kinds.index("reasoning")
    assert kinds[at : at + 5] == [
        "reasoning",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert second["input"][at] == THOUGHT
    assert [item["call_id"] for item in second["input"][at + 1 : at + 5]] == ["call_1", "call_2"] * 2
    used = story.chat.state.usage
    assert (used.prompt_tokens, used.cached_tokens) == (1800, 1200)
    assert used.cost_usd == pytest.approx((600 * 0.25 + 1200 * 0.025 + 100 * 2) / 1e6)


async def test_thoughts_are_streamed_and_a_failed_response_is_not_a_reply() -> None:
    failed = {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "oops"}}}
    with FakeEndpoint(sends(failed, done=False), responded(calls=False)) as server:
        chunks = await collect(speaker("openai", server, "gpt-5-mini"), ASKED)
    assert text_of(chunks) == "Both are there."
    assert Thought("Let me look.") in chunks


async def test_a_response_that_was_cut_off_says_so() -> None:
    ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    with FakeEndpoint(sends({"type": "response.incomplete", "response": ended}, done=False)) as server:
        assert finished(await collect(speaker("openai", server, "gpt-5-mini"), ASKED)).reason == "length"


async def test_a_refusal_that_points_to_the_responses_wire_is_followed_and_remembered(tmp_path: Path) -> None:
    book = AbilityBook(tmp_path / "abilities.json")
    reason = (
        "Function tools with reasoning_effort are not supported in /v1/chat/completions. Use /v1/responses instead."
    )
    with FakeEndpoint(refuses(400, reason), responded(calls=False)) as server:
        for _ in range(2):
            provider = EndpointModel(Endpoint("gateway", server.url), "quack-1", None, QUICK, book)
            assert text_of(await collect(provider, ASKED)) == "Both are there."
    assert server.paths == ["/v1/chat/completions", "/v1/responses", "/v1/responses"]


async def test_a_server_without_the_responses_wire_gets_chat_requests() -> None:
    with FakeEndpoint(refuses(404, "Not Found"), says("Here.")) as server:
        assert text_of(await collect(speaker("openai", server, "gpt-5-mini"), ASKED)) == "Here."
    assert server.paths == ["/v1/responses", "/v1/chat/completions"]


def called(*pieces: dict[str, Any], **said: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(pieces), **said}, "finish_reason": None}]}


def call(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": json.dumps({"path": path})}, **more}


END = chunk(finish="tool_calls")


async def done_with(provider: EndpointModel, top: Path, server: FakeEndpoint) -> dict[str, Any]:
    """Runs a turn that reads both files, and returns the assistant's message as it is sent back."""
    story = story_of(provider, top)
    assert await story.tell("read both files") == "done"
    back = server.received[1]["messages"]
    results = [message["content"] for message in back if message["role"] == "tool"]
    assert ["this is a.txt" in results[0], "this is b.txt" in results[1]] == [True, True]
    return next(message for message in back if message.get("tool_calls"))


# https://api-docs.deepseek.com/guides/thinking_mode (tool calls) and
# https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
@pytest.mark.parametrize(("name", "model"), [("deepseek", "deepseek-reasoner"), ("moonshot", "kimi-k2-thinking")])
async def test_deepseek_and_kimi_get_their_reasoning_back(tmp_path: Path, name: str, model: str) -> None:
    thought = [{"choices": [{"delta": {"reasoning_content": text}}]} for text in ("Both ", "then.")]
    both = called(call(READ, "a.txt", index=0, id="c0"), call(READ, "b.txt", index=1, id="c1"))
    with FakeEndpoint(sends(*thought, both, END), says("Read.")) as server:
        back = await done_with(speaker(name, server, model), tmp_path, server)
    assert back["reasoning_content"] == "Both then."


# https://ai.google.dev/gemini-api/docs/thought-signatures (OpenAI compatibility): no index, a signature with the call
@pytest.mark.parametrize("ids", [("function-call-1", "function-call-2"), ("", "")])
async def test_gemini_has_no_index_and_gets_its_signatures_back(tmp_path: Path, ids: tuple[str, str]) -> None:
    signed = {"google": {"thought_signature": "c2lnbmVk"}}
    first = call(READ, "a.txt", id=ids[0], extra_content=signed)
    with FakeEndpoint(sends(called(first), called(call(READ, "b.txt", id=ids[1])), END), says("Read.")) as server:
        back = await done_with(speaker("gemini", server, "gemini-flash-latest"), tmp_path, server)
    assert back["tool_calls"][0]["extra_content"] == signed
    assert "extra_content" not in back["tool_calls"][1]


# https://docs.mistral.ai/capabilities/function_calling: an id is nine letters or digits
async def test_mistral_gets_ids_of_nine_letters_whoever_made_them() -> None:
    made = (ToolCall(call_id="call_abcdef123456", name=READ, arguments="{}"), ToolCall(call_id="D681PevKs", name=READ))
    history = (
        *ASKED.messages,
        PromptMessage("assistant", "", calls=made),
        PromptMessage("tool", "one", answers="call_abcdef123456"),
        PromptMessage("tool", "two", answers="D681PevKs"),
    )
    with FakeEndpoint(says("So.")) as server:
        await collect(speaker("mistral", server, "mistral-large-latest"), Request(history, tools=(SPEC,)))
    replied, *results = server.received[0]["messages"][2:]
    ids = [call["id"] for call in replied["tool_calls"]]
    assert ids == [result["tool_call_id"] for result in results]
    assert ids[1] == "D681PevKs" and len(ids[0]) == 9 and ids[0].isalnum()


# https://github.com/ollama/ollama/blob/main/docs/openai.md, seen with 0.5 and later: every call comes with index 0
async def test_ollama_gives_every_call_the_same_index(tmp_path: Path) -> None:
    first, second = call(READ, "a.txt", index=0, id="call_a1"), call(READ, "b.txt", index=0, id="call_b2")
    with FakeEndpoint(sends(called(first), called(second), END), says("Read.")) as server:
        provider = EndpointModel(
            named("ollama", server), "qwen3-coder:480b", None, QUICK.model_copy(update={"window": 65_536})
        )
        await done_with(provider, tmp_path, server)


# https://lmstudio.ai/docs/app/api/tools: tool_choice takes words only; it is never sent, so nothing can be refused
async def test_no_request_has_a_tool_choice() -> None:
    with FakeEndpoint(says("Hm.")) as server:
        await collect(speaker("lmstudio", server, "qwen3-coder-480b"), ASKED)
    assert "tool_choice" not in server.received[0] and "parallel_tool_calls" not in server.received[0]


# https://github.com/ggml-org/llama.cpp/blob/master/docs/function-calling.md: without a template for tools the call
# stands in the text
async def test_llama_cpp_writes_the_call_into_the_text(tmp_path: Path) -> None:
    written = json.dumps({"name": READ, "arguments": {"path": "a.txt"}})
    with FakeEndpoint(says(written[:9], written[9:]), says(json.dumps(decide(respond("It says so."))))) as server:
        provider = EndpointModel(
            named("llama.cpp", server), "some-70b", None, QUICK.model_copy(update={"window": 65_536})
        )
        story = story_of(provider, tmp_path)
        assert await story.tell("read a.txt") == "done"
    assert "this is a.txt" in json.dumps(server.received[1]["messages"])
    assert not provider.takes_tools


async def test_unknown_fields_of_a_call_are_sent_back_with_it(tmp_path: Path) -> None:
    new = call(READ, "a.txt", index=0, id="c0", provenance={"seal": 7})
    other = call(READ, "b.txt", index=1, id="c1")
    with FakeEndpoint(sends(called(new, other), END), says("Read.")) as server:
        provider = EndpointModel(Endpoint("new", server.url, tools=True), "quack-2", None, QUICK)
        back = await done_with(provider, tmp_path, server)
    assert back["tool_calls"][0]["provenance"] == {"seal": 7}
