"""The bounds of an agent: the tools of its kind, its own files, and limits of replies, tokens and time."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatched, Dispatcher
from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.agent.preparation import Preparation
from duckflow.agent.settings import AgentSettings
from duckflow.events.types import ActionFinished, ActionStarted, MessageAdded
from duckflow.forms.form import ParsedReply
from duckflow.i18n.template import note
from duckflow.pacemaker.limits import LoopAllowance
from duckflow.state.action import RESPOND, Action, ActionResult, Operation
from duckflow.state.agent import AgentState, SubAgent
from duckflow.state.data import Phrase, say
from duckflow.state.message import ERROR, Message
from duckflow.tools.toolbox import Toolbox
from duckflow.work.agents import usable_by_agents
from duckflow.work.file_locks import FileLocks

NEARLY = 0.85
"""The share of an agent's tokens or time after which it is asked for its report."""


class TurnLimits:
    """Limits on the loops and tokens that all agents of a turn may use together."""

    def __init__(self, state: AgentState, allowance: LoopAllowance, settings: AgentSettings) -> None:
        self._state = state
        self._allowance = allowance
        self._settings = settings
        self._turn = -1
        self._before: dict[str, int] = {}

    def begin(self, agent_id: str) -> None:
        """Begins to count the tokens of an agent that starts in this turn, or goes on in it."""
        if self._turn != self._state.turn:
            self._turn, self._before = self._state.turn, {}
        self._before.setdefault(agent_id, self._taken_by(agent_id))

    def nothing_gained(self) -> Phrase | None:
        """Returns the reason to stop if the turn has used up its loops without making progress. The conversation then
        asks the user how to go on."""
        has_used_up_loops = self._allowance.spent() not in ("", "ceiling")
        return say("agent.cap.turn", loops=self._allowance.taken) if has_used_up_loops else None

    def reached(self) -> Phrase | None:
        """Returns the reason to stop, if all agents together have reached a limit."""
        if self._allowance.spent():
            return say("agent.cap.turn", loops=self._allowance.taken)
        tokens_taken = sum(self._taken_by(agent_id) - tokens_before for agent_id, tokens_before in self._before.items())
        limit = self._settings.agents_tokens
        return say("agent.cap.turn_tokens", limit=limit) if tokens_taken >= NEARLY * limit else None

    def _taken_by(self, agent_id: str) -> int:
        agent = self._state.agents.get(agent_id)
        return agent.usage.fresh if agent else 0


