"""The window that a local server gives to a model, asked over real HTTP."""

from collections.abc import Mapping
from typing import Any

import pytest
from fake_endpoint import Exchange, FakeEndpoint

from duckflow.llm.discover import ModelChoice, discover
from duckflow.llm.settings import EndpointSettings, LlmSettings

QWEN = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 262_144}, "parameters": ""}


class Server(FakeEndpoint):
    """Answers by path. A request to `/api/generate` loads the model."""

    def __init__(self, pages: Mapping[str, Any], loads: Mapping[str, Any] | None = None) -> None:
        super().__init__(self._answered, page="{}")
        self.pages |= pages
        self.loads = loads

    def _answered(self, exchange: Exchange) -> None:
        if exchange.path == "/api/generate" and self.loads:
            self.pages["/api/ps"] = self.loads
        page = self.pages.get(exchange.path)
        exchange.body({"error": "not found"} if page is None else page, 404 if page is None else 200)


async def chosen(name: str, server: FakeEndpoint, **settings: Any) -> ModelChoice:
    moved = {name: EndpointSettings(base_url=server.url)}
    return await discover(f"{name}:qwen3", LlmSettings(endpoints=moved, **settings), {})


def told(choice: ModelChoice) -> tuple[int, list[str]]:
    assert choice.endpoint
    return choice.endpoint.window, [note.key for note in choice.notes]


async def test_ollama_is_asked_for_the_window_of_a_loaded_model() -> None:
    running = {"models": [{"model": "qwen3:latest", "context_length": 65_536}]}
    with Server({"/api/show": QWEN, "/api/ps": running}) as server:
        assert told(await chosen("ollama", server)) == (65_536, ["model.served"])
        assert "/api/generate" not in server.paths


async def test_ollama_loads_a_model_to_find_its_window_and_a_small_one_is_noted() -> None:
    loads = {"models": [{"model": "qwen3:latest", "context_length": 4096}]}
    with Server({"/api/show": QWEN, "/api/ps": {"models": []}, "/api/generate": {"done": True}}, loads) as server:
        choice = await chosen("ollama", server)
    assert told(choice) == (4096, ["model.served_little"])
    assert choice.notes[0].values["most"] == 262_144


async def test_a_window_set_in_an_ollama_model_file_is_used() -> None:
    with Server({"/api/show": QWEN | {"parameters": "stop  x\nnum_ctx    40960"}}) as server:
        assert told(await chosen("ollama", server)) == (40_960, ["model.served"])


async def test_the_user_is_told_when_ollama_does_not_give_a_window() -> None:
    with Server({}) as server:
        assert told(await chosen("ollama", server)) == (0, ["model.served_unknown"])


async def test_no_server_is_asked_when_the_user_has_set_a_window() -> None:
    with Server({"/api/show": QWEN}) as server:
        assert told(await chosen("ollama", server, window=9000)) == (0, [])
        assert server.paths == []


@pytest.mark.parametrize(
    ("name", "pages", "window"),
    [
        ("lmstudio", {"/api/v0/models/qwen3": {"loaded_context_length": 8192, "max_context_length": 9000}}, 8192),
        ("llama.cpp", {"/props": {"default_generation_settings": {"n_ctx": 16_384}}}, 16_384),
        (
            "vllm",
            {"/v1/models": {"data": [{"id": "other", "max_model_len": 1}, {"id": "qwen3", "max_model_len": 7}]}},
            7,
        ),
    ],
)
async def test_other_servers_are_asked_in_their_own_ways(name: str, pages: dict[str, Any], window: int) -> None:
    with Server(pages) as server:
        choice = await chosen(name, server)
    assert choice.endpoint and choice.endpoint.window == window
