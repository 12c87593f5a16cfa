"""Runs an ActionList: in order, through the Gate, up to a barrier."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies
from duckflow.agent.check_doubts import CheckDoubts
from duckflow.agent.gatekeeper import Clearance, Gatekeeper, Ready
from duckflow.agent.hooks import ToolHooks
from duckflow.agent.preparation import Preparation, in_words, read_ahead
from duckflow.agent.result_filter import ResultFilter
from duckflow.agent.session import Session
from duckflow.agent.undo import UndoKeeper
from duckflow.errors import ToolError
from duckflow.events.types import ActionFinished, ActionStarted, MessageAdded
from duckflow.forms.form import Reading
from duckflow.i18n.asking import only_wonders, tells_of_done
from duckflow.i18n.template import note
from duckflow.safety.risk import Mode
from duckflow.state.action import RESPOND, Action, ActionResult, Decision
from duckflow.state.message import ERROR, Message
from duckflow.state.phase import Phase
from duckflow.state.phrase import LEFT_OUT, REFUSED, WISHED, said
from duckflow.state.picture import Picture
from duckflow.tools.tool import AnyTool, Done
from duckflow.tools.toolbox import Toolbox

log = logging.getLogger(__name__)

Stop = Literal["", "error", "refused", "nobody", "question", "held"]
"""`question`: the user is asked and has to answer. `held`: what was said reads like a question, so the model has to say
once more what it wants. `nobody`: it needs a yes, and no person is there."""
ASKING: tuple[Stop, ...] = ("question", "held")


@dataclass(slots=True)
class Dispatched:
    """What came of a list, and why it stopped before its end, if it did."""

    results: list[ActionResult] = field(default_factory=list[ActionResult])
    stop: Stop = ""
    refusal: str = ""
    wished: bool = False
    """The user did not say no, but wants something else first."""
    approved: bool = False
    """The user was asked and said yes."""
    failed: str = ""
    """The operation that failed last."""
    broken: bool = False
    """Something failed on which what follows may build: more than a look at something, or the edit of one file."""
    held: int = 0
    """The number of actions that were not run because the user was asked something before them."""
    texts: int = 0
    """The number of texts that were asked for in requests of their own."""
    whole: dict[str, Action] = field(default_factory=dict[str, Action])
    """The actions with the texts that came outside the JSON."""

    said_at_gate: dict[str, str] = field(default_factory=dict[str, str])
    """The words that the user said at the Gate of an action. The model hears them with the result."""

    def add(self, other: "Dispatched") -> None:
        """What came of more of the list."""
        self.results += other.results
        self.stop, self.refusal, self.failed = other.stop, other.refusal, other.failed or self.failed
        self.approved |= other.approved
        self.wished |= other.wished
        self.broken |= other.broken
        self.held += other.held
        self.texts += other.texts
        self.whole |= other.whole

    def hear(self, clearance: Clearance) -> None:
        """Keeps what was answered at a Gate."""
        self.approved |= clearance.allowed and clearance.asked
        self.said_at_gate |= clearance.talk

    def with_talk(self, result: ActionResult) -> ActionResult:
        """The result with what the user said at its Gate."""
        said = self.said_at_gate.pop(result.action_id, "")
        return result.model_copy(update={"for_model": f"{result.for_model}\n{said}"}) if said else result

    def stop_for(self, reason: Stop) -> None:
        """A question stays one, whatever becomes of the reads beside it."""
        self.stop = self.stop if self.stop in ASKING else reason

    @property
    def why_not_run(self) -> str:
        """The note for the model on what was left out after the stop."""
        return "not_run_wished" if self.stop == "refused" and self.wished else f"not_run_{self.stop}"

    def ran(self, operation: str) -> bool:
        return any(result.ok and result.operation == operation for result in self.results)


class Acting(Protocol):
    """Carries out what was decided."""

    async def run(self, reading: Reading, actor: Actor) -> Dispatched: ...


class Dispatcher:
    """The only place where actions become deeds."""

    def __init__(
        self,
        session: Session,
        toolbox: Toolbox,
        gatekeeper: Gatekeeper,
        bodies: Bodies,
        kept: UndoKeeper,
        hooks: ToolHooks,
        doubts: CheckDoubts,
        added: Sequence[Path] = (),
    ) -> None:
        """`added`: folders beside the work folder."""
        self._session = session
        self._toolbox = toolbox
        self._gatekeeper = gatekeeper
        self._bodies = bodies
        self._kept = kept
        self._hooks = hooks
        self._doubts = doubts
        self._preparation = Preparation(toolbox)
        self._filter = ResultFilter(session.state, added)

    async def run(self, reading: Reading, actor: Actor) -> Dispatched:
        """Everything is done, asked and told in the name of `actor`."""
        done, language, blocks = Dispatched(), self._session.state.language, list(reading.blocks)
        waiting = await self._preparation.in_order(reading.decision, language)
        waits = reading.decision.next_step == "pending_user"
        while waiting:
            part = self._preparation.part(waiting)
            del waiting[: len(part)]
            if waits and not done.stop and self._preparation.deeds(part, language):
                # What was said waits for an answer, however it was put.
                done.stop = "question" if any(result.effect == "talk" for result in done.results) else "held"
            await self._run_part(part, reading, blocks, done, actor)
            deeds = self._preparation.deeds(waiting, language)
            if done.stop == "question" and _is_said_again(reading.decision, done.results[-1:], deeds, language):
                done.stop = "held"
        if done.stop == "held" and not done.held:
            # Where only reads stand beside the question, the model goes on with what they show.
            goes_on = reading.decision.next_step == "continue" and done.results[-1].effect != "talk"
            done.stop = "" if goes_on else "question"
        return done

    async def free(self, action: Action) -> bool:
        """Whether the action would run without a question. In most modes nothing but reading does, so that the sandbox
        need not even be looked for."""
        if self._gatekeeper.mode not in (Mode.AUTO, Mode.FULL_AUTO, Mode.CONTAINED):
            return False
        await self._toolbox.get_ready([action])
        prepared = self._preparation.prepare([action], {})
        return bool(prepared.ready) and await self._gatekeeper.lets_pass(prepared.ready[0])

    async def _run_part(
        self, part: list[Action], reading: Reading, blocks: list[str], done: Dispatched, actor: Actor
    ) -> None:
        part = self._not_held_back(part, done, actor)
        phase = self._session.state.phase if actor.follows_steps else Phase.EXECUTION
        if part and self._preparation.changes(part[0]) and (objection := _objection(part[0], reading, phase)):
            await self._fail(part[0], objection, done, actor)
            done.broken = True
            part = self._not_held_back(part[1:], done, actor)
        whole: list[Action] = []
        lacking = {name: ToolError(why) for name, why in reading.broken.items()}
        for action in part:
            try:
                if action.action_id not in lacking:
                    action = await self._with_body(action, reading, blocks, done, actor)
            except ToolError as problem:
                lacking[action.action_id] = problem
            whole.append(action)
        done.whole |= {action.action_id: action for action in whole}
        while whole:
            whole = await self._run_front(whole, lacking, reading, done, actor)

    async def _run_front(
        self, part: list[Action], lacking: dict[str, ToolError], reading: Reading, done: Dispatched, actor: Actor
    ) -> list[Action]:
        """What can be prepared now is done; what is left may build on it, so it is looked at only then."""
        ready, later, problem = self._preparation.prepare(part, lacking)
        if problem and not ready:
            await self._fail(later[0], problem, done, actor)
            return self._not_held_back(later[1:], done, actor)
        clearance = Clearance(allowed=True)
        if ready[0].tool.effect != "talk":
            ready, refused = await self._hooks.check(ready, self._preparation.ready, actor)
            for action, refusal in refused:
                await self._fail(action, refusal, done, actor)
            if not (ready := [one for one in ready if not refused or self._not_held_back([one.action], done, actor)]):
                return self._not_held_back(later, done, actor)
            doubtful, hooks = reading.doubtful, self._hooks.at_gate
            clearance = await self._gatekeeper.clear(ready, reading.decision, doubtful, actor, hooks)
        done.hear(clearance)
        free = clearance.free(ready)
        async with read_ahead(free, actor) as ahead:
            for one in free:
                if not self._not_held_back([one.action], done, actor):
                    continue
                name = one.action.action_id
                if clearance.edited is not None and name in clearance.asked_about:
                    await self._run_edited(one, clearance.edited, done, actor)
                else:
                    await self._run_one(one, done, actor, name in clearance.revealed, ahead.get(name))
        if not clearance.allowed:
            left = [one for one in ready if one not in free]
            later = [*await self._refuse(left, clearance, done, actor), *later]
        return self._not_held_back(later, done, actor)

    def _not_held_back(self, actions: Sequence[Action], done: Dispatched, actor: Actor) -> list[Action]:
        """Those that may still run. After an error these are reads, and edits as long as only reads or edits failed;
        after a question reads; after a no none. The others are named with the reason."""
        if not done.stop:
            return list(actions)
        going_on = list[Action]()
        for action in actions:
            if self._goes_on(action, done):
                going_on.append(action)
            else:
                done.held += done.stop in ASKING and self._preparation.acts(action)
                why = self._note(done.why_not_run, operation=done.failed)
                self._tell(action.operation, action.action_id, why, actor)
        return going_on

    def _goes_on(self, action: Action, done: Dispatched) -> bool:
        if done.stop in ASKING:
            return self._preparation.only_looks(action)
        edits = self._preparation.edits(action.operation) and not done.broken
        return done.stop == "error" and (edits or self._preparation.reads(action.operation))

    async def _run_edited(self, one: Ready, text: str, done: Dispatched, actor: Actor) -> None:
        """The action with the user's own text in place of the proposed one."""
        own = one.action.model_copy(update={"args": {**one.action.args, one.tool.editable(one.args): text}})
        prepared = self._preparation.prepare([own], {})
        told = self._note("edited", text=text.rstrip())
        if prepared.problem:
            prepared.problem.for_model += f"\n{told}"
            await self._fail(one.action, prepared.problem, done, actor)
        else:
            self._hooks.tell_with(one.action.action_id, told)
            await self._run_one(prepared.ready[0], done, actor, revealed=False)

    async def _with_body(
        self, action: Action, reading: Reading, blocks: list[str], done: Dispatched, actor: Actor
    ) -> Action:
        """The complete action: a text that came beside the Decision, or is asked for, is put into its arguments."""
        tool = self._toolbox.find(action.operation)
        if not tool.body or tool.has_body(action.args) or not reading.asks_for_texts:
            return action
        done.texts += not blocks
        body = blocks.pop(0) if blocks else await self._bodies.ask_for(action, tool, actor)
        return action.model_copy(update={"args": {**action.args, tool.body: body}})

    async def _run_one(
        self, one: Ready, done: Dispatched, actor: Actor, revealed: bool, begun: asyncio.Task[Done] | None = None
    ) -> None:
        action, tool, doing = one.action, one.tool, one.tool.doing(one.args)
        # A job may have been paused while the text was written or the yes was waited for.
        await actor.pause.wait_while_paused()
        actor.emit(ActionStarted(action=action, doing=doing, effect=tool.effect, step_kind=tool.step_kind))
        if tool.effect == "run":
            await self._filter.look()
        start = time.perf_counter()
        changed: list[str] = []
        try:
            async with self._kept.around(one, actor, self._hooks.follow(tool)) as changed:
                outcome = await (begun or tool.run_for(one.args, actor.call()))
                outcome = await self._hooks.after(one, outcome, actor)
        except Exception as problem:
            failed = _failure(action, tool, in_words(problem, action.operation), time.perf_counter() - start, changed)
            await self._finish(failed, done, actor, None if revealed else action)
            return
        result = ActionResult(
            action_id=action.action_id,
            operation=action.operation,
            ok=outcome.ok,
            for_model=outcome.for_model,
            for_user=outcome.for_user,
            changed=tuple(dict.fromkeys((*outcome.changed, *changed))),
            seconds=time.perf_counter() - start,
            effect=tool.effect,
            kind=tool.step_kind,
            pictures=outcome.pictures,
            check=outcome.check,
        )
        result = await self._doubts.look(result, actor)
        await self._finish(result, done, actor, None if revealed else action)
        if tool.asks(one.args, self._session.state.language):
            done.stop = "question"

    async def _finish(self, result: ActionResult, done: Dispatched, actor: Actor, unasked: Action | None) -> None:
        """`unasked`: the action, where the user was not asked whether its secrets may be seen."""
        if unasked:
            result = await self._filter.hide(result, unasked, actor)
        result = done.with_talk(result)
        done.results.append(result)
        if not result.ok:
            done.failed, asked = result.operation, self._preparation
            done.stop_for("error")
            done.broken |= not (asked.reads(done.failed) or asked.edits(done.failed))
            # What went wrong in words may quote a file; a log does not.
            log.info("action failed: %s: %s", result.operation, result.for_user.key)
        actor.emit(ActionFinished(result=result))
        text = result.for_model if result.ok else f"{ERROR}{result.for_model}"
        if not (result.ok and result.effect == "talk"):
            self._tell(result.operation, result.action_id, text, actor, result.pictures)

    async def _fail(self, action: Action, problem: ToolError, done: Dispatched, actor: Actor) -> None:
        actor.emit(ActionStarted(action=action))
        await self._finish(_failure(action, self._preparation.tool(action.operation), problem), done, actor, action)

    async def _refuse(self, ready: list[Ready], no: Clearance, done: Dispatched, actor: Actor) -> list[Action]:
        """Ends the actions that the user said no to. Returns the others, which nobody was asked about."""
        others = [one.action for one in ready if no.asked_about and one.action.action_id not in no.asked_about]
        why_not = "narrowed" if no.only else "wished" if no.wish else "refused_why" if no.reason else "refused"
        for_model = (no.reason or self._note("nobody")) if no.nobody else self._note(why_not, reason=no.reason)
        key = LEFT_OUT if no.nobody else WISHED if no.wish else REFUSED
        for action in (one.action for one in ready if one.action not in others):
            what = action.about or action.operation
            why = ToolError(for_model, key, operation=action.operation, reason=no.reason, what=what)
            await self._fail(action, self._hooks.refusal(action, no.reason) if no.by_hook else why, done, actor)
        if no.by_hook:
            return others
        done.stop_for("nobody" if no.nobody else "refused")
        done.refusal, done.wished = no.reason, no.wish
        return others

    def _note(self, key: str, **values: str) -> str:
        return note(self._session.state.language, key, **values)

    def _tell(self, operation: str, answers: str, text: str, actor: Actor, pictures: tuple[Picture, ...] = ()) -> None:
        turn = self._session.state.turn
        told = Message(role="tool", operation=operation, text=text, turn=turn, answers=answers, pictures=pictures)
        actor.emit(MessageAdded(message=told))


