"""A conversation's access to the code map. Nothing of the map is loaded before it is used."""

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from duckflow.agent.policies.code import Diagnosis, OfferCodeMap
from duckflow.agent.policies.policy import Policy
from duckflow.agent.undo import UndoKeeper
from duckflow.cli.sandboxes import Sandboxes
from duckflow.cli.setup import Setup
from duckflow.errors import ToolError
from duckflow.safety.path_names import shown
from duckflow.safety.workspace import Workspace
from duckflow.state.data import Phrase, say
from duckflow.tools.tool import AnyTool
from duckflow.tools.toolbox import Toolbox

MAP_ROOM = 6000
MAP_SECONDS = 30.0
LEAST_TYPED = 2

if TYPE_CHECKING:
    from duckflow.code.background import MappedFolder
    from duckflow.code.servers import LanguageServers
    from duckflow.programs.launch import Launch


class CodeSense:
    """Shares one code map among all parts of a conversation that use it."""

    def __init__(self, setup: Setup, folder: Workspace, sandboxes: Sandboxes) -> None:
        self._setup = setup
        self._folder = folder
        self._sandboxes = sandboxes
        self._used = False

    @cached_property
    def mapped(self) -> "MappedFolder":
        from duckflow.code.background import MappedFolder

        self._used = True
        return MappedFolder(self._folder, self._setup.paths.map_of(self._setup.folder))

    def tools(self) -> list[AnyTool]:
        from duckflow.tools.code import Callers, FindDefinition, Outline

        settings, folder = self._setup.settings.code, self._folder
        code_map, servers = lambda: self.mapped, lambda: self.servers
        return [
            Outline(folder, code_map, settings),
            FindDefinition(folder, code_map, settings, servers),
            Callers(folder, code_map, settings, servers),
        ]

    def policy(self, toolbox: Toolbox) -> Policy:
        def start() -> None:
            self.mapped.start()

        return OfferCodeMap(self._setup.folder, toolbox, start, self._setup.settings.code)

    @cached_property
    def servers(self) -> "LanguageServers | None":
        """Returns the user's language servers. A server is started when the first question to it comes."""
        settings, sandboxes = self._setup.settings.lsp.servers, self._sandboxes
        if not settings:
            return None
        import shlex

        from duckflow.code.servers import LanguageServers

        async def launch(argv: tuple[str, ...]) -> "Launch":
            sandbox = await sandboxes.find()
            if sandbox.kind != "bubblewrap":
                # A server loads the folder's plugins. Only bubblewrap keeps it from secrets and from writing.
                raise OSError("language servers run in bubblewrap only")
            return sandbox.confine(sandboxes.launch(sandbox, f"exec {shlex.join(argv)}"), writes=False)

        return LanguageServers(self._setup.folder, settings, launch)

    async def overview(self, wanted: str) -> Phrase | str:
        """Answers `/map`: returns an overview of the work folder, or of a folder or file in it."""
        from duckflow.code.outline import file_outline, files_outline, folders_outline
        from duckflow.code.store import source_text
        from duckflow.code.syntax import available, language_of, symbols_in

        if not available():
            return say("map.missing")
        folder = self._folder
        try:
            path = folder.relative(wanted or ".")
            kind = folder.stat(path).kind
        except (OSError, ToolError):
            return say("file.missing", path=shown(wanted))
        if kind == "file":
            text = source_text(folder, path) if language_of(path) else ""
            return file_outline(symbols_in(text, path), text.split("\n"), MAP_ROOM) or say("code.unknown")
        code_map = await self.mapped.fresh(MAP_SECONDS)
        if code_map is None:
            return say("code.later")
        files = code_map.files(path)
        language_counts = Counter(language.grammar for name, _ in files if (language := language_of(name)))
        language_text = ", ".join(f"{name} {count}" for name, count in language_counts.most_common())
        if not files:
            return say("map.empty")
        if by_file := files_outline(code_map, path, MAP_ROOM):
            return f"{language_text}\n{by_file}"
        return say("map.folders", languages=language_text, folders=folders_outline(code_map, path, MAP_ROOM))

    def symbols(self, wanted: str, most: int) -> list[str]:
        """Returns definitions whose name begins with `wanted`; `file:name` means those of one file. It is called from
        another thread."""
        from duckflow.code.syntax import available

        file, colon, name = wanted.rpartition(":")
        if len(wanted) < LEAST_TYPED or not self._setup.settings.code.map or not available():
            return []
        code_map = self.mapped.current()
        if not colon:
            return [f"{symbol.path}:{symbol.qualified}" for symbol in code_map.beginning_with(name, most)]
        fitting_symbols = [symbol for symbol in code_map.in_file(file) if symbol.qualified.startswith(name)]
        return [f"{file}:{symbol.qualified}" for symbol in fitting_symbols[:most]]

    def diagnosis(self, undo: UndoKeeper) -> Diagnosis:
        settings, sandboxes = self._setup.settings, self._sandboxes
        return Diagnosis(
            self._setup.folder,
            settings.code,
            settings.proof,
            undo,
            sandboxes.find,
            sandboxes.launch,
            lambda: self.mapped,
            (lambda: self.servers) if settings.lsp.servers else None,
        )

    async def aclose(self) -> None:
        if self._setup.settings.lsp.servers and self.servers:
            await self.servers.aclose()
        if self._used:
            await self.mapped.aclose()
