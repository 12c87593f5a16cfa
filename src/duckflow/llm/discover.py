"""Finds the model to use: by flag, config, keys, a local server that answers, or else the embedded model."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from duckflow.errors import ModelError, ProviderRefused, ProviderUnreachable, UsageError
from duckflow.llm.endpoints import KEYED, OTHER_NAMES, SERVERS, Endpoint, Key, catalogue, find_key, key_in_environment
from duckflow.llm.facts import OLLAMA_WINDOW, facts_of, nearest_names
from duckflow.llm.failures import NO_MODEL_THERE, NONE_LISTED, WRONG_ADDRESS, WRONG_ADDRESS_MAYBE, Failures
from duckflow.llm.settings import DEFAULT_MODEL, LlmSettings
from duckflow.state.data import Phrase, as_count, as_table, say, tables, text_of
from duckflow.whole_text import read_json

if TYPE_CHECKING:
    from duckflow.http import HttpClient


ASK_SECONDS = 5.0
LOAD_SECONDS = 60.0
"""Seconds to wait while Ollama loads a model, because Ollama decides on the window only then. Otherwise the first
request would wait as long."""


class ServedWindow(NamedTuple):
    """The context window a server gives to a model, and the largest one the model supports; 0 where unknown."""

    tokens: int = 0
    most: int = 0


async def served_window(endpoint: Endpoint, model: str, key: Key | None) -> ServedWindow:
    """Asks a local server for the window of a model. Both figures are 0 when it does not answer in time."""
    ask_server = WAYS.get(endpoint.name)
    if ask_server is None:
        return ServedWindow()
    # The import is slow, so it runs in a thread: the user may be typing meanwhile.
    await asyncio.to_thread(import_module, "duckflow.llm.endpoint_model")
    from duckflow.http import HttpError
    from duckflow.llm.endpoint_model import open_client

    try:
        server = endpoint._replace(base_url=endpoint.base_url.removesuffix("/v1"))
        async with open_client(server, key, ASK_SECONDS) as client, asyncio.timeout(LOAD_SECONDS):
            return await ask_server(client, model)
    except (TimeoutError, HttpError):
        return ServedWindow()


async def _ollama(client: "HttpClient", model: str) -> ServedWindow:
    description = await _table(client, "POST", "/api/show", {"model": model})
    model_info = as_table(description.get("model_info"))
    longest_context = max(
        (as_count(value) for name, value in model_info.items() if name.endswith(".context_length")), default=0
    )
    parameter_match = re.search(r"(?m)^num_ctx\s+(\d+)", text_of(description, "parameters"))
    if tokens := await _loaded(client, model) or (int(parameter_match[1]) if parameter_match else 0):
        return ServedWindow(tokens, longest_context)
    if description:
        await _table(client, "POST", "/api/generate", {"model": model, "stream": False}, LOAD_SECONDS)
    return ServedWindow(await _loaded(client, model), longest_context)


async def _loaded(client: "HttpClient", model: str) -> int:
    """Returns the window of a model that Ollama has in memory; 0 if the model is not loaded."""
    running_models = tables((await _table(client, "GET", "/api/ps")).get("models"))
    names = (model, f"{model}:latest")
    return next(
        (as_count(entry.get("context_length")) for entry in running_models if text_of(entry, "model") in names), 0
    )


async def _lmstudio(client: "HttpClient", model: str) -> ServedWindow:
    model_entry = await _table(client, "GET", f"/api/v0/models/{quote(model)}")
    longest_context = as_count(model_entry.get("max_context_length"))
    return ServedWindow(as_count(model_entry.get("loaded_context_length")), longest_context)


async def _llama_cpp(client: "HttpClient", model: str) -> ServedWindow:
    props = await _table(client, "GET", "/props")
    models = tables((await _table(client, "GET", "/v1/models")).get("data"))
    longest_context = max((as_count(as_table(entry.get("meta")).get("n_ctx_train")) for entry in models), default=0)
    return ServedWindow(as_count(as_table(props.get("default_generation_settings")).get("n_ctx")), longest_context)


async def _vllm(client: "HttpClient", model: str) -> ServedWindow:
    models = tables((await _table(client, "GET", "/v1/models")).get("data"))
    tokens = next((as_count(entry.get("max_model_len")) for entry in models if entry.get("id") == model), 0)
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
    """A model that an endpoint lists, and its window if the listing names it."""

    endpoint: Endpoint
    model: str
    window: int = 0


async def list_models(endpoint: Endpoint, key: Key | None, seconds: float) -> list[Listed]:
    """Returns the chat models of an endpoint; an empty list where no model server answers in time."""
    try:
        return await _fetch_models(endpoint, key, seconds)
    except ModelError:
        return []


async def fetch_models(endpoint: Endpoint, key: Key | None, seconds: float) -> list[Listed]:
    """Returns the chat models of an endpoint, or raises a ModelError that says why there are none. If the address is
    wrong, the error suggests another address, but only one that lists models or wants a key."""
    try:
        return await _fetch_models(endpoint, key, seconds)
    except ModelError as problem:
        if problem.key not in (WRONG_ADDRESS, NO_MODEL_THERE):
            raise
        others = await asyncio.gather(*(_where(other, key, seconds) for other in likely_addresses(endpoint)))
        if other := next(filter(None, others), ""):
            raise ProviderRefused(WRONG_ADDRESS_MAYBE, where=endpoint.where, other=other) from None
        raise


async def _where(endpoint: Endpoint, key: Key | None, seconds: float) -> str:
    """Returns the endpoint's address if it lists models or wants a key; otherwise nothing."""
    try:
        return endpoint.where if await _fetch_models(endpoint, key, seconds) else ""
    except ModelError as problem:
        return endpoint.where if problem.key.startswith("model.key_") else ""


