"""Asking endpoints which models they have."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from duckflow.errors import UsageError
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.keys import Key
from duckflow.llm.loose import count_of, table

NO_CHAT = re.compile(r"embed|rerank|whisper|\btts\b|moderation|dall-e|bge-", re.I)
CHECK_SECONDS = 5.0
NEAR = 3
WINDOWS = ("max_model_len", "loaded_context_length", "context_length", "max_context_length", "n_ctx")


@dataclass(frozen=True, slots=True)
class Listed:
    """A model that an endpoint has, and its window if that was said."""

    endpoint: Endpoint
    model: str
    window: int = 0


async def first_listed(endpoints: Sequence[Endpoint], seconds: float) -> Listed | None:
    """Ask all at once; the first in order that has a model wins."""
    answers = await asyncio.gather(*(list_models(endpoint, None, seconds) for endpoint in endpoints))
    return next((models[0] for models in answers if models), None)


async def list_models(endpoint: Endpoint, key: Key | None, seconds: float) -> list[Listed]:
    """The models to chat with; none when nothing answers in time, or something else than a model server does."""
    # In a thread: it is slow to load, and somebody may be typing.
    await asyncio.to_thread(import_module, "duckflow.llm.client")
    import httpx

    from duckflow.llm.client import open_client

    async with open_client(endpoint, key, seconds) as client:
        try:
            async with asyncio.timeout(seconds):
                response = await client.get(f"{endpoint.base_url}/models")
            entries: Any = table(response.json()).get("data") if response.is_success else None
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
            return []
    return _chatting(endpoint, entries)


async def check_listed(endpoint: Endpoint, model: str, key: Key | None, seconds: float = CHECK_SECONDS) -> None:
    """Refuse a name that the endpoint does not have; one that lists nothing is believed."""
    import difflib

    listed = [one.model for one in await list_models(endpoint, key, seconds)]
    if listed and not any(_same(model, one) for one in listed):
        near = difflib.get_close_matches(model, listed, n=NEAR, cutoff=0.3) or listed[:NEAR]
        raise UsageError("model.not_listed", model=model, endpoint=endpoint.name, near=", ".join(near))


def _same(wanted: str, listed: str) -> bool:
    """Gemini puts a folder before its names; a tag may be left out, and a variant that is not listed added."""
    wanted, listed = (name.removeprefix("models/").casefold() for name in (wanted, listed))
    return wanted == listed or listed.startswith(f"{wanted}:") or wanted.startswith(f"{listed}:")


def _chatting(endpoint: Endpoint, entries: Any) -> list[Listed]:
    found: list[Listed] = []
    for entry in map(table, cast("list[Any]", entries) if isinstance(entries, list) else []):
        name = entry.get("id")
        if isinstance(name, str) and name and not NO_CHAT.search(name):
            said = entry | table(entry.get("meta"))
            window = next((size for field in WINDOWS if (size := count_of(said.get(field)))), 0)
            found.append(Listed(endpoint, name, window))
    return found
