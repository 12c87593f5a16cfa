"""`duckflow acp`: Duckflow as the agent of an editor, which may open several conversations at a time, in any folder."""

import asyncio
import gc
import importlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from duckflow.cli.parser import Options
from duckflow.editor.acp import AcpAgent, ListedSession, Setting
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths

if TYPE_CHECKING:
    from duckflow.cli.conversations import ChosenSession
    from duckflow.cli.setup import Setup
    from duckflow.editor.session import HeldConversation
    from duckflow.tools.settings import ServerSettings

STDIN, STDOUT, STDERR = 0, 1, 2
NEEDED = ("duckflow.cli.build", "duckflow.cli.talk", "duckflow.editor.session", "duckflow.cli.slash")


def run_acp(options: Options, words: Words, paths: Paths) -> int:
    if options.what:
        from duckflow.cli.init.command import run_log_in

        return run_log_in(options, words, paths)
    # Only the protocol may be written to stdout, so everything else that is printed goes to stderr.
    stdout_copy = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    asyncio.run(_serve(AcpAgent(EditorConversations(options, words, paths), words), stdout_copy))
    return 0


async def _serve(agent: AcpAgent, target: int) -> None:
    from duckflow.cli.signals import ended_by_signals

    with ended_by_signals(agent.leave):
        await agent.run(STDIN, target)


class EditorConversations:
    """Builds a conversation for each session of an editor."""

    def __init__(self, options: Options, words: Words, paths: Paths) -> None:
        self._options = options
        self._words = words
        self._paths = paths

    async def load(self) -> None:
        await asyncio.to_thread(_load)

    async def has_model(self) -> bool:
        from duckflow.cli.init.set_up import finds_model
        from duckflow.config.load import load

        model_name = self._options.model or ""
        llm = (await asyncio.to_thread(load, self._paths.user_config, Path.cwd(), {})).settings.llm
        return await finds_model(model_name, llm, self._paths)

    async def begin(self, setting: Setting) -> "HeldConversation":
        await self.load()
        from duckflow.cli.conversations import new_session

        return self._hold(new_session(self._setup(setting)), setting)

    async def resume(self, session_id: str, setting: Setting) -> "HeldConversation":
        await self.load()
        from duckflow.cli.conversations import resumed_session
        from duckflow.store.sessions import Sessions

        setup = self._setup(setting)
        session_entry = Sessions(self._paths.sessions_of(setup.folder)).find(session_id)
        if session_entry.session_id != session_id:
            raise UsageError("sessions.unknown", wanted=session_id)
        if not session_entry.here:
            raise UsageError("editor.other_folder", folder=session_entry.headline.folder)
        return self._hold(resumed_session(session_entry.path, setup), setting)

    def all(self, folder: Path | None) -> Sequence[ListedSession]:
        from duckflow.store.sessions import Sessions

        sessions = Sessions(self._paths.sessions_of((folder or Path.cwd()).resolve()))
        return [
            ListedSession(
                summary.session_id,
                summary.folder,
                summary.title or summary.asked,
                datetime.fromtimestamp(summary.updated, UTC).isoformat(),
            )
            for summary in (entry.summary() for entry in (sessions.here() if folder else sessions.all()))
        ]

    def _setup(self, setting: Setting) -> "Setup":
        """Makes a setup with its own `Words`, since each session may use another language. Where servers have the same
        name, the user's server wins over the editor's."""
        from duckflow.cli.talk import make_setup

        if not setting.folder.is_dir():
            raise UsageError("editor.no_folder", folder=str(setting.folder))
        options = Options(**vars(self._options) | {"add_dir": [*self._options.add_dir, *setting.added]})
        setup = make_setup(options, Words(self._words.language), self._paths, setting.folder.resolve())
        mcp = setup.settings.mcp
        mcp = mcp.model_copy(update={"servers": {**read_servers(setting.mcp_servers), **mcp.servers}})
        return setup._replace(settings=setup.settings.model_copy(update={"mcp": mcp}), by_client=True)

    def _hold(self, chosen: "ChosenSession", setting: Setting) -> "HeldConversation":
        from duckflow.cli.build import build_conversation
        from duckflow.cli.init.set_up import models_at_hand
        from duckflow.editor.session import HeldConversation

        session, setup = chosen.session, chosen.setup
        built_conversation = build_conversation(setup, session)
        warm_task = asyncio.create_task(built_conversation.thinker.warm(session.state))
        if built_conversation.outside:
            built_conversation.outside.start_own()

        async def close() -> None:
            warm_task.cancel()
            await built_conversation.close()
            has_messages = bool(session.state.messages)
            session.close()
            if not has_messages:
                session.discard()

        notes = [chosen.damage] if chosen.damage else []
        usable_servers = read_servers(setting.mcp_servers)
        left_out_names = [
            name for server in setting.mcp_servers if (name := _text(server, "name")) not in usable_servers
        ]
        notes += [setup.words("editor.no_mcp", name=name) for name in left_out_names]
        chosen_models = filter(None, (self._options.model, setup.settings.llm.model, setup.settings.llm.second_model))
        return HeldConversation(
            built_conversation.conversation, setup.words, (*chosen_models, *models_at_hand()), close, tuple(notes)
        )


def read_servers(entries: Sequence[Any]) -> "dict[str, ServerSettings]":
    """Reads MCP servers in the form in which editors send them. Unknown kinds of servers are left out."""
    from duckflow.tools.settings import ServerSettings

    servers: dict[str, ServerSettings] = {}
    for server in entries:
        command, url, kind = _text(server, "command"), _text(server, "url"), _text(server, "type")
        if not _text(server, "name") or not (command or (url and kind == "http")):
            continue
        raw_args = cast("dict[str, Any]", server).get("args")
        args = tuple(map(str, cast("list[Any]", raw_args))) if isinstance(raw_args, list) else ()
        settings = ServerSettings(
            command=command, args=args, env=_pairs(server, "env"), cwd=".", url=url, headers=_pairs(server, "headers")
        )
        servers[_text(server, "name")] = settings
    return servers


def _pairs(entry: Any, name: str) -> dict[str, str]:
    """Returns the pairs in the field `name` of `entry`: a list of objects that have a name and a value."""
    raw_pairs: Any = entry.get(name)
    pair_list = cast("list[Any]", raw_pairs) if isinstance(raw_pairs, list) else []
    return {_text(pair, "name"): _text(pair, "value") for pair in pair_list if _text(pair, "name")}


def _text(entry: Any, name: str) -> str:
    value: Any = cast("dict[str, Any]", entry).get(name) if isinstance(entry, dict) else None
    return value if isinstance(value, str) else ""


def _load() -> None:
    """Imports the modules that a conversation needs. It runs in a thread, so that the editor gets answers meanwhile."""
    for name in NEEDED:
        importlib.import_module(name)
    # The loaded modules stay for good, so the garbage collector need not look through them again and again.
    gc.freeze()
    gc.enable()
