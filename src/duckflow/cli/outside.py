"""The MCP servers of a conversation. Without such servers this module is not loaded."""

import asyncio
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.brought_programs import BroughtPrograms
from duckflow.agent.policies.policy import Policy
from duckflow.agent.session import Session
from duckflow.agent.trust import SERVERS as FILE
from duckflow.agent.trust import Admission
from duckflow.cli.setup import Setup
from duckflow.events.ports import Ask
from duckflow.events.types import Noticed
from duckflow.memory.tokens import count
from duckflow.safety.brought.launch import FOLDER_NAMES
from duckflow.safety.environment import looks_secret
from duckflow.safety.path_names import shown
from duckflow.state.data import Phrase, say
from duckflow.state.mode import Mode
from duckflow.state.profile import ANY_MODEL
from duckflow.store.paths import Paths
from duckflow.tools.settings import McpSettings, ServerSettings
from duckflow.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from duckflow.programs.launch import Launch
    from duckflow.safety.brought.agreements import BroughtProgram
    from duckflow.tools.outside.content import TakePicture
    from duckflow.tools.outside.servers import OutsideServers


class Outside:
    """Starts the user's own MCP servers with the chat. Starts the folder's servers once the folder is trusted and the
    user has agreed to them."""

    def __init__(
        self,
        setup: Setup,
        session: Session,
        ask: Ask,
        admission: Admission,
        take: "TakePicture",
        programs: BroughtPrograms,
    ) -> None:
        self._setup = setup
        self._session = session
        self._ask = ask
        self._admission = admission
        self._take = take
        self._programs = programs
        self._planned = False
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
        """Starts the user's own servers in the background."""
        self._loading = self._loading or asyncio.create_task(self._start_own())

    async def ready(self) -> None:
        """Gives servers that are not started yet time for a first answer, before a command asks about them."""
        if not self._loading:
            await (await self._started()).first_answers()

    async def offer(self, toolbox: Toolbox) -> None:
        """Offers the servers' tools to jobs that continue before the first turn of this process."""
        servers = await self._started()
        await servers.first_answers()
        servers.offer(toolbox, ANY_MODEL.window)

    async def aclose(self) -> None:
        if self._loading:
            await asyncio.gather(self._loading, return_exceptions=True)
            await self.servers.aclose()

    async def _start_own(self) -> None:
        # The import runs in a thread: the HTTP client is slow to load, and somebody may be typing.
        await asyncio.to_thread(importlib.import_module, "duckflow.tools.outside.servers")
        self.servers.start(self._setup.settings.mcp.servers)

    async def _started(self) -> "OutsideServers":
        """Starts the servers when a turn begins, and returns them. By then the user has been asked about the folder."""
        self.start_own()
        if self._loading:
            await self._loading
        was_planned, self._planned = self._planned, self._programs.mode() == Mode.PLAN
        if not self._looked and (self._setup.folder / FILE).exists():
            self._looked = True
            await self._start_theirs()
        elif was_planned != self._planned:
            # The mode has changed to or from `plan`, so the folder's servers run with the wrong rights to the folder.
            await self.servers.restart_brought()
        return self.servers

    async def _start_theirs(self) -> None:
        from duckflow.tools.outside.project_file import brought_server, read_project_servers, variables_for
        from duckflow.tools.outside.server import BroughtServer

        folder = self._setup.folder
        if not self._admission.trusted:
            self._tell(say("mcp.untrusted"))
            return
        try:
            entries = read_project_servers(folder)
        except ValueError as problem:
            self._tell(say("mcp.bad_file", file=FILE, reason=str(problem)))
            return
        programs = {name: brought_server(name, server_entry) for name, server_entry in entries.items()}
        await self._ask_about(entries, programs)
        agreed_programs = {
            name: program for name, program in programs.items() if self._programs.agreements.find(program)
        }
        variables = variables_for(folder, os.environ)
        brought_servers = {
            name: BroughtServer(partial(self._launch, program), variables) for name, program in agreed_programs.items()
        }
        self.servers.start({name: entries[name] for name in agreed_programs}, brought_servers)

    async def _ask_about(self, entries: Mapping[str, ServerSettings], programs: "Mapping[str, BroughtProgram]") -> None:
        """Asks about servers in the folder's file that are new or have changed, and shows their whole entries."""
        from duckflow.tools.outside.project_file import variables_of

        known_agreements = self._programs.agreements.all()
        vanished_agreements = [
            agreement for agreement in known_agreements if agreement.program.name.startswith("server ")
        ]
        vanished_agreements = [
            agreement for agreement in vanished_agreements if agreement.program not in programs.values()
        ]
        new_programs = {
            name: program for name, program in programs.items() if not self._programs.agreements.find(program)
        }
        if not new_programs:
            return
        if self._setup.trust:
            await self._programs.agree(list(new_programs.values()), vanished_agreements)
            return
        details: list[Phrase] = []
        for name, program in new_programs.items():
            details.append(say("mcp.would_start", name=shown(name), what=shown(program.shown)))
            details += _describe_variables(variables_of(entries[name]))
        await self._programs.ask_about(
            list(new_programs.values()), say("mcp.agree", file=FILE), details, vanished_agreements
        )

    async def _launch(
        self, program: "BroughtProgram", argv: Sequence[str], environment: Mapping[str, str], cwd: str
    ) -> "Launch":
        from duckflow.safety.brought.launch import CannotRunError

        try:
            return await self._programs.launch(program, argv, None, environment, cwd, serves=True)
        except CannotRunError as problem:
            self._tell(say(problem.key, command=program.name))
            raise OSError(problem.key) from None

    def _tell(self, what: Phrase) -> None:
        self._session.emit(Noticed(what=what))


def _describe_variables(names: Sequence[str]) -> list[Phrase]:
    """Says which of the user's variables a server would get, and which of its wanted variables it does not get."""
    from duckflow.tools.outside.project_file import PROVIDER_KEYS, variables_for

    passed_names = [name for name in names if name in variables_for(Path(), os.environ) and name not in FOLDER_NAMES]
    secret_names = [name for name in passed_names if looks_secret(name, os.environ[name])]
    refused_names = [
        name for name in names if name in PROVIDER_KEYS or (name in os.environ and name not in passed_names)
    ]
    granted_names = (
        ("mcp.gets_secrets", secret_names),
        ("mcp.gets", [name for name in passed_names if name not in secret_names]),
    )
    return [
        say(key, names=", ".join(variable_names))
        for key, variable_names in (*granted_names, ("mcp.never_gets", refused_names))
        if variable_names
    ]


def make_servers(
    settings: McpSettings,
    folder: Path,
    paths: Paths,
    ask: Ask,
    notice: Callable[[Phrase], None],
    take: "TakePicture | None" = None,
) -> "OutsideServers":
    from duckflow.tools.outside.login import Logins
    from duckflow.tools.outside.servers import OutsideContext, OutsideServers

    context = OutsideContext(folder, paths.data / "outputs", ask, notice, count, Logins(paths.logins).token_for, take)
    return OutsideServers(settings, context)
