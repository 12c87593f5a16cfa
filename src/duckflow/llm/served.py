"""How many tokens a server on this machine gives a model: each kind of server has its own way to say so."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from duckflow.llm.endpoints import Endpoint
from duckflow.llm.keys import Key
from duckflow.state.json_fields import as_count, as_table, read_json, tables, text_of

if TYPE_CHECKING:
    from duckflow.http import HttpClient

ASK_SECONDS = 5.0
LOAD_SECONDS = 60.0
"""Ollama decides on a window when it loads a model, which the first request would wait for as well."""


class ServedWindow(NamedTuple):
    """The tokens that a model gets here, and those that it could get at most; 0 where that is not said."""

    tokens: int = 0
    most: int = 0


async def served_window(endpoint: Endpoint, model: str, key: Key | None) -> ServedWindow:
    """What the server says; nothing where it says nothing in time."""
    ask = WAYS.get(endpoint.name)
    if ask is None:
        return ServedWindow()
    # In a thread: it is slow to load, and somebody may be typing.
    await asyncio.to_thread(import_module, "duckflow.llm.endpoint_model")
    from duckflow.http import HttpError
    from duckflow.llm.endpoint_model import open_client

    try:
        server = endpoint._replace(base_url=endpoint.base_url.removesuffix("/v1"))
        async with open_client(server, key, ASK_SECONDS) as client, asyncio.timeout(LOAD_SECONDS):
            return await ask(client, model)
    except (TimeoutError, HttpError):
        return ServedWindow()


async def _ollama(client: "HttpClient", model: str) -> ServedWindow:
    shown = await _table(client, "POST", "/api/show", {"model": model})
    info = as_table(shown.get("model_info"))
    most = max((as_count(value) for name, value in info.items() if name.endswith(".context_length")), default=0)
    set_by_user = re.search(r"(?m)^num_ctx\s+(\d+)", text_of(shown, "parameters"))
    if tokens := await _loaded(client, model) or (int(set_by_user[1]) if set_by_user else 0):
        return ServedWindow(tokens, most)
    if shown:
        await _table(client, "POST", "/api/generate", {"model": model, "stream": False}, LOAD_SECONDS)
    return ServedWindow(await _loaded(client, model), most)


async def _loaded(client: "HttpClient", model: str) -> int:
    """The window of a model that is in memory."""
    running = tables((await _table(client, "GET", "/api/ps")).get("models"))
    names = (model, f"{model}:latest")
    return next((as_count(entry.get("context_length")) for entry in running if text_of(entry, "model") in names), 0)


async def _lmstudio(client: "HttpClient", model: str) -> ServedWindow:
    entry = await _table(client, "GET", f"/api/v0/models/{quote(model)}")
    most = as_count(entry.get("max_context_length"))
    return ServedWindow(as_count(entry.get("loaded_context_length")), most)


async def _llama_cpp(client: "HttpClient", model: str) -> ServedWindow:
    props = await _table(client, "GET", "/props")
    listed = tables((await _table(client, "GET", "/v1/models")).get("data"))
    most = max((as_count(as_table(entry.get("meta")).get("n_ctx_train")) for entry in listed), default=0)
    return ServedWindow(as_count(as_table(props.get("default_generation_settings")).get("n_ctx")), most)


async def _vllm(client: "HttpClient", model: str) -> ServedWindow:
    listed = tables((await _table(client, "GET", "/v1/models")).get("data"))
    tokens = next((as_count(entry.get("max_model_len")) for entry in listed if entry.get("id") == model), 0)
    return ServedWindow(tokens)


async def _table(
    client: "HttpClient", method: str, path: str, body: Any = None, seconds: float = ASK_SECONDS
) -> dict[str, Any]:
    content = json.dumps(body).encode() if body else b""
    async with asyncio.timeout(seconds):
        answer = await client.send(method, path, content, {"content-type": "application/json"})
        text = await answer.body()
    return as_table(read_json(text)) if answer.is_success else {}


WAYS: dict[str, Callable[["HttpClient", str], Awaitable[ServedWindow]]] = {
    "ollama": _ollama,
    "lmstudio": _lmstudio,
    "llama.cpp": _llama_cpp,
    "vllm": _vllm,
}
