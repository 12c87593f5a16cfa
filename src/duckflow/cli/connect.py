"""Finds the model of a conversation and connects to it."""

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

from duckflow.agent.connection import Connected
from duckflow.agent.session import Session
from duckflow.cli.setup import Setup
from duckflow.events.ports import Ask
from duckflow.events.types import Noticed
from duckflow.programs.find import environment_outside
from duckflow.state.data import say

if TYPE_CHECKING:
    from duckflow.llm.discover import ModelChoice
    from duckflow.llm.provider import Provider


async def find_model(
    setup: Setup, session: Session, second: bool, ask: Ask | None = None, needs_weights: bool = True
) -> Connected:
    """Finds the model for this conversation, or with `second` the model for a second opinion. Nothing is sent to the
    model yet. Where `ask` reaches a person, they may choose a model or agree to download the local one. An editor or
    other client is not asked, since it may answer by itself. Without `needs_weights`, a local model may lack its
    weights."""
    from duckflow.cli.first_run import find_with_weights
    from duckflow.llm.discover import discover

    settings, name, model_origin = setup.settings.llm, setup.model_flag, setup.model_origin
    if not (name or settings.model):
        from duckflow.config.load import load

        # A model may be set up elsewhere while this conversation stays open: in a terminal, or on the page.
        settings_now = load(setup.paths.user_config, setup.folder, {}).settings.llm
        settings = settings.model_copy(update={"model": settings_now.model, "endpoints": settings_now.endpoints})
    model_before = session.state.model
    if not name and not settings.model and model_before.partition(":")[0] in settings.endpoints:
        # An endpoint that the user defined is found only by its name.
        name, model_origin = model_before, "model.chosen.session"
    search = partial(discover, settings.second_model if second else name, settings, os.environ, say(model_origin))
    ask_user = None if setup.by_client or setup.alone else ask
    choice = await (find_with_weights(search, setup.paths, session, ask_user) if needs_weights else search({}))
    model_connection = await _connect(setup, session, choice)
    return model_connection if second else await _with_fallback(setup, session, model_connection)


async def _with_fallback(setup: Setup, session: Session, connected: Connected) -> Connected:
    """Adds the user's fallback models, which are used while the connected model cannot be reached."""
    settings = setup.settings.llm
    if not settings.fallback:
        return connected
    from duckflow.llm.discover import Discovery
    from duckflow.llm.fallback import WithFallback

    async def find(name: str) -> "Provider":
        choice = await Discovery(settings, os.environ).named(name, say("model.chosen.config"))
        return (await _connect(setup, session, choice)).provider

    return connected._replace(provider=WithFallback(connected.provider, settings.fallback, find))


async def find_named_model(setup: Setup, session: Session, name: str) -> Connected:
    """Finds the model that the user asks for in the chat. A model that its endpoint does not know is refused
    immediately."""
    from duckflow.cli.first_run import require_weights
    from duckflow.llm.discover import Discovery, check_listed

    choice = await Discovery(setup.settings.llm, os.environ).named(name, say("model.chosen.chat"))
    if choice.endpoint:
        await check_listed(choice.endpoint, choice.model, choice.key)
    if choice.kind == "embedded":
        require_weights(choice.model, setup.paths)
    return await _with_fallback(setup, session, await _connect(setup, session, choice))


async def _connect(setup: Setup, session: Session, choice: "ModelChoice") -> Connected:
    from duckflow.llm.connect import Places, connect

    settings, paths = setup.settings, setup.paths
    llm = settings.llm
    if llm.fallback:
        from duckflow.llm.fallback import PATIENCE_SECONDS

        llm = llm.model_copy(update={"patience_seconds": min(llm.patience_seconds, PATIENCE_SECONDS)})
    for note in choice.notes:
        session.emit(Noticed(what=note))
    places = Places(paths.models, paths.abilities, paths.local_log)
    environment = environment_outside(setup.folder)
    # `connect` runs in a thread: a model's client is slow to load, and somebody may be typing.
    provider = await asyncio.to_thread(connect, choice, llm, settings.local, places, environment)
    return Connected(provider, choice.why)
