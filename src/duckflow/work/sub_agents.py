"""Agents in the conversation: each is handed a task and returns a report. Their words and actions are in the journal of
the session, so that an agent can go on from there."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.session import Session
from duckflow.agent.settings import AgentSettings
from duckflow.agent.undo import UndoKeeper
from duckflow.errors import OUTCOMES, DuckflowError, Outcome, ToolError, UsageError
from duckflow.events.ports import Ask
from duckflow.events.types import ActionFinished, MessageAdded, Noticed, PastForgotten
from duckflow.events.work import AgentEnded, AgentStarted
from duckflow.extensions.agent_kinds import PACKAGED, REVIEW, AgentKind
from duckflow.i18n.template import note, quoted, render
from duckflow.i18n.words import Words
from duckflow.llm.provider import Provider
from duckflow.pacemaker.limits import LoopAllowance
from duckflow.review.change import ReviewedChange
from duckflow.review.current_review import CurrentReview
from duckflow.review.report import ReviewResult, as_text
from duckflow.safety.secret_diffs import without_secret_lines
from duckflow.state.action import Operation, evidence_of
from duckflow.state.agent import AgentReport, SubAgent, SubAgentStatus, next_agent_id
from duckflow.state.changes import ReviewFinding, by_weight
from duckflow.state.data import holds, said, say
from duckflow.state.message import Message
from duckflow.tools.tool import Done
from duckflow.tools.toolbox import Toolbox
from duckflow.work.agent_bounds import AgentBounds, TurnLimits
from duckflow.work.agents import Agents, AgentTask
from duckflow.work.file_locks import FileLocks

LONGEST_FOUND = 8_000
LONGEST_DIFF = 60_000


@dataclass(frozen=True, slots=True)
class SharedAgentParts:
    """The conversation's own parts through which all agents act."""

    dispatcher: Dispatcher
    toolbox: Toolbox
    ask: Ask
    undo: UndoKeeper
    reviews: CurrentReview


@dataclass(slots=True)
class WithinReach:
    """A running agent, kept so that the user can talk to it or stop it."""

    said: list[str] = field(default_factory=list[str])
    work: asyncio.Future[AgentReport] | None = None
    """The agent's running work; nothing while the agent is waiting to begin."""
    stopped: bool = False

    def heard(self) -> str:
        words, self.said = "\n".join(self.said), []
        return words


