"""Pictures over real HTTP, in each wire's own form; and how a model that refuses them is treated."""

import base64
from pathlib import Path
from typing import Any, cast

import pytest
from fake_endpoint import FakeEndpoint, refuses, says
from talking import QUICK, collect, provider_for
from test_anthropic import claude_at, tells
from test_wires import responded, speaker

from duckflow.errors import PicturesRefused
from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.facts import AbilityBook
from duckflow.llm.provider import Provider, Request, estimate_request
from duckflow.state.message import PromptMessage, ToolCall, ToolSpec
from duckflow.state.picture import Picture
from tests.journeys.drawn import gif, png
from tests.journeys.story import Story

DATA = {"one": png(80, 60), "two": gif(9, 9)}
ONE = Picture(digest="one", name="a.png", media="image/png", size=99, width=80, height=60)
TWO = Picture(digest="two", name="b.gif", media="image/gif", size=99, width=9, height=9)
GONE = ONE.model_copy(update={"digest": "gone"})
LOOK = Request(
    (
        PromptMessage("system", "Be kind."),
        PromptMessage("user", "look", pictures=(ONE, TWO, GONE)),
        PromptMessage("assistant", "I see."),
        PromptMessage("user", "and?"),
    ),
    pictures=DATA,
)


def url(name: str, media: str) -> str:
    return f"data:{media};base64,{base64.b64encode(DATA[name]).decode()}"


async def sent(provider: Provider, server: FakeEndpoint) -> dict[str, Any]:
    await collect(provider, LOOK)
    return server.received[-1]


async def test_the_chat_wire_sends_them_as_data_beside_the_text() -> None:
    with FakeEndpoint(says("a duck")) as server:
        messages = (await sent(provider_for(server), server))["messages"]
    assert messages[1]["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": url("one", "image/png")}},
        {"type": "image_url", "image_url": {"url": url("two", "image/gif")}},
    ]
    assert [messages[number]["content"] for number in (0, 2, 3)] == ["Be kind.", "I see.", "and?"]


async def test_the_responses_wire_sends_them_in_its_own_form() -> None:
    with FakeEndpoint(responded(calls=False)) as server:
        items = (await sent(speaker("openai", server, "gpt-5.2"), server))["input"]
    content = next(item["content"] for item in items if isinstance(item["content"], list))
    assert content == [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": url("one", "image/png"), "detail": "auto"},
        {"type": "input_image", "image_url": url("two", "image/gif"), "detail": "auto"},
    ]


async def test_the_anthropic_wire_sends_them_in_its_own_form() -> None:
    with FakeEndpoint(tells("a duck")) as server:
        provider = claude_at(server)
        assert provider.takes_pictures
        content = cast("list[dict[str, Any]]", (await sent(provider, server))["messages"][0]["content"])
    assert content[0]["text"] == "look"
    sources = [block["source"] for block in content if block["type"] == "image"]
    assert [(source["media_type"], base64.b64decode(source["data"])) for source in sources] == [
        ("image/png", DATA["one"]),
        ("image/gif", DATA["two"]),
    ]


CALLED = Request(
    (
        PromptMessage("system", "Be kind."),
        PromptMessage("user", "accept a picture"),
        PromptMessage(
            "assistant", "", calls=(ToolCall(call_id="c1", name="shot"), ToolCall(call_id="c2", name="shot"))
        ),
        PromptMessage("tool", "taken", answers="c1"),
        PromptMessage("tool", "taken again", answers="c2"),
        PromptMessage("user", "the pictures", pictures=(ONE,)),
    ),
    tools=(ToolSpec("shot", "takes a picture", {"type": "object", "properties": {}}),),
    pictures=DATA,
)


async def test_pictures_of_results_come_after_the_results_in_every_wire() -> None:
    with FakeEndpoint(says("a duck")) as server:
        await collect(provider_for(server), CALLED)
        messages = server.received[-1]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert messages[-1]["content"][1]["image_url"]["url"] == url("one", "image/png")
    with FakeEndpoint(responded(calls=False)) as server:
        await collect(speaker("openai", server, "gpt-5.2"), CALLED)
        items = server.received[-1]["input"]
    assert [item["type"] for item in items[-3:-1]] == ["function_call_output"] * 2
    assert items[-1]["content"][1] == {"type": "input_image", "image_url": url("one", "image/png"), "detail": "auto"}
    with FakeEndpoint(tells("a duck")) as server:
        await collect(claude_at(server), CALLED)
        content = cast("list[dict[str, Any]]", server.received[-1]["messages"][-1]["content"])
    assert [block["type"] for block in content] == ["tool_result", "tool_result", "text", "image"]


