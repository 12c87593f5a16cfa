"""Finds out whether sandbox and undo together make an action harmless, so that nothing of it is left."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from duckflow.agent.gate_question import may_lose, only_commits, runs_later_by, what_lasts
from duckflow.agent.permissions import CODE
from duckflow.safety.commands.verdict import ProjectTool
from duckflow.safety.risk import Assessment, Deed
from duckflow.state.data import Phrase
from duckflow.tools.tool import AnyTool, Args

Unkept = Callable[[Sequence[str]], Awaitable[frozenset[str] | None]]
"""A function that returns the files at these paths (in the whole folder if no path is given) that undo could not bring
back. It returns None if undo keeps no files at all."""


class Recovery:
    """Looks at an action that was prepared: its tool with the arguments, and its effects."""

    def __init__(self, folder: Path, reversible: bool, unkept: Unkept) -> None:
        """`reversible` means that undo is switched on."""
        self._folder = folder
        self.reversible = reversible
        self._unkept = unkept

    async def what_lasts(self, tool: AnyTool, args: Args, deed: Deed) -> tuple[Phrase, ...]:
        """Returns the effects that cannot be undone."""
        return await asyncio.to_thread(self._what_lasts, tool, args, deed)

    def like_an_edit(self, tool: AnyTool, args: Args, deed: Deed) -> bool:
        """Says whether the risk of a command of which nothing lasts is that of an edit: the sandbox confines it, and
        undo takes back what it does."""
        if deed.command is None or not self.reversible:
            return False
        return deed.command.only_runs_code or only_commits(deed, tool.command(args), self._folder)

    async def weighed(self, tool: AnyTool, args: Args, deed: Deed, assessment: Assessment) -> Assessment:
        """Adds to an assessment whether the action can be taken back."""
        files = await self._unkept(() if deed.command else tool.touches(args)) if self.reversible else None
        comes_back = await asyncio.to_thread(self._comes_back, tool, args, deed, assessment, files)
        if self.reversible and not deed.command and files != frozenset():
            assessment = assessment._replace(beyond_undo=True)
        return assessment._replace(comes_back=comes_back)

    async def code_runs(self, tool: AnyTool, args: Args, deed: Deed, assessment: Assessment) -> tuple[ProjectTool, ...]:
        """Returns the interpreters of a command that does nothing but run code, in the sandbox without network and
        secrets, if undo brings back all that the code may change; otherwise nothing."""
        if deed.command is None or not deed.command.only_runs_code:
            return ()
        from duckflow.safety.commands.project_tools import LANGUAGES

        programs = {str(reason.values.get("program")) for reason in deed.command.reasons}
        if not programs <= LANGUAGES or not (await self.weighed(tool, args, deed, assessment)).comes_back:
            return ()
        return tuple(ProjectTool(CODE, program) for program in sorted(programs))

    def _comes_back(
        self, tool: AnyTool, args: Args, deed: Deed, assessment: Assessment, unkept: frozenset[str] | None
    ) -> bool:
        """Says whether sandbox and undo make an action harmless: nothing of it lasts, leaves the folder or runs
        later."""
        if not self.reversible or assessment.runs_later or tool.outside or deed.effect not in ("write", "run"):
            return False
        command = tool.command(args)
        if deed.command and (not deed.command.shut_in or deed.command.leaves or runs_later_by(command, self._folder)):
            return False
        return not self._what_lasts(tool, args, deed) and not may_lose(deed, command, self._folder, unkept)

    def _what_lasts(self, tool: AnyTool, args: Args, deed: Deed) -> tuple[Phrase, ...]:
        return tuple(what_lasts(deed, tool.command(args), tool.goes_on(args), self._folder))
