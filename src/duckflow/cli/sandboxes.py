"""The sandbox of a conversation, looked for before the first command, and the judgement of commands."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.permissions import Permissions
from duckflow.cli.setup import Setup
from duckflow.events.ports import Emit
from duckflow.events.types import Noticed
from duckflow.i18n.template import note
from duckflow.programs.find import find_program
from duckflow.safety.path_names import shown
from duckflow.state.agent import AgentState
from duckflow.state.data import say
from duckflow.state.mode import Mode
from duckflow.tools.tool import AnyTool

if TYPE_CHECKING:
    from duckflow.programs.launch import Launch
    from duckflow.safety.commands.verdict import CommandVerdict
    from duckflow.safety.sandbox.sandbox import Sandbox
    from duckflow.tools.shell.background import Background


RECURSIVE = r"(?s)\b(?:rg|ag|ack)\b|\b(?:grep|diff)\b.*\s-(?:\w*[rRd]|-(?:dereference-)?recursive|-directories)"
"""A pattern for commands that only read, but read whole folders, and so may come across a secret file."""


class Sandboxes:
    """Finds the sandbox of a conversation before the first command, and tells the user which sandbox it is."""

    def __init__(self, setup: Setup, emit: Emit, trusted: Callable[[], bool], permissions: Permissions) -> None:
        self._setup = setup
        self._contained = setup.contained
        self._permissions = permissions
        self._trusted = trusted
        self._emit = emit
        self._found: Sandbox | None = None
        self._looking = asyncio.Lock()
        self._likely_kind = self._kind_before_trying()
        self._background: Background | None = None

    async def find(self) -> "Sandbox":
        async with self._looking:
            if self._found is None:
                # Each kind is tried with a real process, which may take long, so it runs in a thread while keys are
                # answered.
                self._found = await asyncio.to_thread(self._choose)
                self._emit(Noticed(what=self._found.says))
            return self._found

    async def confines(self) -> bool:
        return (await self.find()).kind != "none"

    def limits(self, state: AgentState, language: str) -> str:
        """Returns a line for the model: what commands can reach, what needs a question, whether there is an undo."""
        settings, temporary_folder = self._setup.settings, self._temporary()
        sandbox_note = (
            note(language, "sandbox", temporary=temporary_folder) if temporary_folder else note(language, "no_sandbox")
        )
        if self._contained and state.mode in ("", Mode.CONTAINED):
            sandbox_note = ""
        undo_note = note(language, "undo_there") if settings.undo.enabled else ""
        mode_note = note(language, f"mode_{state.mode or settings.safety.mode}")
        alone_note = note(language, "nobody_here") if self._setup.alone else ""
        return " ".join(filter(None, (sandbox_note, mode_note, alone_note, undo_note)))

    def _temporary(self) -> str:
        """Returns the place outside the work folder where commands may write; empty where there is no sandbox."""
        kind = self._found.kind if self._found else self._likely_kind
        return {"none": "", "bubblewrap": "/tmp"}.get(kind, "$TMPDIR")

    def _kind_before_trying(self) -> str:
        """Guesses the sandbox's kind from the installed programs, since trying a sandbox takes a process."""
        wanted_kind = self._setup.settings.sandbox.kind
        if wanted_kind != "auto":
            return wanted_kind
        return "bubblewrap" if find_program("bwrap", self._setup.folder) else "other"

    def _choose(self) -> "Sandbox":
        from duckflow.safety.sandbox.choose import choose, contained_machine

        paths, settings = self._setup.paths, self._setup.settings
        if self._contained:
            return contained_machine(self._setup.folder, settings.sandbox)
        added_folders = tuple(folder for folder in self._setup.added if not folder.is_relative_to(paths.data))
        sandbox = choose(
            settings.sandbox, self._setup.folder, paths.private, record=paths.tracked_secrets, added=added_folders
        )
        if copied_folder := self._setup.copy_of:
            return sandbox.reaching(replace(sandbox.paths, stand_ins=((self._setup.folder, copied_folder),)))
        return sandbox

    def runner(self) -> AnyTool:
        from duckflow.tools.shell.background import Background
        from duckflow.tools.shell.run import ShellRun

        self._background = Background()
        settings = self._setup.settings.shell
        return ShellRun(self.find, settings, self.judge, self._background, lambda: self._permissions.secret_files)

    def launch(self, sandbox: "Sandbox", command: str) -> "Launch":
        """Returns the launch of a command line, as the shell tool makes it: without network, and not in the sandbox
        yet."""
        from duckflow.tools.shell.run import shell_launch

        return shell_launch(sandbox, self._setup.settings.shell, command, False)

    def busy(self) -> bool:
        """Says whether a command runs in the background."""
        return bool(self.running())

    def running(self) -> list[str]:
        """Returns the commands that run in the background."""
        return [job.command for job in self._background.running()] if self._background else []

    async def aclose(self) -> None:
        if self._background:
            await self._background.close()
        if self._found:
            self._found.close()

    def judge(self, command: str) -> "CommandVerdict":
        from duckflow.safety.commands.judge import judge_command
        from duckflow.safety.commands.paths import CommandFacts
        from duckflow.safety.commands.verdict import CommandVerdict
        from duckflow.safety.repository import git_runs_programs

        folder = self._setup.folder
        # The repository's settings are read anew each time, because a command may have changed them.
        runs_programs = "git" in command and git_runs_programs(folder)
        verdict = judge_command(command, CommandFacts(str(folder), str(Path.home()), runs_programs))
        if runs_programs and not self._trusted() and verdict.verdict != "safe":
            verdict = verdict._replace(reasons=(*verdict.reasons, say("harm.untrusted")))
        if (verdict.verdict != "safe" or re.search(RECURSIVE, command)) and (open_secret := self._open_secret()):
            reason = say("harm.may_read", path=shown(open_secret))
            verdict = CommandVerdict(
                "ask" if verdict.verdict == "safe" else verdict.verdict, (*verdict.reasons, reason)
            )
        return verdict

    def _open_secret(self) -> str:
        """Returns the name of a secret file that this sandbox cannot hide, or an empty text."""
        if self._found is None or self._found.kind in ("bubblewrap", "none") or self._permissions.secret_files:
            return ""
        covered_paths = self._found.paths.covered()
        return next((secret.path.name for secret in covered_paths.secrets), "" if covered_paths.whole else "…")


def main() -> None:
    """Says which sandbox commands run in on this machine, and how to get a better one."""
    from duckflow.config.load import load
    from duckflow.i18n.words import Words, language_of
    from duckflow.safety.sandbox.choose import choose
    from duckflow.store.paths import Paths
    from duckflow.ui.streams import print_out

    paths, folder = Paths.of_user(), Path.cwd()
    settings = load(paths.user_config, folder, {}).settings
    sandbox = choose(settings.sandbox, folder, private=paths.private)
    sandbox.close()
    print_out(Words(language_of(settings.language)).phrase(sandbox.says))


if __name__ == "__main__":
    main()