def _objection(action: Action, reading: Reading, phase: Phase) -> ToolError | None:
    """Why nothing may be changed now."""
    if objection := reading.decision.objection():
        return ToolError(f"not run: your own check says no ({objection})", "tool.objection", reason=objection)
    if phase is Phase.EXECUTION:
        return None
    return ToolError(
        f"not run: {action.operation} changes things and needs step EXECUTION, but the step is {phase}",
        "tool.wrong_phase",
        operation=action.operation,
        phase=phase,
    )


def _is_said_again(decision: Decision, last: Sequence[ActionResult], waiting: Sequence[Action], language: str) -> bool:
    """A text may read like a question that the work itself can answer. One that the model put behind its deeds may tell
    of them as done. A call that asks is never taken for one."""
    if not last or last[0].operation != RESPOND:
        return False
    text = last[0].said or ""
    behind = bool(waiting) and decision.actions[-1].action_id == last[0].action_id
    if behind and tells_of_done(text, language):
        return True
    return decision.next_step != "pending_user" and only_wonders(text, language)


def _failure(
    action: Action, tool: AnyTool | None, problem: ToolError, seconds: float = 0.0, changed: Sequence[str] = ()
) -> ActionResult:
    return ActionResult(
        action_id=action.action_id,
        operation=action.operation,
        ok=False,
        for_model=problem.for_model,
        for_user=said(problem),
        changed=tuple(changed),
        seconds=seconds,
        effect=tool.effect if tool else "",
        kind=tool.step_kind if tool else "other",
    )
