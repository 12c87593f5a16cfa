"""Shared by the tests of endpoints: requests, settings with short time limits, and helpers that read chunks."""

from typing import Any

from fake_endpoint import FakeEndpoint

from duckflow.llm.endpoint_model import EndpointModel
from duckflow.llm.endpoints import Endpoint, Key
from duckflow.llm.facts import AbilityBook
from duckflow.llm.provider import Chunk, Delta, Finished, Provider, Request, Retrying
from duckflow.llm.settings import LlmSettings
from duckflow.state.message import PromptMessage

QUICK = LlmSettings(
    connect_seconds=30,
    first_byte_seconds=30,
    local_first_byte_seconds=30,
    between_chunks_seconds=30,
    tries=3,
    backoff_seconds=0.01,
    backoff_max_seconds=0.02,
    patience_seconds=0.2,
)
HASTY = QUICK.model_copy(
    update={
        "first_byte_seconds": 0.3,
        "local_first_byte_seconds": 0.3,
        "between_chunks_seconds": 0.3,
        "tries": 2,
    }
)
HELLO = Request((PromptMessage("system", "Be kind."), PromptMessage("user", "こんにちは hello")))
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
AS_JSON = Request(HELLO.messages, schema=SCHEMA)


def provider_for(
    server: FakeEndpoint, settings: LlmSettings = QUICK, key: Key | None = None, book: AbilityBook | None = None
) -> EndpointModel:
    return EndpointModel(Endpoint("fake", server.url, ("FAKE_API_KEY",)), "duck-1", key, settings, book)


async def collect(provider: Provider, request: Request = HELLO) -> list[Chunk]:
    try:
        return [chunk async for chunk in provider.stream(request)]
    finally:
        await provider.aclose()


def text_of(chunks: list[Chunk]) -> str:
    """Returns the reply as a consumer sees it: a retry discards the text before it."""
    text = ""
    for item in chunks:
        match item:
            case Delta():
                text += item.text
            case Retrying():
                text = ""
            case _:
                pass
    return text


def retries(chunks: list[Chunk]) -> list[Retrying]:
    return [item for item in chunks if isinstance(item, Retrying)]


def finished(chunks: list[Chunk]) -> Finished:
    assert [item for item in chunks if isinstance(item, Finished)] == [chunks[-1]]
    assert isinstance(chunks[-1], Finished)
    return chunks[-1]
