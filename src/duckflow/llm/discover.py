"""Which model is used: flag, config, keys, a local server that answers, the embedded model."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote

from duckflow.errors import ModelError, ProviderUnreachable, UsageError
from duckflow.llm.endpoints import KEYED, OTHER_NAMES, SERVERS, Endpoint, Key, catalogue, find_key, key_in_environment
from duckflow.llm.facts import OLLAMA_WINDOW, facts_of, nearest_names
from duckflow.llm.failures import Failures
from duckflow.llm.settings import DEFAULT_MODEL, LlmSettings
from duckflow.state.noun import as_count, as_table, tables, text_of
from duckflow.state.phrase import Phrase, say
from duckflow.whole_text import read_json

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


NO_CHAT = r"(?i)embed|rerank|whisper|\btts\b|moderation|dall-e|bge-"
CHECK_SECONDS = 5.0
NEAR = 3
WINDOWS = ("max_model_len", "loaded_context_length", "context_length", "max_context_length", "n_ctx",
           "max_input_tokens", "inputTokenLimit")  # fmt: skip


class Listed(NamedTuple):
    """A model that an endpoint has, and its window if that was said."""

    endpoint: Endpoint
    model: str
    window: int = 0


async def list_models(endpoint: Endpoint, key: Key | None, seconds: float) -> list[Listed]:
    """The models to chat with; none when nothing answers in time, or something else than a model server does."""
    try:
        return await fetch_models(endpoint, key, seconds)
    except ModelError:
        return []


async def fetch_models(endpoint: Endpoint, key: Key | None, seconds: float) -> list[Listed]:
    """The models to chat with; a ModelError says why there are none."""
    # In a thread: it is slow to load, and somebody may be typing.
    await asyncio.to_thread(import_module, "duckflow.llm.endpoint_model")
    from duckflow.http import HttpError
    from duckflow.llm.endpoint_model import open_client, setback_of
    from duckflow.llm.wires.wire import wire_named

    failures = Failures(endpoint, "", key)
    try:
        async with open_client(endpoint, key, seconds) as client, asyncio.timeout(seconds):
            response = await client.send("GET", wire_named(endpoint.wire).listing)
            text = (await response.body()).decode("utf-8", "replace")
    except TimeoutError:
        raise failures.timed_out(seconds).error from None
    except HttpError as error:
        raise setback_of(error, endpoint, failures, seconds).error from None
    if not response.is_success:
        raise failures.of_status(response.status, response.headers, text).error
    answer = as_table(read_json(text))
    entries = answer.get("data", answer.get("models", answer))
    if models := _chatting(endpoint, entries):
        return models
    if isinstance(entries, list | None):
        raise ProviderUnreachable("model.none_listed", endpoint=endpoint.name, where=endpoint.where)
    raise failures.garbage(text).error


async def check_listed(endpoint: Endpoint, model: str, key: Key | None, seconds: float = CHECK_SECONDS) -> None:
    """Refuse a name that the endpoint does not have; one that lists nothing is believed."""
    listed = [one.model for one in await list_models(endpoint, key, seconds)]
    if listed and not any(_same(model, one) for one in listed):
        import difflib

        near = difflib.get_close_matches(model, listed, n=NEAR, cutoff=0.3) or listed[:NEAR]
        raise UsageError("model.not_listed", model=model, endpoint=endpoint.name, near=", ".join(near))


def _same(wanted: str, listed: str) -> bool:
    """Gemini puts a folder before its names; a tag may be left out, and a variant that is not listed added."""
    wanted, listed = (name.removeprefix("models/").casefold() for name in (wanted, listed))
    return wanted == listed or listed.startswith(f"{wanted}:") or wanted.startswith(f"{listed}:")


def _chatting(endpoint: Endpoint, entries: Any) -> list[Listed]:
    found: list[Listed] = []
    for entry in tables(entries):
        name = text_of(entry, "id", "name").removeprefix("models/")
        if name and not re.search(NO_CHAT, name):
            said = entry | as_table(entry.get("meta"))
            window = next((size for field in WINDOWS if (size := as_count(said.get(field)))), 0)
            found.append(Listed(endpoint, name, window))
    return found


EMBEDDED_PACKAGE = "xllamacpp"
LISTING_SECONDS = 5.0
WORKABLE_WINDOW = 32_768
"""A model that could have so many tokens and gets fewer works far below what it can do."""


class ModelChoice(NamedTuple):
    """The outcome of the search for a model; nothing has been built or asked yet."""

    kind: Literal["endpoint", "embedded", "scripted"]
    model: str
    """Its name at the endpoint; the name of the weights; the path of the script."""
    why: Phrase
    endpoint: Endpoint | None = None
    key: Key | None = None
    notes: tuple[Phrase, ...] = ()
    """What was passed over on the way and may be worth a line."""

    @property
    def name(self) -> str:
        """As shown to people, such as `openai:gpt-5-mini`."""
        where = "local" if self.kind == "embedded" else self.endpoint.name if self.endpoint else self.kind
        return f"{where}:{self.model}"

    @property
    def key_source(self) -> str:
        """Where the key came from, for people; empty without one."""
        return self.key.source if self.key else ""


async def discover(
    name: str,
    settings: LlmSettings,
    environ: Mapping[str, str],
    origin: Phrase | None = None,
    typed: Mapping[str, Key] = MappingProxyType({}),
) -> ModelChoice:
    """The model to use. `name` is the one that the user wants, by the command line unless `origin` says where; empty
    when they have named none. `typed` holds the keys that they have just typed, by endpoint."""
    return await Discovery(settings, environ, typed).choose(name.strip(), origin or say("model.chosen.flag"))


class Discovery:
    """Reads names of models and looks around, with one set of settings and one environment."""

    def __init__(
        self, settings: LlmSettings, environ: Mapping[str, str], typed: Mapping[str, Key] = MappingProxyType({})
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._typed = typed
        self._known = catalogue(settings.endpoints, environ)
        self._notes: list[Phrase] = []

    async def choose(self, name: str, origin: Phrase) -> ModelChoice:
        if name:
            return await self.named(name, origin)
        if self._settings.model.strip():
            return await self.named(self._settings.model.strip(), say("model.chosen.config"))
        return await self._by_environment() or await self._by_server() or self._embedded()

    async def named(self, name: str, why: Phrase) -> ModelChoice:
        """The model of a name as `endpoint:model` or, as others write it, `endpoint/model`."""
        prefix, mark, rest = _parted(name)
        if prefix == "scripted" and mark == ":" and rest:
            return ModelChoice("scripted", rest, why)
        if prefix == "local":
            return ModelChoice("embedded", rest or DEFAULT_MODEL, why)
        openai = self._known["openai"]
        if mark == "/" and not openai.key_needed and await self._serves(openai, name):
            # A server of the user's own may have names with a slash itself.
            return await self._at(openai, name, why)
        if endpoint := self._known.get(prefix):
            return await self._at(endpoint, rest, why)
        if mark and openai.key_needed:
            raise self._unknown(name)
        if openai.key_needed and self._key(openai) is None:
            near = ", ".join(nearest_names(name, self._known)) or f"ollama:{name}"
            raise UsageError("model.bare_name", name=name, near=near, known=self._names())
        # Names of models may hold colons too, such as the tags of Ollama.
        return await self._at(openai, name, why)

    def spelled(self, name: str) -> str:
        """The name as Duckflow itself writes it; a UsageError where no endpoint is called so. Nobody is asked."""
        prefix, mark, rest = _parted(name)
        own_server = not self._known["openai"].key_needed
        if not mark or prefix in ("scripted", "local") or own_server:
            return name
        if prefix not in self._known:
            raise self._unknown(name)
        return f"{prefix}:{rest}"

    def _unknown(self, name: str) -> UsageError:
        near = ", ".join(nearest_names(name, self._known)) or "–"
        return UsageError("model.unknown_endpoint", name=_parted(name)[0], near=near, known=self._names())

    async def _serves(self, endpoint: Endpoint, name: str) -> bool:
        models = await list_models(endpoint, self._key(endpoint), LISTING_SECONDS)
        return any(_same(name, listed.model) for listed in models)

    async def _at(self, endpoint: Endpoint, model: str, why: Phrase) -> ModelChoice:
        key = self._key(endpoint)
        model = model or endpoint.model
        if not endpoint.base_url:
            raise UsageError("model.endpoint_without_address", name=endpoint.name)
        if not model:
            models = await fetch_models(endpoint, key, LISTING_SECONDS)
            endpoint, model = _with_window(models[0]), models[0].model
        return await self._with_window(endpoint, model, why, key)

    def _key(self, endpoint: Endpoint) -> Key | None:
        return self._typed.get(endpoint.name) or find_key(endpoint, self._environ)

    async def _with_window(self, endpoint: Endpoint, model: str, why: Phrase, key: Key | None) -> ModelChoice:
        """The choice; a server on this machine is asked how many tokens the model gets, and that is said."""
        own = self._settings.window or self._known[endpoint.name].window
        if endpoint.name in SERVERS and not own:
            served = await served_window(endpoint, model, key)
            tokens = served.tokens or endpoint.window
            if tokens:
                least = tokens < min(served.most, WORKABLE_WINDOW)
                told = {"server": endpoint.name, "model": model, "tokens": tokens, "most": served.most or tokens}
                self._notes.append(say("model.served_little" if least else "model.served", **told))
            elif facts_of(endpoint.name, model).window == OLLAMA_WINDOW:
                told = {"server": endpoint.name, "model": model, "tokens": OLLAMA_WINDOW}
                self._notes.append(say("model.served_unknown", **told))
            endpoint = endpoint._replace(window=tokens)
        return ModelChoice("endpoint", model, why, endpoint, key, tuple(self._notes))

    async def _by_environment(self) -> ModelChoice | None:
        for endpoint in (self._known[name] for name in KEYED):
            key = key_in_environment(endpoint, self._environ)
            if key is not None:
                return await self._at(endpoint, "", say("model.chosen.environment", variable=key.source))
            if endpoint.name == "openai" and not endpoint.key_needed:
                return await self._at(endpoint, "", say("model.chosen.address", where=endpoint.where))
        return None

    async def _by_server(self) -> ModelChoice | None:
        """All are asked at once; the first in order that has a model wins."""
        seconds = self._settings.probe_seconds
        answers = await asyncio.gather(*(list_models(self._known[name], None, seconds) for name in SERVERS))
        found = next((models[0] for models in answers if models), None)
        if found is None:
            return None
        endpoint = _with_window(found)
        why = say("model.chosen.server", server=endpoint.name, where=endpoint.where)
        model = endpoint.model or found.model
        return await self._with_window(endpoint, model, why, key_in_environment(endpoint, self._environ))

    def _embedded(self) -> ModelChoice:
        if find_spec(EMBEDDED_PACKAGE) is None:
            raise ProviderUnreachable("model.none_found")
        return ModelChoice("embedded", DEFAULT_MODEL, say("model.chosen.embedded"), notes=tuple(self._notes))

    def _names(self) -> str:
        return ", ".join([*self._known, "local", "scripted"])


def _parted(name: str) -> tuple[str, str, str]:
    """The endpoint, the sign after it, and the model's name there."""
    mark = next((sign for sign in name if sign in ":/"), "")
    prefix, _, rest = name.partition(mark) if mark else (name, "", "")
    return OTHER_NAMES.get(prefix.lower(), prefix.lower()), mark, rest


def _with_window(found: Listed) -> Endpoint:
    return found.endpoint._replace(window=found.endpoint.window or found.window)
