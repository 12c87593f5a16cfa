"""Asks the project's own checkers and the user's language servers what is new after a change: once, in
the sandbox and within a time limit.

A checker runs code that comes with the folder, and nobody is asked about it. So it runs only where it can change
nothing and see no secret: in bubblewrap."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.undo import UndoKeeper
from duckflow.code.settings import CodeSettings
from duckflow.errors import DuckflowError
from duckflow.proof.settings import ProofSettings
from duckflow.safety.files import read_plain
from duckflow.state.changes import UndoScope

if TYPE_CHECKING:
    from duckflow.code.background import MappedFolder
    from duckflow.code.checkers import Checker
    from duckflow.code.lsp import Diagnostic
    from duckflow.code.servers import LanguageServers
    from duckflow.programs.launch import Launch
    from duckflow.proof.trial_folder import MakeLaunch
    from duckflow.safety.sandbox.sandbox import Sandbox
    from duckflow.safety.undo.undo import FileVersions

MOST_DEPENDENTS = 40
MOST_SAID = 4 * 1024 * 1024
LONGEST_TEXT = 1024 * 1024
MAP_SECONDS = 3.0


class Diagnosis:
    """Diagnoses one folder. A checker that took too long is not asked again."""

    def __init__(
        self,
        folder: Path,
        settings: CodeSettings,
        copying: ProofSettings,
        undo: UndoKeeper,
        find_sandbox: "Callable[[], Awaitable[Sandbox]]",
        make_launch: "MakeLaunch",
        mapped: "Callable[[], MappedFolder]",
        servers: "Callable[[], LanguageServers | None]",
    ) -> None:
        self._folder = folder
        self.settings = settings
        self._copying = copying
        self._undo = undo
        self._find_sandbox = find_sandbox
        self._make_launch = make_launch
        self._mapped = mapped
        self._servers = servers
        self._slow: set[str] = set()
        self._old: dict[str, list[Diagnostic]] = {}
        """The errors that each checker reported for the code before a change, where it was asked."""

    async def changes(self, turn: int) -> "list[FileVersions]":
        return await self._undo.changes(UndoScope(turn=turn)) if self.settings.diagnostics else []

    async def asked(self, changes: "Sequence[FileVersions]") -> list[str]:
        """Returns the names of the checkers that can check these files; `lsp` stands for the language servers."""
        servers = self._servers()
        known = servers is not None and any(servers.knows(change.path) for change in changes)
        return [*(checker.name for checker, _ in await self._checkers(changes)), *(["lsp"] if known else [])]

    async def new_errors(self, changes: "Sequence[FileVersions]") -> "dict[str, list[Diagnostic]]":
        """Returns the errors that are new since the changes, by the name of the checker that reports them."""
        from duckflow.programs.run import FloodError, OverrunError

        deadline = time.monotonic() + self.settings.diagnostics_seconds
        dependents = await self._dependents(changes)
        by_checker: dict[str, list[Diagnostic]] = {}
        for checker, program in await self._checkers(changes):
            try:
                by_checker[checker.name] = await self._said_newly(checker, program, changes, dependents, deadline)
            except (TimeoutError, FloodError, OverrunError):
                self._slow.add(checker.name)
            except (OSError, DuckflowError):
                continue
        if (servers := self._servers()) and (seconds_left := deadline - time.monotonic()) > 0:
            others = {path: self._text(path) for path in dependents}
            before = {change.path: change.old for change in changes if change.before is not None} | others
            after = {change.path: change.new for change in changes if change.after is not None} | others
            by_checker |= await servers.new_errors(before, after, seconds_left)
        return {name: errors for name, errors in by_checker.items() if errors}

    async def _checkers(self, changes: "Sequence[FileVersions]") -> "list[tuple[Checker, str]]":
        from duckflow.code.checkers import used_in

        used = await asyncio.to_thread(used_in, self._folder, [change.path for change in changes])
        used = [(checker, program) for checker, program in used if checker.name not in self._slow]
        return used if used and (await self._find_sandbox()).kind == "bubblewrap" else []

    async def _dependents(self, changes: "Sequence[FileVersions]") -> list[str]:
        """Returns the files that mention a name whose definition has changed."""
        from duckflow.code.checkers import changed_names
        from duckflow.code.syntax import language_of

        edited = [change for change in changes if change.before is not None and language_of(change.path)]
        names = {name for change in edited for name in changed_names(change.path, change.old, change.new)}
        code_map = await self._mapped().fresh(MAP_SECONDS) if names else None
        if code_map is None:
            return []
        own = {change.path for change in changes}
        mentioning = dict.fromkeys(
            path for name in sorted(names) for path in code_map.mentioning(name) if path not in own
        )
        return list(mentioning)[:MOST_DEPENDENTS]

    async def _said_newly(
        self,
        checker: "Checker",
        program: str,
        changes: "Sequence[FileVersions]",
        dependents: Sequence[str],
        deadline: float,
    ) -> "list[Diagnostic]":
        """Returns the new errors of a checker. The code before the change is checked only if there is an unknown
        error."""
        from duckflow.code.checkers import new_errors

        changed = [change.path for change in changes if change.path.endswith(checker.suffixes)]
        others = [path for path in dependents if path.endswith(checker.suffixes)]
        asked = [*changed, *(others if checker.scope == "dependents" else ())]
        sandbox = await self._find_sandbox()
        now = [path for path in asked if (self._folder / path).is_file()]
        launch = sandbox.confine(self._make_launch(sandbox, checker.call(program, now)), writes=False)
        after = await self._said(checker, launch, deadline)
        if not new_errors(self._old.get(checker.name, []), after):
            return []
        before = await self._before(checker, program, asked, changes, deadline, sandbox)
        self._old[checker.name] = [*self._old.get(checker.name, []), *before]
        return new_errors(before, after)

    async def _before(
        self,
        checker: "Checker",
        program: str,
        asked: Sequence[str],
        changes: "Sequence[FileVersions]",
        deadline: float,
        sandbox: "Sandbox",
    ) -> "list[Diagnostic]":
        from duckflow.proof.trial_folder import TrialFolder

        versions = {change.path: change.before for change in changes}
        command = checker.call(program, [path for path in asked if versions.get(path, b"") is not None])
        folder = TrialFolder(sandbox, self._make_launch, self._copying)
        async with folder.launch(command, versions) as launch:
            return await self._said(checker, launch, deadline)

    async def _said(self, checker: "Checker", launch: "Launch", deadline: float) -> "list[Diagnostic]":
        from duckflow.programs.run import collect

        seconds_left = deadline - time.monotonic()
        if seconds_left <= 0:
            launch.close()
            raise TimeoutError
        printed = await collect(launch, seconds=seconds_left, most=MOST_SAID)
        output = b"\n".join((printed.out, printed.err)) if checker.line else printed.out
        return await asyncio.to_thread(checker.read, output.decode("utf-8", "replace"), self._folder)

    def _text(self, path: str) -> str:
        try:
            return read_plain(self._folder / path, LONGEST_TEXT).decode("utf-8", "replace")
        except OSError:
            return ""
