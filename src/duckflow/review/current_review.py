"""Takes a review agent's findings: stores them in the session, and runs their witnesses."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

from duckflow.code.background import MappedFolder
from duckflow.code.store import source_text
from duckflow.code.syntax import Symbol, available, language_of, symbols_in
from duckflow.events.ports import Emit
from duckflow.events.talking import FindingMade, FindingWithdrawn
from duckflow.review.change import ReviewedChange
from duckflow.review.report import WitnessRunner
from duckflow.safety.workspace import Workspace
from duckflow.state.agent import AgentState
from duckflow.state.changes import FINDING, ReviewFinding, Witness, read_diff
from duckflow.tools.finding import ReportFinding
from duckflow.tools.toolbox import Toolbox

SECONDS = 15.0
MOST_DEFINITIONS = 30
MOST_USES = 12


async def around(diff: str, workspace: Workspace, mapped: Callable[[], MappedFolder]) -> str:
    """Returns a line for each changed definition: its place, and the places of its uses, as far as found in time."""
    if not available():
        return ""
    touched_symbols = [
        symbol
        for path, lines in changed_lines(diff).items()
        if language_of(path)
        for symbol in _innermost(symbols_in(source_text(workspace, path), path), lines)
    ][:MOST_DEFINITIONS]
    if not touched_symbols or await mapped().fresh(SECONDS) is None:
        return "\n".join(_place(symbol) for symbol in touched_symbols)
    rows, deadline = list[str](), time.monotonic() + SECONDS
    for symbol in touched_symbols:
        seconds = deadline - time.monotonic()
        symbol_uses = (await mapped().uses(symbol, seconds)).meaning("it") if seconds > 0 else []
        use_places = [f"{use.path}:{use.line}" for use in symbol_uses if use.role != "import"]
        more_note = f", … ({len(use_places)})" if len(use_places) > MOST_USES else ""
        rows.append(f"{_place(symbol)}{' <- ' if use_places else ''}{', '.join(use_places[:MOST_USES])}{more_note}")
    return "\n".join(rows)


def _place(symbol: Symbol) -> str:
    return f"{symbol.path}:{symbol.start}-{symbol.end} {symbol.what} {symbol.qualified}"


def _innermost(symbols: list[Symbol], lines: set[int]) -> list[Symbol]:
    """Returns the smallest definition around each changed line."""
    innermost_symbols = dict[Symbol, None]()
    for line in sorted(lines):
        holding_symbols = [symbol for symbol in symbols if symbol.start <= line <= symbol.end]
        if holding_symbols:
            innermost_symbols[min(holding_symbols, key=lambda symbol: symbol.end - symbol.start)] = None
    return list(innermost_symbols)


def changed_lines(diff: str) -> dict[str, set[int]]:
    """Returns the new line numbers of each file of a diff; for a removed line, that of the line after it."""
    lines = dict[str, set[int]]()
    for line in read_diff(diff):
        if line.sign in ("+", "-") and line.new:
            lines.setdefault(line.path, set()).add(line.new)
    return lines


class CurrentReview:
    """Allows one review at a time, because the tool for findings belongs to one change."""

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
        """Accepts findings for this change while the context is open."""
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
        was_reported = any(finding.place == place and finding.agent_id == agent_id for finding in self._state.findings)
        if was_reported:
            self._emit(FindingWithdrawn(agent_id=agent_id, place=place))
        return was_reported
