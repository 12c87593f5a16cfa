"""The servers of a conversation: nothing of this is loaded where there are none."""

import asyncio
import importlib
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.policies.policy import Policy
from duckflow.agent.session import Session
from duckflow.agent.trust import SERVERS as FILE
from duckflow.cli.setup import Setup
from duckflow.events.ports import Ask
from duckflow.events.types import Noticed
from duckflow.memory.tokens import count
from duckflow.state.phrase import Phrase, say
from duckflow.state.profile import ANY_MODEL
from duckflow.state.question import Choice, Question
from duckflow.store.paths import Paths
from duckflow.tools.outside.settings import McpSettings, ServerSettings, describe_entry
from duckflow.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from duckflow.tools.outside.content import TakePicture
    from duckflow.tools.outside.servers import OutsideServers


class Outside:
    """The user's own servers start with the chat; those of the folder once it is trusted and they are agreed to."""

    def __init__(
        self, setup: Setup, session: Session, ask: Ask, trusted: Callable[[], bool], take: "TakePicture"
    ) -> None:
        self._setup = setup
        self._session = session
        self._ask = ask
        self._trusted = trusted
        self._take = take
        self._looked = False
        self._loading: asyncio.Task[None] | None = None

    @cached_property
    def servers(self) -> "OutsideServers":
        setup = self._setup
        return make_servers(setup.settings.mcp, setup.folder, setup.paths, self._ask, self._tell, self._take)

    def policy(self, toolbox: Toolbox) -> Policy:
        from duckflow.agent.policies.outside import OfferOutsideTools

        return OfferOutsideTools(self._session, toolbox, self._started)

    def start_own(self) -> None:
        """In the background."""
        self._loading = self._loading or asyncio.create_task(self._start_own())

    async def offer(self, toolbox: Toolbox) -> None:
        """Before jobs go on that no turn of this process has begun: they may use tools of servers."""
        servers = await self._started()
        await servers.first_answers()
        servers.offer(toolbox, ANY_MODEL.window)

    async def aclose(self) -> None:
        if self._loading:
            await asyncio.gather(self._loading, return_exceptions=True)
            await self.servers.aclose()

    async def _start_own(self) -> None:
        # In a thread: what speaks HTTP is slow to load, and somebody may be typing.
        await asyncio.to_thread(importlib.import_module, "duckflow.tools.outside.servers")
        self.servers.start(self._setup.settings.mcp.servers)

    async def _started(self) -> "OutsideServers":
        """When a turn begins, and the folder has been asked about."""
        self.start_own()
        if self._loading:
            await self._loading
        if not self._looked and (self._setup.folder / FILE).exists():
            self._looked = True
            await self._start_theirs()
        return self.servers

    async def _start_theirs(self) -> None:
        from duckflow.tools.outside.project_file import Agreements, read_project_servers

        folder = self._setup.folder
        if not self._trusted():
            self._tell(say("mcp.untrusted"))
            return
        try:
            entries = read_project_servers(folder)
        except ValueError as problem:
            self._tell(say("mcp.bad_file", file=FILE, reason=str(problem)))
            return
        agreements = Agreements(self._setup.paths.data / "mcp-agreed.json", folder)
        if entries and (agreements.agreed or self._setup.trust or await self._agreed(entries)):
            agreements.agree()
            self.servers.start(entries, theirs=True)

    async def _agreed(self, entries: Mapping[str, ServerSettings]) -> bool:
        """What stands in the file is shown whole; what changes in it later is asked about anew."""
        shown = [say("mcp.would_start", name=name, what=describe_entry(one)) for name, one in entries.items()]
        choices = tuple(Choice(key=key, label=say(f"mcp.start.{key}")) for key in ("yes", "no"))
        question = Question(kind="choice", title=say("mcp.agree", file=FILE), details=tuple(shown), choices=choices)
        return (await self._ask(question)).choice == "yes"

    def _tell(self, what: Phrase) -> None:
        self._session.emit(Noticed(what=what))


def make_servers(
    settings: McpSettings,
    folder: Path,
    paths: Paths,
    ask: Ask,
    notice: Callable[[Phrase], None],
    take: "TakePicture | None" = None,
) -> "OutsideServers":
    from duckflow.tools.outside.servers import OutsideContext, OutsideServers
    from duckflow.tools.outside.tokens import token_for

    around = OutsideContext(folder, paths.data / "outputs", ask, notice, count, token_for, take)
    return OutsideServers(settings, around)
