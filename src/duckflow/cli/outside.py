"""The servers of a conversation: nothing of this is loaded where there are none."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.policies.policy import Policy
from duckflow.agent.session import Session
from duckflow.cli.wiring import Wiring
from duckflow.events.ports import Ask
from duckflow.events.types import Noticed
from duckflow.memory.tokens import count
from duckflow.state.phrase import Phrase, say
from duckflow.store.paths import Paths
from duckflow.tools.outside.settings import McpSettings
from duckflow.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from duckflow.tools.outside.servers import OutsideServers

FILE = ".mcp.json"


class Outside:
    """The user's own servers start with the chat; those of the folder once it is trusted."""

    def __init__(
        self, wiring: Wiring, servers: "OutsideServers", trusted: Callable[[], bool], tell: Callable[[Phrase], None]
    ) -> None:
        self.servers = servers
        self._wiring = wiring
        self._trusted = trusted
        self._tell = tell
        self._looked = False

    def policy(self, session: Session, toolbox: Toolbox) -> Policy:
        from duckflow.agent.policies.outside import OfferOutsideTools

        return OfferOutsideTools(session, toolbox, self.servers, self.start)

    def start_own(self) -> None:
        self.servers.start(self._wiring.settings.mcp.servers)

    def start(self) -> None:
        """When a turn begins, and the folder has been asked about."""
        self.start_own()
        if self._looked or not (self._wiring.folder / FILE).exists():
            return
        self._looked = True
        from duckflow.tools.outside.project_file import read_project_servers

        if not self._trusted():
            self._tell(say("mcp.untrusted"))
            return
        try:
            self.servers.start(read_project_servers(self._wiring.folder), theirs=True)
        except ValueError as problem:
            self._tell(say("mcp.bad_file", file=FILE, reason=str(problem)))


def find_outside(wiring: Wiring, session: Session, ask: Ask, trusted: Callable[[], bool]) -> Outside | None:
    """Nothing where no server is named."""
    if not wiring.settings.mcp.servers and not (wiring.folder / FILE).exists():
        return None

    def notice(what: Phrase) -> None:
        session.emit(Noticed(what=what))

    servers = make_servers(wiring.settings.mcp, wiring.folder, wiring.paths, ask, notice)
    return Outside(wiring, servers, trusted, notice)


def make_servers(
    settings: McpSettings, folder: Path, paths: Paths, ask: Ask, notice: Callable[[Phrase], None]
) -> "OutsideServers":
    from duckflow.tools.outside.servers import OutsideContext, OutsideServers
    from duckflow.tools.outside.tokens import token_for

    around = OutsideContext(folder, paths.data / "outputs", ask, notice, count, token_for)
    return OutsideServers(settings, around)
