"""Runs an ActionList: in order, through the Gate, up to a barrier."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies
from duckflow.agent.gatekeeper import Clearance, Gatekeeper, Ready
from duckflow.agent.result_filter import ResultFilter
from duckflow.agent.session import Session
from duckflow.agent.undo import UndoKeeper
from duckflow.errors import ToolError
from duckflow.events.types import ActionFinished, ActionStarted, MessageAdded
from duckflow.llm.decision import Reading
from duckflow.prompts.template import note
from duckflow.safety.policy import Mode
from duckflow.state.action import Action, ActionResult
from duckflow.state.message import Message
from duckflow.state.phase import Phase
from duckflow.state.phrase import said
from duckflow.tools.tool import AnyTool
from duckflow.tools.toolbox import Toolbox

log = logging.getLogger(__name__)

Stop = Literal["", "error", "refused", "question"]


@dataclass(slots=True)
class Dispatched:
    """What came of a list, and why it stopped before its end, if it did."""

    results: list[ActionResult] = field(default_factory=list[ActionResult])
    stop: Stop = ""
    refusal: str = ""
    approved: bool = False
    """The user was asked and said yes."""

    def ran(self, operation: str) -> bool:
        return any(result.ok and result.operation == operation for result in self.results)


class Dispatcher:
    """The only place where actions become deeds."""

    def __init__(
        self, session: Session, toolbox: Toolbox, gatekeeper: Gatekeeper, bodies: Bodies, kept: UndoKeeper
    ) -> None:
        self._session = session
        self._toolbox = toolbox
        self._gatekeeper = gatekeeper
        self._bodies = bodies
        self._kept = kept
        self._filter = ResultFilter(session.state)

    async def run(self, reading: Reading, actor: Actor) -> Dispatched:
        """Everything is done, asked and told in the name of `actor`."""
        done = Dispatched()
        waiting = list(reading.decision.actions)
        await self._toolbox.get_ready(waiting)
        blocks = list(reading.blocks)
        while waiting and not done.stop:
            part = self._part(waiting)
            del waiting[: len(part)]
            await self._run_part(part, reading, blocks, done, actor)
        if waiting:
            skipped = ", ".join(action.operation for action in waiting)
            self._tell(self._note("not_run", operations=skipped), actor)
        return done

    async def free(self, action: Action) -> bool:
        """Whether the action would run without a question. Anything but reading does so in full-auto only, and then
        the sandbox need not even be looked for."""
        if self._gatekeeper.mode is not Mode.FULL_AUTO:
            return False
        await self._toolbox.get_ready([action])
        ready, problem = self._prepare([action])
        return problem is None and self._gatekeeper.lets_pass(ready[0])

    def _part(self, actions: Sequence[Action]) -> list[Action]:
        """The next action that only reads or talks, or all the changes that stand together: they share one Gate."""
        changes: list[Action] = []
        for action in actions:
            if not self._changes(action):
                break
            changes.append(action)
        return changes or list(actions[:1])

    def _changes(self, action: Action) -> bool:
        if (tool := self._tool(action)) is None:
            return False
        try:
            return not tool.reads_only(self._toolbox.arguments(tool, action.args))
        except ToolError:
            # What still lacks its body is judged by its kind.
            return tool.changes

    def _tool(self, action: Action) -> AnyTool | None:
        try:
            return self._toolbox.find(action.operation)
        except ToolError:
            return None

    async def _run_part(
        self, part: list[Action], reading: Reading, blocks: list[str], done: Dispatched, actor: Actor
    ) -> None:
        try:
            whole = [await self._with_body(action, reading, blocks, actor) for action in part]
        except ToolError as problem:
            await self._fail(part[0], problem, done, actor)
            return
        await self._run_whole(whole, reading, done, actor)

    async def _run_whole(self, part: list[Action], reading: Reading, done: Dispatched, actor: Actor) -> None:
        ready, problem = self._prepare(part)
        if problem and not ready:
            await self._fail(part[0], problem, done, actor)
            return
        if ready[0].tool.effect == "talk":
            await self._run_one(ready[0], done, actor, revealed=False)
            return
        clearance = await self._gatekeeper.clear(ready, reading.decision, reading.doubtful, actor)
        if not clearance.allowed:
            await self._refuse(ready, clearance.reason, done, actor)
            return
        done.approved |= clearance.asked
        if clearance.edited is not None:
            ready = await self._edited(ready[0], clearance, done, actor)
        for one in ready:
            await self._run_one(one, done, actor, one.action.action_id in clearance.revealed)
            if done.stop:
                return
        if rest := part[len(ready) :]:
            # A change may build on one before it (edit what was just written), so the rest is looked at only now.
            await self._run_whole(rest, reading, done, actor)

    async def _edited(self, one: Ready, clearance: Clearance, done: Dispatched, actor: Actor) -> list[Ready]:
        """The action with the user's own text in place of the proposed one."""
        args = {**one.action.args, one.tool.editable(one.args): clearance.edited}
        ready, problem = self._prepare([one.action.model_copy(update={"args": args})])
        if problem:
            await self._fail(one.action, problem, done, actor)
        return ready

    async def _with_body(self, action: Action, reading: Reading, blocks: list[str], actor: Actor) -> Action:
        """The complete action: what travels outside the JSON is put into its arguments."""
        tool = self._toolbox.find(action.operation)
        phase = self._session.state.phase
        changes = self._changes(action)
        if changes and (objection := reading.decision.objection()):
            raise ToolError(f"not run: your own check says no ({objection})", "tool.objection", reason=objection)
        # A job carries out an approved plan: it always executes.
        if changes and phase is not Phase.EXECUTION and not actor.job_id:
            raise ToolError(
                f"not run: {action.operation} changes things and needs step EXECUTION, but the step is {phase}",
                "tool.wrong_phase",
                operation=action.operation,
                phase=phase,
            )
        if not tool.body or tool.has_body(action.args):
            return action
        body = blocks.pop(0) if blocks else await self._bodies.ask_for(action, tool, actor)
        return action.model_copy(update={"args": {**action.args, tool.body: body}})

    def _prepare(self, part: list[Action]) -> tuple[list[Ready], ToolError | None]:
        """As many from the front as can be prepared now, and what is wrong with the next."""
        ready: list[Ready] = []
        for action in part:
            try:
                tool = self._toolbox.find(action.operation)
                args = self._toolbox.arguments(tool, action.args)
                ready.append(Ready(action, tool, args, tool.preview(args)))
            except (ToolError, OSError) as problem:
                return ready, _in_words(problem)
        return ready, None

    async def _run_one(self, one: Ready, done: Dispatched, actor: Actor, revealed: bool) -> None:
        action = one.action
        # A job may have been paused while the text was written or the yes was waited for.
        await actor.pause.wait_while_paused()
        actor.emit(ActionStarted(action=action, doing=one.tool.doing(one.args)))
        if one.tool.effect == "run":
            await self._filter.look()
        start = time.perf_counter()
        try:
            async with self._kept.around(one):
                outcome = await one.tool.run_for(one.args, actor.call())
        except (ToolError, OSError) as problem:
            failed = _failure(action, one.tool, _in_words(problem), time.perf_counter() - start)
            await self._finish(failed, done, actor, None if revealed else action)
            return
        result = ActionResult(
            action_id=action.action_id,
            operation=action.operation,
            ok=outcome.ok,
            for_model=outcome.for_model,
            for_user=outcome.for_user,
            changed=outcome.changed,
            seconds=time.perf_counter() - start,
            effect=one.tool.effect,
            kind=one.tool.step_kind,
        )
        await self._finish(result, done, actor, None if revealed else action)
        if one.tool.asks(one.args):
            done.stop = "question"

    async def _finish(self, result: ActionResult, done: Dispatched, actor: Actor, unasked: Action | None) -> None:
        """`unasked`: the action, where the user was not asked whether its secrets may be seen."""
        if unasked:
            result = await self._filter.hide(result, unasked, actor)
        done.results.append(result)
        if not result.ok:
            done.stop = "error"
            # What went wrong in words may quote a file; a log does not.
            log.info("action failed: %s: %s", result.operation, result.for_user.key)
        actor.emit(ActionFinished(result=result))
        if not (result.ok and result.effect == "talk"):
            text = result.for_model if result.ok else f"ERROR: {result.for_model}"
            turn = self._session.state.turn
            message = Message(role="tool", operation=result.operation, text=text, turn=turn)
            actor.emit(MessageAdded(message=message))

    async def _fail(self, action: Action, problem: ToolError, done: Dispatched, actor: Actor) -> None:
        actor.emit(ActionStarted(action=action))
        await self._finish(_failure(action, self._tool(action), problem), done, actor, action)

    async def _refuse(self, ready: list[Ready], reason: str, done: Dispatched, actor: Actor) -> None:
        told = self._note("refused_why", reason=reason) if reason else self._note("refused")
        for one in ready:
            operation = one.action.operation
            refused = ToolError(told, "tool.refused", operation=operation, reason=reason)
            await self._fail(one.action, refused, done, actor)
        done.stop, done.refusal = "refused", reason

    def _note(self, key: str, **values: str) -> str:
        return note(self._session.state.language, key, **values)

    def _tell(self, text: str, actor: Actor) -> None:
        actor.emit(MessageAdded(message=Message(role="system", text=text, turn=self._session.state.turn)))


def _in_words(problem: ToolError | OSError) -> ToolError:
    return problem if isinstance(problem, ToolError) else ToolError(problem.strerror or str(problem))


def _failure(action: Action, tool: AnyTool | None, problem: ToolError, seconds: float = 0.0) -> ActionResult:
    return ActionResult(
        action_id=action.action_id,
        operation=action.operation,
        ok=False,
        for_model=problem.for_model,
        for_user=said(problem),
        seconds=seconds,
        effect=tool.effect if tool else "",
        kind=tool.step_kind if tool else "other",
    )
