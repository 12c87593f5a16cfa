"""The scripted model plays its replies."""

from pathlib import Path

import pytest
from talking import HELLO, finished, text_of

from duckflow.errors import ContextTooLong, ModelError, ProviderUnreachable, UsageError
from duckflow.llm.provider import Chunk, Delta, Request
from duckflow.llm.scripted import Scripted, ScriptedReply
from duckflow.state.message import PromptMessage, Usage


async def ask(model: Scripted, text: str = "go on") -> list[Chunk]:
    return [chunk async for chunk in model.stream(Request((PromptMessage("user", text),)))]


async def test_replies_come_in_order_and_requests_are_recorded() -> None:
    model = Scripted(["one", {"rationale": "二"}])
    assert text_of([chunk async for chunk in model.stream(HELLO)]) == "one"
    assert text_of(await ask(model)) == '{"rationale": "二"}'
    assert [request.messages[-1].text for request in model.requests] == ["こんにちは hello", "go on"]


async def test_a_reply_in_pieces_with_its_own_end_and_usage() -> None:
    usage = Usage(prompt_tokens=5, completion_tokens=2, calls=1)
    chunks = await ask(Scripted([ScriptedReply("abcde", chunk=2, delay=0.001, finish="length", usage=usage)]))
    assert chunks[:-1] == [Delta("ab"), Delta("cd"), Delta("e")]
    assert finished(chunks).reason == "length"
    assert finished(chunks).usage == usage


async def test_usage_is_estimated_where_none_is_given() -> None:
    usage = finished(await ask(Scripted(["12345678"]))).usage
    assert (usage.completion_tokens, usage.calls) == (2, 1)


async def test_a_reply_with_a_cue_waits_for_a_fitting_request() -> None:
    model = Scripted(["first", ScriptedReply("about ducks", when="duck"), "second"])
    assert text_of(await ask(model)) == "first"
    assert text_of(await ask(model, "what about a duck?")) == "about ducks"
    assert text_of(await ask(model, "and another duck?")) == "second"


async def test_an_ended_script_says_so() -> None:
    model = Scripted(["only this", ScriptedReply("never asked for", when="goose")])
    await ask(model)
    with pytest.raises(ModelError) as caught:
        await ask(model)
    assert caught.value.key == "model.script_ended"


async def test_an_error_comes_after_the_text() -> None:
    model = Scripted([ScriptedReply("half", error=ProviderUnreachable("model.broken_reply"))])
    chunks = model.stream(HELLO)
    assert await anext(chunks) == Delta("half")
    with pytest.raises(ProviderUnreachable):
        await anext(chunks)


async def test_a_script_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "demo.jsonl"
    path.write_text(
        '"plain"\n\n{"json": {"ok": true}, "chunk": 4}\n{"text": "cut", "finish": "length"}\n{"error": "too_long"}\n',
        "utf-8",
    )
    model = Scripted.from_file(path)
    assert model.model == "scripted:demo.jsonl"
    assert text_of(await ask(model)) == "plain"
    pieces = await ask(model)
    assert text_of(pieces) == '{"ok": true}'
    assert len(pieces) == 4
    assert finished(await ask(model)).reason == "length"
    with pytest.raises(ContextTooLong):
        await ask(model)


@pytest.mark.parametrize(
    "line", ["{oops", "[1]", "7", '{"txt": "x"}', '{"error": "nonsense"}', '{"finish": "never"}', '{"chunk": "many"}']
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "demo.jsonl"
    path.write_text(f'"fine"\n{line}\n', "utf-8")
    with pytest.raises(UsageError) as caught:
        Scripted.from_file(path)
    assert caught.value.values == {"path": str(path), "line": 2}


def test_a_script_file_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Scripted.from_file(tmp_path / "missing.jsonl")
    assert caught.value.key == "model.script_unreadable"