def likely_addresses(endpoint: Endpoint) -> list[Endpoint]:
    """Returns the endpoint at each folder of its address, with or without a version; the longest path comes first."""
    versions, parts = ("",) if endpoint.wire == "anthropic" else ("/v1", ""), urlsplit(endpoint.base_url)
    folders = [f"/{folder}" for folder in parts.path.split("/") if folder]
    paths = ["".join(folders[:count]) for count in range(len(folders), -1, -1)]
    urls = (urlunsplit(parts._replace(path=f"{path}{version}", query="")) for path in paths for version in versions)
    return [endpoint._replace(base_url=url) for url in dict.fromkeys(urls) if url != endpoint.base_url]


async def _fetch_models(endpoint: Endpoint, key: Key | None, seconds: float) -> list[Listed]:
    # The import is slow, so it runs in a thread: the user may be typing meanwhile.
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
        raise ProviderUnreachable(NONE_LISTED, endpoint=endpoint.name, where=endpoint.where)
    raise failures.garbage(text).error


async def check_listed(endpoint: Endpoint, model: str, key: Key | None, seconds: float = CHECK_SECONDS) -> None:
    """Raises a UsageError for a name that the endpoint does not list. An endpoint that lists nothing is not checked."""
    names = [listed_model.model for listed_model in await list_models(endpoint, key, seconds)]
    if names and not any(_same(model, name) for name in names):
        import difflib

        near_names = difflib.get_close_matches(model, names, n=NEAR, cutoff=0.3) or names[:NEAR]
        raise UsageError("model.not_listed", model=model, endpoint=endpoint.name, near=", ".join(near_names))


def _same(wanted: str, listed: str) -> bool:
    """Says whether two names mean the same model. Gemini lists names with a folder before them. A wanted name may leave
    out a tag, or add a variant that is not listed."""
    wanted, listed = (name.removeprefix("models/").casefold() for name in (wanted, listed))
    return wanted == listed or listed.startswith(f"{wanted}:") or wanted.startswith(f"{listed}:")


def _chatting(endpoint: Endpoint, entries: Any) -> list[Listed]:
    models: list[Listed] = []
    for model_entry in tables(entries):
        name = text_of(model_entry, "id", "name").removeprefix("models/")
        if name and not re.search(NO_CHAT, name):
            fields = model_entry | as_table(model_entry.get("meta"))
            window = next((size for name in WINDOWS if (size := as_count(fields.get(name)))), 0)
            models.append(Listed(endpoint, name, window))
    return models


EMBEDDED_PACKAGE = "xllamacpp"
NO_MODEL = "model.none_found"
BY_ITSELF = "model.chosen.embedded"
"""The key of the sentence that explains the choice of the local model: the user named no model, and no other was
found."""
LISTING_SECONDS = 5.0
WORKABLE_WINDOW = 32_768
"""The tokens that a model needs for good work. The user gets a note when a server gives fewer, although the model could
have more."""


class ModelChoice(NamedTuple):
    """The outcome of the search for a model. Nothing has been built or sent yet."""

    kind: Literal["endpoint", "embedded", "scripted"]
    model: str
    """The model's name at the endpoint, the name of local weights, or the path of a script."""
    why: Phrase
    endpoint: Endpoint | None = None
    key: Key | None = None
    notes: tuple[Phrase, ...] = ()
    """Remarks for the user, such as how many tokens a local server gives to the model."""

    @property
    def name(self) -> str:
        """The model's name as it is shown to people, such as `openai:gpt-5-mini`."""
        provider = "local" if self.kind == "embedded" else self.endpoint.name if self.endpoint else self.kind
        return f"{provider}:{self.model}"

    @property
    def key_source(self) -> str:
        """The place the key came from, as shown to people; empty without a key."""
        return self.key.source if self.key else ""


