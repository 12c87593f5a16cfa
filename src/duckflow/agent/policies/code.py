"""Policies about the project's code. Tools of the code map are offered if the folder is large. The project's own
checkers look at a turn's changes before it ends, and errors that the changes have caused go to the model."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.agent.session import StateOwner
from duckflow.agent.session_secrets import SessionSecrets, hide_in
from duckflow.agent.undo import UndoKeeper
from duckflow.code.settings import OPERATIONS, CodeSettings
from duckflow.errors import DuckflowError
from duckflow.events.types import MessageAdded, Noticed, Waiting
from duckflow.proof.settings import ProofSettings
from duckflow.safety.files import read_plain
from duckflow.safety.secrets import KnownSecrets
from duckflow.state.changes import UndoScope
from duckflow.state.data import say
from duckflow.state.message import Message
from duckflow.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from duckflow.code.background import MappedFolder
    from duckflow.code.checkers import Checker
    from duckflow.code.lsp import Diagnostic
    from duckflow.code.servers import LanguageServers
    from duckflow.programs.launch import Launch
    from duckflow.proof.trial_folder import MakeLaunch
    from duckflow.safety.sandbox.sandbox import Sandbox
    from duckflow.safety.undo.facts import FileVersions

MOST_DEPENDENTS = 40
MOST_SAID = 4 * 1024 * 1024
LONGEST_TEXT = 1024 * 1024
MAP_SECONDS = 3.0


class Diagnosis:
    """Runs the project's checkers on one folder. A checker that took too long is not run again."""

    def __init__(
        self,
        folder: Path,
        settings: CodeSettings,
        copying: ProofSettings,
        undo: UndoKeeper,
        find_sandbox: "Callable[[], Awaitable[Sandbox]]",
        make_launch: "MakeLaunch",
        mapped: "Callable[[], MappedFolder]",
        servers: "Callable[[], LanguageServers | None] | None",
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
        """For each checker, the errors that it reported for the code before a change, if it was asked."""

    async def changes(self, turn: int) -> "list[FileVersions]":
        return await self._undo.changes(UndoScope(turn=turn)) if self.settings.diagnostics else []

    async def asked(self, changes: "Sequence[FileVersions]") -> list[str]:
        """Returns the names of the checkers that can check these files; `lsp` stands for the language servers."""
        servers = self._servers() if self._servers else None
        has_server = servers is not None and any(servers.knows(change.path) for change in changes)
        return [*(checker.name for checker, _ in await self._checkers(changes)), *(["lsp"] if has_server else [])]

    async def new_errors(self, changes: "Sequence[FileVersions]") -> "dict[str, list[Diagnostic]]":
        """Returns the errors that are new since the changes, by the name of the checker that reports them."""
        from duckflow.programs.run import FloodError, OverrunError

        deadline = time.monotonic() + self.settings.diagnostics_seconds
        dependents = await self._dependents(changes)
        errors_by_name: dict[str, list[Diagnostic]] = {}
        for checker, program in await self._checkers(changes):
            try:
                errors_by_name[checker.name] = await self._said_newly(checker, program, changes, dependents, deadline)
            except (TimeoutError, FloodError, OverrunError):
                self._slow.add(checker.name)
            except (OSError, DuckflowError):
                continue
        if self._servers and (servers := self._servers()) and (seconds_left := deadline - time.monotonic()) > 0:
            dependent_texts = {path: self._text(path) for path in dependents}
            old_texts = {change.path: change.old for change in changes if change.before is not None} | dependent_texts
            new_texts = {change.path: change.new for change in changes if change.after is not None} | dependent_texts
            errors_by_name |= await servers.new_errors(old_texts, new_texts, seconds_left)
        return {name: errors for name, errors in errors_by_name.items() if errors}

    async def _checkers(self, changes: "Sequence[FileVersions]") -> "list[tuple[Checker, str]]":
        from duckflow.code.checkers import used_in

        used_checkers = await asyncio.to_thread(used_in, self._folder, [change.path for change in changes])
        used_checkers = [(checker, program) for checker, program in used_checkers if checker.name not in self._slow]
        return used_checkers if used_checkers and (await self._find_sandbox()).kind == "bubblewrap" else []

    async def _dependents(self, changes: "Sequence[FileVersions]") -> list[str]:
        """Returns the files that mention a name whose definition has changed."""
        from duckflow.code.checkers import changed_names
        from duckflow.code.syntax import language_of

        edited_files = [change for change in changes if change.before is not None and language_of(change.path)]
        names = {name for change in edited_files for name in changed_names(change.path, change.old, change.new)}
        code_map = await self._mapped().fresh(MAP_SECONDS) if names else None
        if code_map is None:
            return []
        changed_paths = {change.path for change in changes}
        mentioning_paths = dict.fromkeys(
            path for name in sorted(names) for path in code_map.mentioning(name) if path not in changed_paths
        )
        return list(mentioning_paths)[:MOST_DEPENDENTS]

    async def _said_newly(
        self,
        checker: "Checker",
        program: str,
        changes: "Sequence[FileVersions]",
        dependents: Sequence[str],
        deadline: float,
    ) -> "list[Diagnostic]":
        """Returns the new errors of a checker. The code before the change is checked too, but only if there is an error
        that was not known."""
        from duckflow.code.checkers import new_errors

        changed_paths = [change.path for change in changes if change.path.endswith(checker.suffixes)]
        dependent_paths = [path for path in dependents if path.endswith(checker.suffixes)]
        asked_paths = [*changed_paths, *(dependent_paths if checker.scope == "dependents" else ())]
        sandbox = await self._find_sandbox()
        existing_paths = [path for path in asked_paths if (self._folder / path).is_file()]
        launch = sandbox.confine(self._make_launch(sandbox, checker.call(program, existing_paths)), writes=False)
        errors_after = await self._said(checker, launch, deadline)
        if not new_errors(self._old.get(checker.name, []), errors_after):
            return []
        old_errors = await self._before(checker, program, asked_paths, changes, deadline, sandbox)
        self._old[checker.name] = [*self._old.get(checker.name, []), *old_errors]
        return new_errors(old_errors, errors_after)

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
        process_output = await collect(launch, seconds=seconds_left, most=MOST_SAID)
        output = b"\n".join((process_output.out, process_output.err)) if checker.line else process_output.out
        return await asyncio.to_thread(checker.read, output.decode("utf-8", "replace"), self._folder)

    def _text(self, path: str) -> str:
        try:
            return read_plain(self._folder / path, LONGEST_TEXT, within=self._folder).decode("utf-8", "replace")
        except OSError:
            return ""


TOLD = 10
MOST_RETURNS = 2


class OfferCodeMap(Policy):
    """Offers the tools of the code map if the folder is large. It decides this once, before the first request: the list
    of tools should not change later, because every request begins with it."""

    def __init__(self, folder: Path, toolbox: Toolbox, start: Callable[[], None], settings: CodeSettings) -> None:
        self._folder = folder
        self._toolbox = toolbox
        self._start = start
        self._settings = settings
        self._looked = False

    async def opening(self, turn: TurnSoFar) -> None:
        if self._looked or not self._settings.map:
            return
        self._looked = True
        from duckflow.code.syntax import available, is_large

        if available() and await asyncio.to_thread(is_large, self._folder, self._settings.from_files):
            self._start()
            for name in OPERATIONS:
                self._toolbox.tell(name)


class DiagnoseChanges(Policy):
    """Checks the changes when the model has finished its edits; again only if it has edited something since."""

    def __init__(self, owner: StateOwner, secrets: SessionSecrets, diagnosis: Diagnosis) -> None:
        self._owner = owner
        self._diagnosis = diagnosis
        self._secrets = secrets
        self._seen: list[FileVersions] = []
        self._left: dict[str, list[Diagnostic]] = {}
        self._returns = 0

    async def opening(self, turn: TurnSoFar) -> None:
        self._seen, self._left, self._returns = [], {}, 0

    async def after(self, turn: TurnSoFar) -> str | None:
        if not turn.ending or turn.ending.outcome != "done" or not turn.state.changed_in_turn:
            return None
        changes = await self._diagnosis.changes(turn.state.turn)
        names = await self._diagnosis.asked(changes)
        if not names or changes == self._seen:
            return None
        self._seen = changes
        seconds = round(self._diagnosis.settings.diagnostics_seconds)
        self._owner.emit(Waiting(why=say("wait.diagnostics", names=", ".join(names), seconds=seconds)))
        try:
            self._left = await self._diagnosis.new_errors(changes)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None:
                raise
            # The user does not want to wait for the checkers: the work itself is over.
            task.uncancel()
            self._left = {}
        if not self._left or self._returns >= MOST_RETURNS:
            return None
        self._returns += 1
        # A checker quotes the code, so its output is quoted like the code itself.
        text = "\n".join(self._lines(await self._secrets.look()))
        message = Message(role="tool", operation="diagnostics", text=text, turn=turn.state.turn)
        self._owner.emit(MessageAdded(message=message))
        return turn.note("new_errors")

    async def ending(self, turn: TurnSoFar, ending: Ending) -> None:
        """Shows the user the errors that are left, beside the line that reports the end of the work."""
        if not self._left or not ending.well:
            return
        count = sum(map(len, self._left.values()))
        first_error = next(error for errors in self._left.values() for error in errors)
        known_secrets, names = await self._secrets.look(), ", ".join(self._left)
        place = f"{hide_in(first_error.path, known_secrets).text}:{first_error.line}"
        self._owner.emit(Noticed(what=say("diagnostics.left", names=names, count=count, place=place)))

    def _lines(self, known: KnownSecrets) -> list[str]:
        all_errors = [(name, error) for name, errors in self._left.items() for error in errors]
        entries = [(name, f"{error.path}:{error.line}: {error.message}") for name, error in all_errors[:TOLD]]
        lines = [f"{hide_in(text, known).text} ({name})" for name, text in entries]
        return [*lines, f"[{len(all_errors) - TOLD} more]"] if len(all_errors) > TOLD else lines