async def test_where_no_user_message_may_follow_a_result_it_holds_its_pictures() -> None:
    refusal = refuses(400, "Unexpected role 'user' after role 'tool'")
    with FakeEndpoint(refusal, says("a duck")) as server:
        await collect(provider_for(server), CALLED)
        last = server.received[-1]["messages"][-1]
    assert last["role"] == "tool" and last["tool_call_id"] == "c2"
    assert last["content"] == [
        {"type": "text", "text": "taken again\n\nthe pictures"},
        {"type": "image_url", "image_url": {"url": url("one", "image/png")}},
    ]


def test_the_tokens_of_a_request_include_its_pictures() -> None:
    without = LOOK._replace(messages=tuple(PromptMessage(message.role, message.text) for message in LOOK.messages))
    assert estimate_request(LOOK) - estimate_request(without) == 3 * 85


BLIND = [
    (400, "Invalid content type. image_url is only supported by certain models."),
    (422, "messages[1]: unknown variant `image_url`, expected `text`"),
    (400, "'messages.1.content' must be a string"),
    (500, "image input is not supported - hint: you may need to provide the mmproj"),
    (404, "No endpoints found that support image input"),
    (400, "duck-1 is not a multimodal model"),
    (400, "At most 0 image(s) may be provided in one request."),
]


@pytest.mark.parametrize(("status", "message"), BLIND)
async def test_a_model_that_refuses_pictures_is_remembered_as_blind(tmp_path: Path, status: int, message: str) -> None:
    book = AbilityBook(tmp_path / "abilities.json")
    with FakeEndpoint(refuses(status, message)) as server:
        provider = provider_for(server, book=book)
        assert provider.takes_pictures is None
        with pytest.raises(PicturesRefused) as problem:
            await collect(provider, LOOK)
        assert problem.value.key == "model.blind" and len(server.received) == 1
        assert provider.takes_pictures is False
        assert provider_for(server, book=book).takes_pictures is False


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "image exceeds 5 MB maximum"),
        (400, "Could not process image"),
        (413, "image too big"),
        (400, "invalid image"),
    ],
)
async def test_a_picture_that_cannot_be_used_does_not_make_a_model_blind(status: int, message: str) -> None:
    for answer, provider in ((refuses(status, message), provider_for), (refuses(status, message), claude_at)):
        with FakeEndpoint(answer) as server:
            asked = provider(server)
            with pytest.raises(PicturesRefused) as problem:
                await collect(asked, LOOK)
            assert problem.value.key == "model.picture_refused" and asked.takes_pictures is not False


async def test_a_failure_of_the_server_does_not_count_against_pictures() -> None:
    with FakeEndpoint(refuses(500, "image cache restarting"), says("a duck")) as server:
        provider = provider_for(server)
        await collect(provider, LOOK)
        assert provider.takes_pictures is None and len(server.received) == 2


async def test_a_model_on_the_anthropic_wire_is_remembered_as_blind() -> None:
    with FakeEndpoint(refuses(400, "this model does not support image input")) as server:
        provider = claude_at(server)
        with pytest.raises(PicturesRefused):
            await collect(provider, LOOK)
        assert provider.takes_pictures is False


@pytest.mark.parametrize(
    ("endpoint", "model", "sees"),
    [
        ("openai", "gpt-5-mini", True),
        ("openai", "o3-mini", False),
        ("deepseek", "deepseek-chat", False),
        ("groq", "meta-llama/llama-4-scout-17b-16e-instruct", True),
        ("ollama", "some-new-model:7b", None),
    ],
)
def test_known_facts_hold_before_the_first_request(endpoint: str, model: str, sees: bool | None) -> None:
    provider = EndpointModel(Endpoint(endpoint, "http://127.0.0.1:9/v1"), model, None, QUICK)
    assert provider.takes_pictures is sees


async def test_the_user_is_told_and_the_conversation_goes_on_without_pictures(tmp_path: Path) -> None:
    with FakeEndpoint(refuses(400, "image input is not supported"), says("A duck, then.")) as server:
        story = Story(tmp_path, [])
        story.provider = provider = provider_for(server)
        (story.folder / "shot.png").write_bytes(png(80, 60))
        assert await story.tell("look at @shot.png") == "failed"
        why = story.ending().why
        assert why and why.key == "model.blind"
        assert await story.tell("It shows a duck.") == "done"
        await provider.aclose()
    assert "image_url" in str(server.received[0]) and "image_url" not in str(server.received[-1])
    assert "you cannot see pictures" in str(server.received[-1])