async def discover(
    name: str,
    settings: LlmSettings,
    environ: Mapping[str, str],
    origin: Phrase | None = None,
    typed: Mapping[str, Key] = MappingProxyType({}),
) -> ModelChoice:
    """Returns the model to use. `name` is the model that the user asked for, or empty; `origin` says where they named
    it (empty: on the command line). `typed` holds the keys that they have just typed, by endpoint."""
    return await Discovery(settings, environ, typed).choose(name.strip(), origin or say("model.chosen.flag"))


class Discovery:
    """Resolves model names and looks for a model, with one set of settings and one environment."""

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
        """Returns the model for a name such as `endpoint:model` or, as other programs write it, `endpoint/model`."""
        prefix, separator, model = _parted(name)
        if prefix == "scripted" and separator == ":" and model:
            return ModelChoice("scripted", model, why)
        if prefix == "local":
            return ModelChoice("embedded", model or DEFAULT_MODEL, why)
        openai = self._known["openai"]
        if separator == "/" and not openai.key_needed and await self._serves(openai, name):
            # The user's own server may have model names that contain a slash.
            return await self._at(openai, name, why)
        if endpoint := self._known.get(prefix):
            return await self._at(endpoint, model, why)
        if separator and openai.key_needed:
            raise self._unknown(name)
        if openai.key_needed and self._key(openai) is None:
            near_names = ", ".join(nearest_names(name, self._known)) or f"ollama:{name}"
            raise UsageError("model.bare_name", name=name, near=near_names, known=self._names())
        # Names of models may contain colons too, such as the tags of Ollama.
        return await self._at(openai, name, why)

    def spelled(self, name: str) -> str:
        """Returns the name as Duckflow writes it, or raises a UsageError for an unknown endpoint. Sends no request."""
        prefix, separator, model = _parted(name)
        is_own_server = not self._known["openai"].key_needed
        if not separator or prefix in ("scripted", "local") or is_own_server:
            return name
        if prefix not in self._known:
            raise self._unknown(name)
        return f"{prefix}:{model}"

    def _unknown(self, name: str) -> UsageError:
        if "://" in name:
            return UsageError("model.address_as_name")
        near_names = ", ".join(nearest_names(name, self._known)) or "–"
        return UsageError("model.unknown_endpoint", name=_parted(name)[0], near=near_names, known=self._names())

    async def _serves(self, endpoint: Endpoint, name: str) -> bool:
        models = await list_models(endpoint, self._key(endpoint), LISTING_SECONDS)
        return any(_same(name, listed_model.model) for listed_model in models)

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
        """Returns the choice of this model. A local server is first asked for the model's window, which a note tells
        the user."""
        set_window = self._settings.window or self._known[endpoint.name].window
        if endpoint.name in SERVERS and not set_window:
            window = await served_window(endpoint, model, key)
            tokens = window.tokens or endpoint.window
            if tokens:
                is_small_window = tokens < min(window.most, WORKABLE_WINDOW)
                values = {"server": endpoint.name, "model": model, "tokens": tokens, "most": window.most or tokens}
                self._notes.append(say("model.served_little" if is_small_window else "model.served", **values))
            elif facts_of(endpoint.name, model).window == OLLAMA_WINDOW:
                values = {"server": endpoint.name, "model": model, "tokens": OLLAMA_WINDOW}
                self._notes.append(say("model.served_unknown", **values))
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
        """Asks all local servers at once, and returns the first (in their order) that has a model."""
        seconds = self._settings.probe_seconds
        answers = await asyncio.gather(*(list_models(self._known[name], None, seconds) for name in SERVERS))
        first_model = next((models[0] for models in answers if models), None)
        if first_model is None:
            return None
        endpoint = _with_window(first_model)
        reason = say("model.chosen.server", server=endpoint.name, where=endpoint.where)
        model = endpoint.model or first_model.model
        return await self._with_window(endpoint, model, reason, key_in_environment(endpoint, self._environ))

    def _embedded(self) -> ModelChoice:
        if find_spec(EMBEDDED_PACKAGE) is None:
            raise ProviderUnreachable(NO_MODEL)
        return ModelChoice("embedded", DEFAULT_MODEL, say(BY_ITSELF), notes=tuple(self._notes))

    def _names(self) -> str:
        return ", ".join([*self._known, "local", "scripted"])


def _parted(name: str) -> tuple[str, str, str]:
    """Splits a name into the endpoint, the sign after it (`:` or `/`), and the model's name at that endpoint."""
    separator = next((character for character in name if character in ":/"), "")
    prefix, _, model = name.partition(separator) if separator else (name, "", "")
    return OTHER_NAMES.get(prefix.lower(), prefix.lower()), separator, model


def _with_window(listed: Listed) -> Endpoint:
    return listed.endpoint._replace(window=listed.endpoint.window or listed.window)
