"""Where a review agent's findings go: they are kept in the session, and their witnesses are run."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

from duckflow.code.background import MappedFolder
from duckflow.events.ports import Emit
from duckflow.events.reviewing import FindingMade, FindingWithdrawn
from duckflow.review.around import around
from duckflow.review.change import ReviewedChange
from duckflow.review.witness import WitnessRunner
from duckflow.safety.workspace import Workspace
from duckflow.state.agent import AgentState
from duckflow.state.finding import FINDING, ReviewFinding, Witness
from duckflow.tools.finding import ReportFinding
from duckflow.tools.toolbox import Toolbox


class ReviewDesk:
    """One review at a time: the tool of a review belongs to its change."""

    def __init__(
        self,
        state: AgentState,
        emit: Emit,
        toolbox: Toolbox,
        workspace: Workspace,
        witnesses: WitnessRunner,
        mapped: Callable[[], MappedFolder],
    ) -> None:
        self._state = state
        self._emit = emit
        self._toolbox = toolbox
        self._workspace = workspace
        self._witnesses = witnesses
        self._mapped = mapped
        self._free = asyncio.Lock()

    @asynccontextmanager
    async def opened(self, agent_id: str, change: ReviewedChange) -> AsyncGenerator[ReportFinding]:
        """While this is open, findings are taken for this change."""
        show = partial(self._shown, change)
        tool = ReportFinding(self._workspace, show, partial(self._keep, agent_id), partial(self._withdraw, agent_id))
        async with self._free:
            self._toolbox.add(tool, told=False)
            try:
                yield tool
            finally:
                self._toolbox.remove(FINDING)

    async def around(self, change: ReviewedChange) -> str:
        return await around(change.diff, self._workspace, self._mapped)

    async def _shown(self, change: ReviewedChange, witness: Witness) -> Witness:
        return await self._witnesses.run(witness, change.before)

    def _keep(self, agent_id: str, finding: ReviewFinding) -> None:
        self._emit(FindingMade(finding=finding.model_copy(update={"agent_id": agent_id})))

    def _withdraw(self, agent_id: str, place: str) -> bool:
        stood = any(one.place == place and one.agent_id == agent_id for one in self._state.findings)
        if stood:
            self._emit(FindingWithdrawn(agent_id=agent_id, place=place))
        return stood