class SubAgents:
    """Runs agents, a limited number side by side; the others wait."""

    def __init__(
        self,
        session: Session,
        agents: Agents,
        parts: SharedAgentParts,
        own_kinds: Callable[[], Iterable[AgentKind]],
        settings: AgentSettings,
        locks: FileLocks,
        allowance: LoopAllowance,
    ) -> None:
        self._session = session
        self._agents = agents
        self._parts = parts
        self._own_kinds = own_kinds
        self._settings = settings
        self._locks = locks
        self._allowance = allowance
        self._turn_limits = TurnLimits(session.state, allowance, settings)
        self._slots = asyncio.Semaphore(settings.agents_at_once)
        self._at_work: dict[str, WithinReach] = {}

    def stop(self, agent_id: str) -> None:
        """Ends one agent; the conversation gets the report of what it has done so far."""
        running = self._running(agent_id)
        running.stopped = True
        if running.work:
            running.work.cancel()

    def tell(self, agent_id: str, text: str) -> None:
        """Says something to one agent, which reads it with its next request."""
        self._running(agent_id).said.append(text)
        self._session.emit(Noticed(what=say("agent.told", agent=agent_id, text=text)))

    def _running(self, agent_id: str) -> WithinReach:
        if agent_id not in self._at_work:
            raise UsageError("agent.not_running", agent=agent_id)
        return self._at_work[agent_id]

    async def run(self, task: str, kind: str, files: Sequence[str]) -> Done:
        """Runs one agent to its end and returns its report, even if only part of the work is done."""
        await self._require_agents()
        agent, agent_kind = self._make(task, kind, tuple(files))
        return await self._begin(agent, agent_kind, None)

    async def review(self, change: ReviewedChange, task: str = "") -> ReviewResult:
        """Has an agent review a change, because the user asked for it."""
        await self._require_agents()
        agent, agent_kind = self._make(task or note(self._session.state.language, "review_task"), REVIEW, ())
        await self._begin(agent, agent_kind, change)
        ended_agent = self._session.state.agents[agent.agent_id]
        report = ended_agent.report or AgentReport(asked=agent.task, outcome="failed")
        return ReviewResult(self._findings(agent.agent_id), report, ended_agent.usage)

    async def _require_agents(self) -> None:
        if not await self._agents.available():
            raise ToolError(self._note("agent_not_here"), "agent.not_here")

    async def _begin(self, agent: SubAgent, how: AgentKind, change: ReviewedChange | None) -> Done:
        history = messages_of(self._session, agent.agent_id) if agent.agent_id in self._session.state.agents else ()
        if claim_of_other := self._locks.claim(agent.agent_id, agent.files if not how.only_reads else ()):
            why = self._note("agent_file_taken", path=claim_of_other.path, owner=claim_of_other.owner)
            raise ToolError(why, "agent.file_taken", path=claim_of_other.path, owner=claim_of_other.owner)
        # From now on no other agent can get this id.
        self._session.emit(AgentStarted(agent=agent))
        reach = self._at_work[agent.agent_id] = WithinReach()
        try:
            async with self._slots:
                if reach.stopped:
                    return self._ended(agent, AgentReport(asked=agent.task, outcome="interrupted"))
                self._turn_limits.begin(agent.agent_id)
                if limit_reached := self._turn_limits.reached():
                    return self._ended(agent, AgentReport(asked=agent.task, outcome="budget", open=limit_reached))
                if how.name != REVIEW:
                    return await self._run(agent, how, history, reach)
                change = change or await self.latest()
                async with self._parts.reviews.opened(agent.agent_id, change) as tool:
                    return await self._run(agent, how, history, reach, change, (tool.describe(),))
        finally:
            del self._at_work[agent.agent_id]
            self._locks.release(agent.agent_id)
            if self._session.state.agents[agent.agent_id].status == "running":
                self._ended(agent, AgentReport(asked=agent.task, outcome="interrupted"))

    def _make(self, task: str, kind: str, files: tuple[str, ...]) -> tuple[SubAgent, AgentKind]:
        """Makes a new agent. If `kind` is the id of an earlier agent, that agent goes on instead."""
        agents, kinds = self._session.state.agents, PACKAGED | {own.name: own for own in self._own_kinds()}
        earlier_agent = agents.get(kind)
        if earlier_agent and earlier_agent.status == "running":
            raise ToolError(self._note("agent_runs", agent=kind), "agent.runs", agent=kind)
        agent_kind = kinds.get(earlier_agent.kind if earlier_agent else kind)
        if agent_kind is None:
            why = self._note("agent_no_kind", kind=kind, known=", ".join([*kinds, *agents]))
            raise ToolError(why, "agent.no_kind", kind=kind)
        if earlier_agent:
            changes = {"task": task, "files": files or earlier_agent.files, "status": "running", "report": None}
            return earlier_agent.model_copy(update=changes), agent_kind
        agent_id = next_agent_id(kind, agents)
        return SubAgent(
            agent_id=agent_id, kind=kind, task=task, files=files, only_reads=agent_kind.only_reads
        ), agent_kind

    async def _run(
        self,
        agent: SubAgent,
        how: AgentKind,
        earlier: tuple[Message, ...],
        within_reach: WithinReach,
        change: ReviewedChange | None = None,
        adds: tuple[Operation, ...] = (),
    ) -> Done:
        state, agent_parts, model = self._session.state, self._parts, await self._model_of(how)
        agent_bounds = AgentBounds(
            agent,
            how.uses,
            how.only_reads,
            agent_parts.dispatcher,
            agent_parts.toolbox,
            self._locks,
            self._settings,
            state.language,
            self._turn_limits,
        )
        task = AgentTask(
            await self._asked(agent, how, bool(earlier), change),
            "",
            agent_bounds,
            (agent_bounds,),
            tuple(state.five.constraints),
            how.uses,
            model,
            self._settings.agent_tokens,
            self._allowance,
            earlier,
            within_reach.heard,
            adds=adds,
        )
        work = self._agents.begin(task, Actor(self._session.emit, agent_parts.ask, agent.agent_id, agent.agent_id))
        within_reach.work = asyncio.ensure_future(work.run(self._settings.agent_seconds))
        try:
            return self._ended(agent, await within_reach.work)
        except TimeoutError:
            why = say("agent.cap.time", limit=round(self._settings.agent_seconds))
            return self._ended(agent, work.report("budget", why))
        except asyncio.CancelledError:
            if within_reach.stopped:
                return self._ended(agent, work.report("interrupted", say("agent.stopped_by_user")))
            self._session.emit(Noticed(what=self._ended(agent, work.report("interrupted")).for_user))
            text = self._note("agents_cut_off", agents=agent.agent_id)
            self._session.emit(MessageAdded(message=Message(role="system", text=text, turn=state.turn)))
            raise
        finally:
            if model:
                await model.aclose()

    async def _model_of(self, how: AgentKind) -> Provider | None:
        """Connects the model that the kind names. A kind that a folder brings may name only another model of the same
        provider: a folder does not decide to whom prompts are sent."""
        if not how.model:
            return None
        name, session_model = how.model, self._session.state.model
        try:
            provider = (await self._agents.connection.find(name)).provider
        except DuckflowError as problem:
            self._session.emit(Noticed(what=said(problem)))
        else:
            if how.own or provider.model.partition(":")[0] == session_model.partition(":")[0]:
                return provider
            await provider.aclose()
        self._session.emit(Noticed(what=say("agent.other_model", kind=how.name, wanted=name, model=session_model)))
        return None

    async def _asked(self, agent: SubAgent, how: AgentKind, goes_on: bool, change: ReviewedChange | None) -> str:
        language, state = self._session.state.language, self._session.state
        if goes_on:
            return render(language, "agent_goes_on", task=agent.task, files=", ".join(agent.files))
        rule_name = how.name if how.name in PACKAGED else "work"
        prompt_values = {
            "agent": agent.agent_id,
            "own": how.prompt,
            "task": agent.task,
            "files": ", ".join(agent.files),
            "rule": note(language, f"agent_is_{rule_name}"),
            "loops": str(self._settings.agent_loops),
            "constraints": "; ".join(state.five.constraints),
            "diff": await self._material(change) if change else "",
            "evidence": "; ".join(evidence.text for evidence in state.evidence) if how.name == REVIEW else "",
        }
        return render(language, "agent", **prompt_values)

    async def latest(self) -> ReviewedChange:
        """Returns the changes of the latest turn or job that changed something."""
        try:
            preview = await self._parts.undo.diff()
            versions = await self._parts.undo.versions(preview.authors[-1].whole)
        except DuckflowError:
            return ReviewedChange("")
        return ReviewedChange(preview.diff, {version.path: version.before for version in versions})

    async def _material(self, change: ReviewedChange) -> str:
        """Returns the diff, and the definitions that it touches with their callers."""
        if not change.diff:
            return ""
        language, nearby_code = self._session.state.language, await self._parts.reviews.around(change)
        whole_diff = without_secret_lines(change.diff, Path(self._session.state.folder))
        diff = whole_diff[:LONGEST_DIFF]
        left_out = len(whole_diff) - len(diff)
        cut_note = note(language, "diff_cut", left=str(left_out)) if left_out else ""
        code_quote = quoted(language, "code map", nearby_code) if nearby_code else ""
        return "\n".join(filter(None, (quoted(language, "diff", diff), cut_note, code_quote)))

    def _findings(self, agent_id: str) -> tuple[ReviewFinding, ...]:
        return tuple(by_weight(finding for finding in self._session.state.findings if finding.agent_id == agent_id))

    def _ended(self, agent: SubAgent, report: AgentReport) -> Done:
        """Records the agent's end, and returns the result for the conversation."""
        state = self._session.state
        status = _status(report.outcome)
        evidence = () if agent.only_reads else report.evidence
        report = report.model_copy(update={"asked": agent.task, "evidence": evidence})
        self._session.emit(AgentEnded(agent_id=agent.agent_id, status=status, report=report))
        usage = state.agents[agent.agent_id].usage
        words, findings = Words(state.language), self._findings(agent.agent_id)
        why, listing = words.phrase(report.open) if report.open else "", as_text(findings, words) if findings else ""
        text = render(
            state.language,
            "agent_report",
            agent=agent.agent_id,
            status=status,
            changed=", ".join(report.changed),
            evidence="; ".join(report.evidence),
            open=why,
            found=_cut("\n\n".join(filter(None, (report.found, listing)))) or "-",
        )
        tokens = usage.prompt_tokens + usage.completion_tokens
        line = say(f"agent.ended.{status}", agent=agent.agent_id, calls=usage.calls, tokens=f"{tokens:,}", why=why)
        return Done(text, line, ok=status != "failed")

    def _note(self, key: str, **values: str) -> str:
        return note(self._session.state.language, key, **values)


