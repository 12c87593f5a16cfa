"""The models on the page: lists them, tries whether they answer, and adds a key or an address."""

import asyncio
import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from duckflow.cli.doctor.model import try_out
from duckflow.cli.host_process import pass_on_keys
from duckflow.cli.init.own_model import ASK_KEY, best_first, keep, reach, save_settings
from duckflow.config.load import load
from duckflow.config.settings import Settings
from duckflow.errors import UsageError
from duckflow.llm.discover import ModelChoice, discover, fetch_models, list_models
from duckflow.llm.endpoints import (
    KEYED,
    KNOWN,
    SERVERS,
    TYPED,
    Endpoint,
    Key,
    catalogue,
    find_key,
    keep_in_memory,
    key_in_environment,
    usable_key,
)
from duckflow.llm.facts import facts_of, models_of
from duckflow.state.data import say
from duckflow.state.question import Question
from duckflow.store.paths import Paths

LISTING_SECONDS, LOOK_SECONDS = 15.0, 1.5


class PageModels:
    """The models that the user can reach by their settings and keys. A typed key is tried before it is stored in the
    keyring, or else kept until the page's process ends, which hands it to the sessions that it starts. It is never
    returned."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    async def models(self) -> Sequence[Mapping[str, Any]]:
        """Lists the models whose endpoint has a key or needs none, with their known facts."""
        endpoints, own_names = await asyncio.to_thread(self._endpoints)
        usual_names = [name for name in KEYED if endpoints[name] in KNOWN]
        keys = await asyncio.to_thread(lambda: {name: find_key(endpoints[name], os.environ) for name in usual_names})
        rows = [_row("local")]
        for name in (name for name in usual_names if keys[name]):
            rows += [_row(name, model) for model in models_of(name)]
        moved_names = [name for name in KEYED if name not in usual_names]
        asked_endpoints = [
            endpoints[name] for name in dict.fromkeys((*SERVERS, *moved_names, *own_names)) if name not in usual_names
        ]
        for served_rows in await asyncio.gather(*(self._served(endpoint) for endpoint in asked_endpoints)):
            rows += served_rows
        return rows

    async def endpoints(self) -> Sequence[Mapping[str, Any]]:
        """Lists the providers and the user's own servers, each with the place its key comes from, if it has a key."""
        endpoints, own_names = await asyncio.to_thread(self._endpoints)
        return await asyncio.to_thread(
            lambda: [_shown(endpoints[name]) for name in dict.fromkeys((*KEYED, *own_names))]
        )

    async def add(self, name: str, address: str, secret: str, model: str, default: bool) -> Mapping[str, Any]:
        """Tries a provider's key or an address, and saves it if a model answers."""
        key = usable_key(secret.strip(), TYPED) if secret.strip() else None
        endpoint = await self._found(name, address, key)
        chosen_model = model
        if not chosen_model:
            names = [listed_model.model for listed_model in await fetch_models(endpoint, key, LISTING_SECONDS)]
            chosen_model = best_first(endpoint, names)[0]
        choice = ModelChoice("endpoint", chosen_model, say("model.chosen.config"), endpoint, key)
        seconds = await try_out(choice, Settings(), self._paths)
        kept = await asyncio.to_thread(keep, endpoint, choice)
        pass_on_keys()
        await asyncio.to_thread(save_settings, kept.settings if default else kept.settings[1:], self._paths)
        answer_note = say("own.answers", model=choice.name, seconds=round(seconds, 1))
        return {"model": choice.name, "told": [phrase.model_dump() for phrase in (answer_note, *kept.notes)]}

    def hear_typed(self, question: Question, text: str) -> None:
        """Keeps a key that is typed in a session, so that no other session asks for it again."""
        if question.title.key == ASK_KEY:
            with contextlib.suppress(UsageError):
                keep_in_memory(str(question.title.values["endpoint"]), usable_key(text, TYPED))
                pass_on_keys()

    async def lacks_default(self) -> bool:
        """Says whether sessions would find no model that is named in the settings or has a key."""
        if (await asyncio.to_thread(self._settings)).llm.model:
            return False
        return not any(row["key"] for row in await self.endpoints())

    async def check(self, name: str) -> Mapping[str, Any]:
        """Asks the model for one word. A DuckflowError says why no answer came."""
        settings = await asyncio.to_thread(self._settings)
        choice = await discover(name, settings.llm, os.environ)
        seconds = await try_out(choice, settings, self._paths)
        return {"told": [say("own.answers", model=choice.name, seconds=round(seconds, 1)).model_dump()]}

    async def _found(self, name: str, address: str, key: Key | None) -> Endpoint:
        if address:
            endpoint, refusal = await reach(address, key)
            if refusal:
                raise refusal
            return endpoint
        endpoints, _ = await asyncio.to_thread(self._endpoints)
        if name not in endpoints or key is None:
            raise UsageError("serve.bad", what=name)
        return endpoints[name]

    async def _served(self, endpoint: Endpoint) -> list[dict[str, Any]]:
        key = await asyncio.to_thread(find_key, endpoint, os.environ)
        return [
            _row(endpoint.name, listed_model.model, listed_model.window)
            for listed_model in await list_models(endpoint, key, LOOK_SECONDS)
        ]

    def _settings(self) -> Settings:
        return load(self._paths.user_config, Path.cwd(), {}).settings

    def _endpoints(self) -> tuple[dict[str, Endpoint], Iterable[str]]:
        own_endpoints = self._settings().llm.endpoints
        return catalogue(own_endpoints, os.environ), own_endpoints.keys()


def _row(endpoint: str, model: str = "", window: int = 0) -> dict[str, Any]:
    facts = facts_of(endpoint, model) if model else None
    price = [facts.price.input, facts.price.output] if facts and facts.price else None
    name = f"{endpoint}:{model}" if model else endpoint
    return {"name": name, "window": window or (facts.window if facts else 0), "price": price}


def _shown(endpoint: Endpoint) -> dict[str, Any]:
    """Describes an endpoint. The description says where the key comes from, but does not contain the key."""
    key = find_key(endpoint, os.environ)
    source = key.source if key else ""
    return {
        "name": endpoint.name,
        "where": endpoint.where,
        "key": say("own.key_typed").model_dump() if source == TYPED else source,
        "fixed": bool(key_in_environment(endpoint, os.environ)),
    }
