"""Finding the model to use: flag, config, environment, a local server that answers, the embedded model."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec

from duckflow.errors import ProviderUnreachable, UsageError
from duckflow.llm.choice import Choice
from duckflow.llm.endpoints import KEYED, SERVERS, Endpoint, catalogue
from duckflow.llm.keys import find_key, key_in_environment
from duckflow.llm.listing import Listed, first_listed, list_models
from duckflow.llm.settings import LlmSettings
from duckflow.state.phrase import Phrase, say

BRIDGE_PACKAGE = "pydantic_ai"
EMBEDDED_PACKAGE = "xllamacpp"
LISTING_SECONDS = 5.0


async def discover(flag: str, settings: LlmSettings, environ: Mapping[str, str]) -> Choice:
    """The model to use. `flag` is what the command line says, empty when it says nothing."""
    return await Discovery(settings, environ).choose(flag)


class Discovery:
    """Reads names of models and looks around, with one set of settings and one environment."""

    def __init__(self, settings: LlmSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._known = catalogue(settings.endpoints, environ)
        self._notes: list[Phrase] = []

    async def choose(self, flag: str) -> Choice:
        if flag.strip():
            return await self.named(flag.strip(), say("model.chosen.flag"))
        if self._settings.model.strip():
            return await self.named(self._settings.model.strip(), say("model.chosen.config"))
        return await self._by_environment() or await self._by_server() or self._embedded()

    async def named(self, name: str, why: Phrase) -> Choice:
        prefix, colon, rest = name.partition(":")
        prefix = prefix.lower()
        if prefix == "scripted" and rest:
            return Choice("scripted", rest, why)
        if prefix == "local":
            return Choice("embedded", rest or embedded_default(), why)
        if endpoint := self._known.get(prefix):
            return await self._at(endpoint, rest, why)
        openai = self._known["openai"]
        if colon and openai.key_needed:
            raise UsageError("model.unknown_endpoint", name=prefix, known=self._names())
        # Names of models may hold colons too, such as the tags of Ollama.
        choice = await self._at(openai, name, why)
        if openai.needs_key and choice.key is None:
            raise UsageError("model.bare_name", name=name, known=self._names())
        return choice

    async def _at(self, endpoint: Endpoint, model: str, why: Phrase) -> Choice:
        key = find_key(endpoint, self._environ)
        model = model or endpoint.model
        if not model and endpoint.kind == "bridge":
            raise UsageError("model.name_missing", endpoint=endpoint.name)
        if not model:
            models = await list_models(endpoint, key, LISTING_SECONDS)
            if not models:
                raise ProviderUnreachable("model.none_listed", endpoint=endpoint.name, where=endpoint.where)
            endpoint, model = _with_window(models[0]), models[0].model
        return Choice(endpoint.kind, model, why, endpoint, key, tuple(self._notes))

    async def _by_environment(self) -> Choice | None:
        for endpoint in (self._known[name] for name in KEYED):
            key = key_in_environment(endpoint, self._environ)
            if key is not None and endpoint.kind == "bridge" and find_spec(BRIDGE_PACKAGE) is None:
                self._notes.append(say("model.key_unused", variable=key.source, endpoint=endpoint.name))
            elif key is not None:
                return await self._at(endpoint, "", say("model.chosen.environment", variable=key.source))
            elif endpoint.name == "openai" and not endpoint.key_needed:
                return await self._at(endpoint, "", say("model.chosen.address", where=endpoint.where))
        return None

    async def _by_server(self) -> Choice | None:
        servers = [self._known[name] for name in SERVERS]
        found = await first_listed(servers, self._settings.probe_seconds)
        if found is None:
            return None
        endpoint = _with_window(found)
        why = say("model.chosen.server", server=endpoint.name, where=endpoint.where)
        model = endpoint.model or found.model
        return Choice(
            endpoint.kind, model, why, endpoint, key_in_environment(endpoint, self._environ), tuple(self._notes)
        )

    def _embedded(self) -> Choice:
        if find_spec(EMBEDDED_PACKAGE) is None:
            raise ProviderUnreachable("model.none_found")
        return Choice("embedded", embedded_default(), say("model.chosen.embedded"), notes=tuple(self._notes))

    def _names(self) -> str:
        return ", ".join([*self._known, "local", "scripted"])


def embedded_default() -> str:
    from duckflow.llm.local.settings import DEFAULT_MODEL

    return DEFAULT_MODEL


def _with_window(found: Listed) -> Endpoint:
    return replace(found.endpoint, window=found.endpoint.window or found.window)
