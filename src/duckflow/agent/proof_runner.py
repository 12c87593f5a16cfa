"""Tries claims: in the sandbox, on copies of the work folder, within the limits of the settings."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.agent.undo import UndoKeeper
from duckflow.proof.settings import ProofSettings
from duckflow.state.checks import Proof

if TYPE_CHECKING:
    from duckflow.proof.old_tests import OldTestTrial
    from duckflow.proof.trial import TestsInQuestion
    from duckflow.proof.trial_folder import MakeLaunch
    from duckflow.safety.sandbox.sandbox import Sandbox
    from duckflow.safety.undo.undo import FileVersions


class ProofRunner:
    """Tries changes in the sandbox, where their tests ran. The conversation and jobs use the same one."""

    def __init__(
        self,
        settings: ProofSettings,
        undo: UndoKeeper,
        find_sandbox: "Callable[[], Awaitable[Sandbox]]",
        make_launch: "MakeLaunch",
    ) -> None:
        self.settings = settings
        self.undo = undo
        self._find_sandbox = find_sandbox
        self._make_launch = make_launch

    async def unreached(self, folder: Path, changes: "list[FileVersions]") -> tuple[str, ...]:
        """Returns the new public names of a change that nothing else mentions."""
        from duckflow.proof.reach import new_names, texts_of, unreached

        names = new_names(changes)
        if not names:
            return ()
        try:
            texts = await asyncio.to_thread(texts_of, folder, self.settings.reach_seconds)
        except OSError:
            return ()
        return unreached(names, texts) if texts is not None else ()

    async def tests(self, questions: "TestsInQuestion", command: str) -> Proof:
        from duckflow.proof.trial import RedGreenTrial

        return await RedGreenTrial(questions, command, self.settings).run(await self._find_sandbox(), self._make_launch)

    async def old_tests(self, trial: "OldTestTrial", names: set[str], begin: Callable[[], None]) -> set[str] | None:
        """Returns the tests that pass only since they were changed; nothing if that cannot be told."""
        begin()
        return await trial.bent(await self._find_sandbox(), self._make_launch, names)

    async def old_check(self, trial: "OldTestTrial", paths: tuple[str, ...], begin: Callable[[], None]) -> bool | None:
        """Says whether a command ends well only since its own files were changed."""
        begin()
        return await trial.bent_check(await self._find_sandbox(), self._make_launch, paths)
