"""Runs actions in order. The Gate asks the user before risky ones. An error, a refusal or a question stops them."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies
from duckflow.agent.gatekeeper import Clearance, Gatekeeper, Ready
from duckflow.agent.hooks import ToolHooks
from duckflow.agent.preparation import Preparation, in_words, read_ahead
from duckflow.agent.proof_runner import CheckDoubts
from duckflow.agent.result_filter import ResultFilter
from duckflow.agent.session import Session
from duckflow.agent.session_secrets import SessionSecrets
from duckflow.agent.undo import UndoKeeper
from duckflow.errors import ToolError
from duckflow.events.types import ActionFinished, ActionStarted, MessageAdded
from duckflow.forms.form import ParsedReply
from duckflow.i18n.asking import only_wonders, tells_of_done
from duckflow.i18n.template import note
from duckflow.safety.risk import Mode
from duckflow.state.action import RESPOND, Action, ActionResult, Decision, subjects_of
from duckflow.state.data import LEFT_OUT, REFUSED, WISHED, said
from duckflow.state.message import ERROR, Message
from duckflow.state.phase import Phase
from duckflow.state.picture import Picture
from duckflow.tools.tool import AnyTool, Done
from duckflow.tools.toolbox import Toolbox

log = logging.getLogger(__name__)

Stop = Literal["", "error", "refused", "nobody", "question", "held", "user_spoke"]
"""Reasons to stop. `question`: the user is asked and has to answer. `held`: the reply reads like a question, so the
model has to say once more what it wants. `nobody`: a yes is needed, and no person is there to give it."""
ASKING: tuple[Stop, ...] = ("question", "held")


@dataclass(slots=True)
class Dispatched:
    """The results of a list of actions, and the reason why it stopped before its end, if it did."""

    results: list[ActionResult] = field(default_factory=list[ActionResult])
    stop: Stop = ""
    refusal: str = ""
    wished: bool = False
    """True if the user did not refuse the actions, but wants something else to be done first."""
    approved: bool = False
    """True if the user was asked and said yes."""
    failed: str = ""
    """The operation that failed last."""
    broken: bool = False
    """True if something failed that later actions may build on: more than a read, or the edit of one file."""
    held: int = 0
    """The number of actions that were not run because the user was asked something before them."""
    left_out: set[str] = field(default_factory=set[str])
    """The actions that were not run. The model has been told why."""
    texts: int = 0
    """The number of texts that the model was asked for in separate requests."""
    whole: dict[str, Action] = field(default_factory=dict[str, Action])
    """All actions by their ids, complete with the texts that came outside of the JSON."""

    said_at_gate: dict[str, str] = field(default_factory=dict[str, str])
    """The words that the user said when asked about an action, by action. The model gets them with the result."""

    def add(self, other: "Dispatched") -> None:
        """Adds the results of another part of the same list of actions."""
        self.results += other.results
        self.stop, self.refusal, self.failed = other.stop, other.refusal, other.failed or self.failed
        self.approved |= other.approved
        self.wished |= other.wished
        self.broken |= other.broken
        self.held += other.held
        self.left_out |= other.left_out
        self.texts += other.texts
        self.whole |= other.whole

    def hear(self, clearance: Clearance) -> None:
        """Keeps the answer that the user gave when they were asked to allow actions."""
        self.approved |= clearance.allowed and clearance.asked
        self.said_at_gate |= clearance.talk

    def with_talk(self, result: ActionResult) -> ActionResult:
        """Returns the result with the words that the user said when asked about its action."""
        words = self.said_at_gate.pop(result.action_id, "")
        return result.model_copy(update={"for_model": f"{result.for_model}\n{words}"}) if words else result

    def stop_for(self, reason: Stop, refusal: str = "", wished: bool = False) -> None:
        """Sets the reason to stop. A question remains the reason, even if a read beside it fails."""
        self.stop = self.stop if self.stop in ASKING else reason
        self.refusal, self.wished = refusal or self.refusal, wished or self.wished

    @property
    def why_not_run(self) -> str:
        """Returns the key of the note that tells the model why the remaining actions were not run."""
        return "not_run_wished" if self.stop == "refused" and self.wished else f"not_run_{self.stop}"

    def ran(self, operation: str) -> bool:
        return any(result.ok and result.operation == operation for result in self.results)


class Acting(Protocol):
    """The interface of everything that carries out a Decision (the model's reply with its actions)."""

    async def run(self, reading: ParsedReply, actor: Actor) -> Dispatched: ...


class Dispatcher:
    """The only place where actions are carried out."""

    def __init__(
        self,
        session: Session,
        toolbox: Toolbox,
        gatekeeper: Gatekeeper,
        bodies: Bodies,
        undo: UndoKeeper,
        hooks: ToolHooks,
        doubts: CheckDoubts,
        secrets: SessionSecrets,
    ) -> None:
        self._session = session
        self._toolbox = toolbox
        self._gatekeeper = gatekeeper
        self._bodies = bodies
        self._kept = undo
        self._hooks = hooks
        self._doubts = doubts
        self._preparation = Preparation(toolbox)
        self._filter = ResultFilter(session.state, secrets)

    async def run(self, reading: ParsedReply, actor: Actor) -> Dispatched:
        """Runs the actions of the model's reply. Everything is done, asked and reported in the name of `actor`."""
        dispatched, language, blocks = Dispatched(), self._session.state.language, list(reading.blocks)
        waits_for_user = reading.decision.next_step == "pending_user"
        asks_user = waits_for_user or reading.asks_in_passing(language)
        waiting_actions = await self._preparation.in_order(reading.decision, asks_user, language)
        while waiting_actions:
            next_actions = self._preparation.part(waiting_actions)
            del waiting_actions[: len(next_actions)]
            if asks_user and not dispatched.stop and self._preparation.deeds(next_actions, language):
                # A question in any text to the user counts as asked, so that the model does not answer itself.
                has_talked = any(result.effect == "talk" for result in dispatched.results)
                is_question_asked = has_talked and (waits_for_user or reading.leaves_open(language))
                dispatched.stop = "question" if is_question_asked else "held"
            await self._run_part(next_actions, reading, blocks, dispatched, actor)
            waiting_deeds = self._preparation.deeds(waiting_actions, language)
            if dispatched.stop == "question" and _is_said_again(
                reading.decision, dispatched.results[-1:], waiting_deeds, language
            ):
                dispatched.stop = "held"
        if dispatched.stop == "held" and not dispatched.held:
            # Where only reads stand beside the question, the model goes on with their results.
            model_goes_on = reading.decision.next_step == "continue" and dispatched.results[-1].effect != "talk"
            dispatched.stop = "" if model_goes_on else "question"
        return dispatched

    async def free(self, action: Action, actor: Actor) -> bool:
        """Says whether the action would run without a question. Only modes that run commands unasked can say yes; in
        other modes the sandbox need not be looked for."""
        if self._gatekeeper.mode not in (Mode.AUTO, Mode.FULL_AUTO, Mode.CONTAINED):
            return False
        await self._toolbox.get_ready([action])
        prepared_action = self._preparation.prepare([action], {})
        return bool(prepared_action.ready) and await self._gatekeeper.lets_pass(prepared_action.ready[0], actor)

    async def _run_part(
        self, part: list[Action], reading: ParsedReply, blocks: list[str], done: Dispatched, actor: Actor
    ) -> None:
        part = self._not_held_back(part, done, actor)
        phase = self._session.state.phase if actor.follows_steps else Phase.EXECUTION
        if part and self._preparation.changes(part[0]) and (objection := _objection(part[0], reading, phase)):
            await self._fail(part[0], objection, done, actor)
            done.broken = True
            part = self._not_held_back(part[1:], done, actor)
        whole_actions: list[Action] = []
        problems = {name: ToolError(why) for name, why in reading.broken.items()}
        for action in part:
            try:
                if action.action_id not in problems:
                    action = await self._with_body(action, reading, blocks, done, actor)
            except ToolError as problem:
                problems[action.action_id] = problem
            whole_actions.append(action)
        done.whole |= {action.action_id: action for action in whole_actions}
        while whole_actions:
            whole_actions = await self._run_front(whole_actions, problems, reading, done, actor)

    async def _run_front(
        self, part: list[Action], lacking: dict[str, ToolError], reading: ParsedReply, done: Dispatched, actor: Actor
    ) -> list[Action]:
        """Runs the actions that can be prepared now. Returns the remaining actions: they may build on the first ones,
        so they are prepared afterwards."""
        ready, later_actions, problem = self._preparation.prepare(part, lacking)
        if problem and not ready:
            await self._fail(later_actions[0], problem, done, actor)
            return self._not_held_back(later_actions[1:], done, actor)
        clearance = Clearance(allowed=True)
        if ready[0].tool.effect != "talk":
            ready, refusals = await self._hooks.check(ready, self._preparation.ready, actor)
            for action, refusal in refusals:
                await self._fail(action, refusal, done, actor)
            if not (
                ready := [call for call in ready if not refusals or self._not_held_back([call.action], done, actor)]
            ):
                return self._not_held_back(later_actions, done, actor)
            doubtful, gate_hooks = reading.doubtful, self._hooks.at_gate
            clearance = await self._gatekeeper.clear(ready, reading.decision, doubtful, actor, gate_hooks)
        done.hear(clearance)
        free_calls = clearance.free(ready)
        async with read_ahead(free_calls, actor) as early_reads:
            for call in free_calls:
                if await actor.is_spoken_to():
                    done.stop_for("user_spoke")
                if not self._not_held_back([call.action], done, actor):
                    continue
                if clearance.edited is not None and call.action.action_id in clearance.asked_about:
                    await self._run_edited(call, clearance.edited, clearance, done, actor)
                else:
                    await self._run_one(call, clearance, done, actor, early_reads.get(call.action.action_id))
        if not clearance.allowed:
            remaining_calls = [call for call in ready if call not in free_calls]
            later_actions = [*await self._refuse(remaining_calls, clearance, done, actor), *later_actions]
        return self._not_held_back(later_actions, done, actor)

    def _not_held_back(self, actions: Sequence[Action], done: Dispatched, actor: Actor) -> list[Action]:
        """Returns the actions that may still run. After an error these are reads (edits too, if only reads or edits
        failed); after a question only reads; after a refusal none. The model is told why the rest do not run."""
        if not done.stop:
            return list(actions)
        continuing_actions = list[Action]()
        for action in actions:
            if self._goes_on(action, done):
                continuing_actions.append(action)
            else:
                done.held += done.stop in ASKING and self._preparation.acts(action)
                done.left_out.add(action.action_id)
                why = self._note(done.why_not_run, operation=done.failed)
                self._tell(action.operation, action.action_id, why, actor)
        return continuing_actions

    def _goes_on(self, action: Action, done: Dispatched) -> bool:
        if done.stop in ASKING:
            return self._preparation.only_looks(action)
        edits = self._preparation.edits(action.operation) and not done.broken
        return done.stop == "error" and (edits or self._preparation.reads(action.operation))

    async def _run_edited(self, call: Ready, text: str, cleared: Clearance, done: Dispatched, actor: Actor) -> None:
        """Runs the action with the user's own text in place of the proposed one."""
        edited_action = call.action.model_copy(
            update={"args": {**call.action.args, call.tool.editable(call.args): text}}
        )
        prepared_action = self._preparation.prepare([edited_action], {})
        edit_note = self._note("edited", text=text.rstrip())
        if problem := prepared_action.problem:
            problem.for_model += f"\n{edit_note}"
            await self._fail(call.action, problem, done, actor)
        else:
            self._hooks.tell_with(call.action.action_id, edit_note)
            await self._run_one(prepared_action.ready[0], cleared._replace(revealed=frozenset()), done, actor)

    async def _with_body(
        self, action: Action, reading: ParsedReply, blocks: list[str], done: Dispatched, actor: Actor
    ) -> Action:
        """Returns the action with its long text as an argument: the next of `blocks`, or one asked of the model."""
        tool = self._toolbox.find(action.operation)
        if not tool.body or tool.has_body(action.args) or not reading.asks_for_texts:
            return action
        done.texts += not blocks
        body_text = blocks.pop(0) if blocks else await self._bodies.ask_for(action, tool, actor)
        return action.model_copy(update={"args": {**action.args, tool.body: body_text}})

    async def _run_one(
        self, call: Ready, cleared: Clearance, done: Dispatched, actor: Actor, begun: asyncio.Task[Done] | None = None
    ) -> None:
        action, tool, doing_phrase = call.action, call.tool, call.tool.doing(call.args)
        unasked = None if action.action_id in cleared.revealed else action
        await actor.wait_while_paused()
        actor.emit(ActionStarted(action=action, doing=doing_phrase, effect=tool.effect, step_kind=tool.step_kind))
        if tool.effect == "run":
            await self._filter.before_command()
        start = time.perf_counter()
        changed: list[str] = []
        try:
            async with self._kept.around(call, actor, self._hooks.follow(tool)) as changed:
                outcome = await (begun or call.run(actor, cleared.limit(call, self._gatekeeper.said.limit_for(actor))))
                outcome = await self._hooks.after(call, outcome, actor)
        except Exception as problem:
            failure = _failure(action, tool, in_words(problem, action.operation), time.perf_counter() - start, changed)
            await self._finish(failure, done, actor, unasked)
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
        if result.effect == "run":
            result = await self._doubts.look(result, actor)
        await self._finish(result, done, actor, unasked)
        if outcome.declined:
            done.stop_for("refused", outcome.for_model, wished=outcome.declined == "wished")
        if tool.asks(call.args, self._session.state.language):
            done.stop = "question"

    async def _finish(self, result: ActionResult, done: Dispatched, actor: Actor, unasked: Action | None) -> None:
        """Records a result. If nobody was asked about its action, `unasked` is that action, and secrets are hidden."""
        result = await self._filter.hide(result, unasked, actor)
        result = done.with_talk(result)
        done.results.append(result)
        if not result.ok:
            done.failed, preparation = result.operation, self._preparation
            done.stop_for("error")
            done.broken |= not (preparation.reads(done.failed) or preparation.edits(done.failed))
            # The message of an error may quote a file, so only its key is logged.
            log.info("action failed: %s: %s", result.operation, result.for_user.key)
        actor.emit(ActionFinished(result=result))
        text = result.for_model if result.ok else f"{ERROR}{result.for_model}"
        if not (result.ok and result.effect == "talk"):
            self._tell(result.operation, result.action_id, text, actor, result.pictures, not unasked)

    async def _fail(self, action: Action, problem: ToolError, done: Dispatched, actor: Actor) -> None:
        actor.emit(ActionStarted(action=action))
        await self._finish(_failure(action, self._preparation.tool(action.operation), problem), done, actor, action)

    async def _refuse(self, ready: list[Ready], no: Clearance, done: Dispatched, actor: Actor) -> list[Action]:
        """Ends the actions that the user has refused. Returns the actions that the user was not asked about."""
        others = [call.action for call in ready if no.asked_about and call.action.action_id not in no.asked_about]
        refused = [call.action for call in ready if call.action not in others]
        note_name = "narrowed" if no.only else "wished" if no.wish else "refused_why" if no.reason else "refused"
        for_model = (no.reason or self._note("nobody")) if no.nobody else self._note(note_name, reason=no.reason)
        phrase_key = LEFT_OUT if no.nobody else WISHED if no.wish else REFUSED
        for action, subject in zip(refused, subjects_of(refused, together=no.wish), strict=True):
            tool_error = ToolError(for_model, phrase_key, operation=subject, reason=no.reason, what=subject)
            await self._fail(action, self._hooks.refusal(action, no.reason) if no.by_hook else tool_error, done, actor)
        if no.by_hook:
            return others
        done.stop_for("nobody" if no.nobody else "refused", no.reason, no.wish)
        return others

    def _note(self, key: str, **values: str) -> str:
        return note(self._session.state.language, key, **values)

    def _tell(
        self, of: str, answers: str, text: str, actor: Actor, pictures: tuple[Picture, ...] = (), is_open: bool = False
    ) -> None:
        message = Message(role="tool", operation=of, text=text, answers=answers, pictures=pictures, is_open=is_open)
        actor.emit(MessageAdded(message=message.model_copy(update={"turn": self._session.state.turn})))


def _objection(action: Action, reading: ParsedReply, phase: Phase) -> ToolError | None:
    """Returns the reason why nothing may be changed now, if there is one."""
    if objection := reading.decision.objection():
        return ToolError(f"not run: your own check says no ({objection})", "tool.objection", reason=objection)
    if phase is Phase.EXECUTION:
        return None
    text = f"not run: {action.operation} changes things and needs step EXECUTION, but the step is {phase}"
    return ToolError(text, "tool.wrong_phase", operation=action.operation, phase=phase)


def _is_said_again(decision: Decision, last: Sequence[ActionResult], waiting: Sequence[Action], language: str) -> bool:
    """Says whether the model must state again what it wants, because its text reads like a question that the work
    itself can answer, or because it reports actions as done before they ran. A tool call that asks is never held back.
    """
    if not last or last[0].operation != RESPOND:
        return False
    text = last[0].said or ""
    is_text_last_action = bool(waiting) and decision.actions[-1].action_id == last[0].action_id
    if is_text_last_action and tells_of_done(text, language):
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
