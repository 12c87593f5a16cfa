"""`duckflow mcp serve`: conversations for other agents, on the streams they started us with."""

import asyncio
import os
from functools import partial
from pathlib import Path

from duckflow.cli.signals import ended_by_signals
from duckflow.editor.streams import MessageStreams
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.server.mcp_server import McpServer, OpenConversation, Wish
from duckflow.store.paths import Paths

STDIN, STDOUT, STDERR = 0, 1, 2


def serve(words: Words, paths: Paths) -> int:
    # Whatever else is printed goes to stderr: stdout carries messages only.
    messages = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    asyncio.run(_serve(words, paths, messages))
    return 0


async def _serve(words: Words, paths: Paths, messages: int) -> None:
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    streams = MessageStreams(STDIN, messages, lines.put_nowait)
    with ended_by_signals(lambda: lines.put_nowait(None)):
        await McpServer(partial(_open, words, paths), words, streams.send).serve(lines)
        await streams.flush()


def _open(words: Words, paths: Paths, wish: Wish) -> OpenConversation:
    # Loaded with the first conversation: a client waits for our first answer before it goes on.
    from duckflow.agent.session import begin, reopen
    from duckflow.agent.trust import refuse_own_folders
    from duckflow.cli.build import build_conversation
    from duckflow.cli.setup import Setup
    from duckflow.config.load import load
    from duckflow.store.sessions import Sessions, new_session_id

    if wish.session:
        entry = Sessions(paths.sessions_of(Path.cwd())).find(wish.session)
        folder, journal = Path(entry.headline.folder), entry.path
    else:
        folder, journal = Path(wish.cwd or Path.cwd()).expanduser(), None
    if not folder.is_absolute() or not folder.is_dir():
        raise UsageError("serve.no_folder", folder=str(folder))
    folder = folder.resolve()
    refuse_own_folders(folder, (paths.data, paths.config, paths.cache))
    settings = load(paths.user_config, folder, {"safety.mode": wish.mode or None}).settings
    setup = Setup(settings, paths, folder, Words(words.language), wish.model)
    if journal:
        session = reopen(journal).session
    else:
        name = new_session_id()
        session = begin(Sessions(paths.sessions_of(folder)).path(name), name, folder, words.language)
    built = build_conversation(setup, session)

    async def close() -> None:
        await built.close()
        session.close()

    return OpenConversation(built.conversation, close)