class AgentBounds(Policy):
    """Carries out an agent's decisions within its bounds. Near a limit the agent is asked once for its report; after
    that none of its other calls is carried out."""

    def __init__(
        self,
        agent: SubAgent,
        uses: Callable[[Operation], bool],
        only_reads: bool,
        dispatcher: Dispatcher,
        toolbox: Toolbox,
        locks: FileLocks,
        settings: AgentSettings,
        language: str,
        turn_limits: TurnLimits,
    ) -> None:
        self._agent = agent
        self._uses = uses
        self._only_reads = only_reads
        self._dispatcher = dispatcher
        self._toolbox = toolbox
        self._preparation = Preparation(toolbox)
        self._locks = locks
        self._settings = settings
        self._language = language
        self._turn_limits = turn_limits
        self._loops = 0
        self._time_left = settings.agent_seconds
        self._spent: Phrase | None = None
        """The limit that the agent was close to when it was asked for its report."""

    async def run(self, reading: ParsedReply, actor: Actor) -> Dispatched:
        self._loops += 1
        decision = reading.decision
        actions = [self._toolbox.meant(action) for action in decision.actions]
        await self._toolbox.get_ready(actions)
        objections = {action.action_id: why for action in actions if (why := self._objection(action))}
        allowed_actions = [action for action in decision.actions if action.action_id not in objections]
        dispatched = Dispatched()
        if allowed_actions:
            async with self._changing([action for action in actions if action.action_id not in objections], actor):
                narrowed_decision = decision.model_copy(update={"actions": allowed_actions})
                dispatched = await self._dispatcher.run(reading._replace(decision=narrowed_decision), actor)
        for action in actions:
            if why := objections.get(action.action_id):
                self._refuse(action, why, dispatched, actor)
        self._time_left = actor.timeout.left() if actor.timeout else self._time_left
        return dispatched

    async def after(self, turn: TurnSoFar) -> str | Ending | None:
        if turn.ending:
            return None
        if budget_reason := self._spent or self._turn_limits.nothing_gained():
            return Ending("budget", budget_reason)
        self._spent = self._nearly_spent(turn) or self._turn_limits.reached()
        return turn.note("agent_report_now") if self._spent else None

    def _nearly_spent(self, turn: TurnSoFar) -> Phrase | None:
        limits = self._settings
        if self._loops >= limits.agent_loops - 1:
            return say("agent.cap.loops", limit=limits.agent_loops)
        if turn.state.usage.fresh >= NEARLY * limits.agent_tokens:
            return say("agent.cap.tokens", limit=limits.agent_tokens)
        if self._time_left <= (1 - NEARLY) * limits.agent_seconds:
            return say("agent.cap.time", limit=round(limits.agent_seconds))
        return None

    def _objection(self, action: Action) -> str:
        """Returns the reason for the model why an action may not be done; an empty text when it may."""
        operation = self._operation(action.operation)
        if action.operation == RESPOND:
            return ""
        if self._spent:
            return self._note("agent_report_now")
        if operation is None or not self._may_use(operation):
            usable_operations = [
                other for other in self._toolbox.operations() if other.name != RESPOND and self._may_use(other)
            ]
            usable_names = [other.name for other in usable_operations]
            return self._note("agent_no_tool", operation=action.operation, known=", ".join(usable_names))
        if not self._preparation.changes(action):
            return ""
        if self._only_reads:
            return self._note("agent_only_reads", operation=action.operation)
        return self._not_its_own(operation.touched(action.args))

    def _not_its_own(self, paths: tuple[str, ...]) -> str:
        files = self._agent.files
        for path in paths:
            if files and not self._locks.within(path, files):
                return self._note("agent_other_file", path=path, files=", ".join(files))
        if claim_of_other := self._locks.claim(self._agent.agent_id, paths):
            return self._note("agent_file_taken", path=claim_of_other.path, owner=claim_of_other.owner)
        return ""

    def _changing(self, actions: list[Action], actor: Actor) -> AbstractAsyncContextManager[None]:
        changing = [action for action in actions if self._preparation.changes(action)]
        if not changing:
            return nullcontext()
        paths: list[str] = []
        for action in changing:
            operation = self._operation(action.operation)
            touched_paths = operation.touched(action.args) if operation else ()
            if not touched_paths:
                return self._locks.changing(self._agent.agent_id, (), actor.timeout)
            paths += touched_paths
        return self._locks.changing(self._agent.agent_id, paths, actor.timeout)

    def _may_use(self, operation: Operation) -> bool:
        """Says whether the agent may use the operation. No agent may use plans or start further agents, whatever its
        kind is."""
        return bool(usable_by_agents((operation,))) and self._uses(operation)

    def _operation(self, name: str) -> Operation | None:
        """Finds an operation, even one that the model is not told of at the beginning."""
        listed_operation = next((operation for operation in self._toolbox.operations() if operation.name == name), None)
        tool = None if listed_operation else self._preparation.tool(name)
        return tool.describe() if tool else listed_operation

    def _refuse(self, action: Action, why: str, done: Dispatched, actor: Actor) -> None:
        refusal = say("agent.not_done", operation=action.operation, why=why)
        name = action.operation
        result = ActionResult(action_id=action.action_id, operation=name, ok=False, for_model=why, for_user=refusal)
        actor.emit(ActionStarted(action=action))
        actor.emit(ActionFinished(result=result))
        answer = Message(role="tool", operation=action.operation, text=f"{ERROR}{why}", answers=action.action_id)
        actor.emit(MessageAdded(message=answer))
        done.results.append(result)
        done.stop, done.failed = done.stop or "error", action.operation

    def _note(self, key: str, **values: str) -> str:
        return note(self._language, key, **values)
