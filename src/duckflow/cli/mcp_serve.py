"""`duckflow mcp serve`: holds conversations for the agent that has started this process, over stdin and stdout."""

import asyncio
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from duckflow.cli.signals import ended_by_signals
from duckflow.editor.streams import MessageStreams
from duckflow.errors import JournalDamaged, UsageError
from duckflow.i18n.words import Words
from duckflow.programs.find import keep_modules_out
from duckflow.safety.path_names import holds_home
from duckflow.server.mcp_server import McpServer, OpenConversation, Wish
from duckflow.state.mode import STRICTEST_FIRST, Mode
from duckflow.store.paths import Paths

STDIN, STDOUT, STDERR = 0, 1, 2


class ServeBounds(NamedTuple):
    """The folders in which a caller may have conversations: these and all below, but not the home or a folder above."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, names: Sequence[str]) -> "ServeBounds":
        folders = [Path(name).expanduser().resolve() for name in names]
        for folder in folders:
            if not folder.is_dir():
                raise UsageError("serve.no_folder", folder=str(folder))
            if holds_home(folder, _home()):
                raise UsageError("serve.home", folder=str(folder))
        current_folder = Path.cwd().resolve()
        return cls(tuple(folders) or (() if holds_home(current_folder, _home()) else (current_folder,)))

    def check(self, folder: Path) -> None:
        if holds_home(folder, _home()):
            raise UsageError("serve.home", folder=str(folder))
        if not any(folder.is_relative_to(allowed_folder) for allowed_folder in self.folders):
            raise UsageError("serve.bound", folder=str(folder), folders=", ".join(map(str, self.folders)) or "–")


def _home() -> Path:
    return Path(os.environ.get("HOME") or "/")


def serve(words: Words, paths: Paths, named: Sequence[str] = ()) -> int:
    """Holds conversations in the named folders and below; if no folder is named, in the current folder and below."""
    bounds = ServeBounds.of(named)
    # Everything else that is printed goes to stderr: stdout carries messages only.
    message_output = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    asyncio.run(_serve(words, paths, message_output, bounds))
    return 0


async def _serve(words: Words, paths: Paths, messages: int, bounds: ServeBounds) -> None:
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    streams = MessageStreams(STDIN, messages, lines.put_nowait)
    with ended_by_signals(lambda: lines.put_nowait(None)):
        await McpServer(partial(_open, words, paths, bounds), words, streams.send).serve(lines)
        await streams.flush()


def _open(words: Words, paths: Paths, bounds: ServeBounds, wish: Wish) -> OpenConversation:
    # These modules are loaded with the first conversation: a client waits for our first answer before it goes on.
    from duckflow.agent.trust import refuse_own_folders
    from duckflow.cli.build import build_conversation
    from duckflow.cli.conversations import new_session, resumed_session
    from duckflow.cli.setup import Setup
    from duckflow.config.load import load
    from duckflow.store.sessions import Sessions

    if wish.session:
        session_entry = Sessions(paths.sessions_of(Path.cwd())).find(wish.session)
        folder, journal = Path(session_entry.headline.folder or Path.cwd()), session_entry.path
    else:
        folder, journal = Path(wish.cwd or Path.cwd()).expanduser(), None
    if not folder.is_absolute() or not folder.is_dir():
        raise UsageError("serve.no_folder", folder=str(folder))
    folder = folder.resolve()
    bounds.check(folder)
    keep_modules_out(str(folder))
    refuse_own_folders(folder, (paths.data, paths.config, paths.cache))
    settings = load(paths.user_config, folder, {}).settings
    highest_mode = Mode(settings.safety.mode)
    if wish.mode and Mode(wish.mode) in STRICTEST_FIRST[STRICTEST_FIRST.index(highest_mode) + 1 :]:
        raise UsageError("serve.mode_bound", mode=wish.mode, highest=highest_mode)
    settings = load(paths.user_config, folder, {"safety.mode": wish.mode or None}).settings
    setup = Setup(settings, paths, folder, Words(words.language), wish.model, by_client=True)
    chosen_session = resumed_session(journal, setup) if journal else new_session(setup)
    session = chosen_session.session
    if chosen_session.damage:
        # The client hears of the end first; its next call continues the saved session.
        session.close()
        raise JournalDamaged("talk.said", text=chosen_session.damage)
    built_conversation = build_conversation(setup, session)

    async def close() -> None:
        await built_conversation.close()
        session.close()

    return OpenConversation(built_conversation.conversation, close)
