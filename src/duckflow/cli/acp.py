"""`duckflow acp`: Duckflow in an editor. Conversations are opened for it in any folder, several at a time."""

import asyncio
import gc
import importlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckflow.cli.parser import Options
from duckflow.editor.acp import AcpAgent, ListedSession
from duckflow.errors import UsageError
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths

if TYPE_CHECKING:
    from duckflow.cli.conversations import ChosenSession
    from duckflow.cli.wiring import Wiring
    from duckflow.editor.session import HeldConversation

STDIN, STDOUT, STDERR = 0, 1, 2
NEEDED = ("duckflow.cli.wire", "duckflow.cli.talk", "duckflow.editor.session", "duckflow.cli.slash")


def run_acp(options: Options, words: Words, paths: Paths) -> int:
    # The protocol alone is written to stdout: whatever else anybody prints goes where logs go.
    target = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    asyncio.run(_serve(AcpAgent(EditorConversations(options, words, paths), words), target))
    return 0


async def _serve(agent: AcpAgent, target: int) -> None:
    from duckflow.cli.signals import interrupting_signals

    for number in interrupting_signals():
        asyncio.get_running_loop().add_signal_handler(number, agent.leave)
    await agent.run(STDIN, target)


class EditorConversations:
    """Wires a conversation for each session of an editor."""

    def __init__(self, options: Options, words: Words, paths: Paths) -> None:
        self._options = options
        self._words = words
        self._paths = paths

    async def load(self) -> None:
        await asyncio.to_thread(_load)

    async def begin(self, folder: Path, mcp_servers: Sequence[Any]) -> "HeldConversation":
        await self.load()
        from duckflow.cli.conversations import new_session

        return self._hold(new_session(self._wiring(folder)), mcp_servers)

    async def resume(self, session_id: str, folder: Path, mcp_servers: Sequence[Any]) -> "HeldConversation":
        await self.load()
        from duckflow.cli.conversations import resumed_session
        from duckflow.store.sessions import Sessions

        wiring = self._wiring(folder)
        entry = Sessions(self._paths.sessions_of(wiring.folder)).find(session_id)
        if entry.session_id != session_id:
            raise UsageError("sessions.unknown", wanted=session_id)
        if not entry.here:
            raise UsageError("editor.other_folder", folder=entry.headline.folder)
        return self._hold(resumed_session(entry.path, wiring), mcp_servers)

    def all(self, folder: Path | None) -> Sequence[ListedSession]:
        from duckflow.store.sessions import Sessions

        sessions = Sessions(self._paths.sessions_of((folder or Path.cwd()).resolve()))
        return [
            ListedSession(
                one.session_id, one.folder, one.title or one.asked, datetime.fromtimestamp(one.updated, UTC).isoformat()
            )
            for one in (entry.summary() for entry in (sessions.here() if folder else sessions.all()))
        ]

    def _wiring(self, folder: Path) -> "Wiring":
        """With words of its own: each session may speak another language."""
        from duckflow.cli.talk import make_wiring

        if not folder.is_dir():
            raise UsageError("editor.no_folder", folder=str(folder))
        return make_wiring(self._options, Words(self._words.language), self._paths, folder.resolve())

    def _hold(self, chosen: "ChosenSession", mcp_servers: Sequence[Any]) -> "HeldConversation":
        from duckflow.cli.init.interview import models_at_hand
        from duckflow.cli.wire import wire
        from duckflow.editor.session import HeldConversation

        session, wiring = chosen.session, chosen.wiring
        wired = wire(wiring, session)
        warming = asyncio.create_task(wired.thinker.warm(session.state))

        async def close() -> None:
            warming.cancel()
            await wired.close()
            spoken = bool(session.state.messages)
            session.close()
            if not spoken:
                session.discard()

        notes = [chosen.damage] if chosen.damage else []
        if mcp_servers:
            notes.append(wiring.words("editor.no_mcp", count=len(mcp_servers)))
        named = filter(None, (self._options.model, wiring.settings.llm.model, wiring.settings.llm.second_model))
        return HeldConversation(wired.conversation, wiring.words, (*named, *models_at_hand()), close, tuple(notes))


def _load() -> None:
    """Once; in a thread, so that the editor is answered meanwhile."""
    for name in NEEDED:
        importlib.import_module(name)
    # What is loaded by now stays: to look through it again and again would cost time.
    gc.freeze()
    gc.enable()