def _status(outcome: Outcome) -> SubAgentStatus:
    """Returns the status for an outcome. If an agent is not done, has not failed and has reached no limit of its own, a
    person has stopped it."""
    match outcome:
        case "done":
            return "done"
        case "budget":
            return "capped"
        case _:
            return "failed" if OUTCOMES[outcome].kind == "failed" else "stopped"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_FOUND else f"{text[:LONGEST_FOUND]}\n[…]"


def messages_of(session: Session, agent_id: str) -> tuple[Message, ...]:
    """Reads from the journal all that was said in an agent's context, except for what the user wanted forgotten."""
    messages: list[Message] = []
    for _, event in session.record():
        match event:
            case MessageAdded() if event.message.job == agent_id:
                messages.append(event.message.model_copy(update={"job": ""}))
            case PastForgotten() if event.words:
                messages = [message for message in messages if not holds(message.whole, event.words)]
            case _:
                pass
    return tuple(messages)


def mark_interrupted(session: Session) -> str:
    """Ends the agents that were at work when the program ended; what they had done is kept in their reports. Returns
    the note for the model about them."""
    state = session.state
    cut_off = [agent for agent in state.agents.values() if agent.status == "running"]
    for agent in cut_off:
        report = _report_so_far(agent, _results_of(session, agent.agent_id))
        session.emit(AgentEnded(agent_id=agent.agent_id, status="interrupted", report=report))
    names = ", ".join(agent.agent_id for agent in cut_off)
    return note(state.language, "agents_cut_off", agents=names) if cut_off else ""


def _results_of(session: Session, agent_id: str) -> Iterator[ActionFinished]:
    for _, event in session.record():
        if isinstance(event, ActionFinished) and event.job == agent_id:
            yield event


def _report_so_far(agent: SubAgent, finished: Iterator[ActionFinished]) -> AgentReport:
    changed_paths, evidence_texts = dict[str, None](), list[str]()
    for event in finished:
        changed_paths |= dict.fromkeys(event.result.changed)
        if evidence := evidence_of(event.result):
            evidence_texts.append(evidence.text)
    return AgentReport(
        asked=agent.task,
        outcome="interrupted",
        changed=tuple(changed_paths),
        evidence=tuple(evidence_texts[-4:]),
        open=say("agent.cut_off"),
    )
