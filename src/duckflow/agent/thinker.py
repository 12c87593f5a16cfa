"""Asks the model for its next Decision (a reply with actions), with a limited number of tries, and applies that
Decision to the state."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Literal, NamedTuple, cast

from duckflow.agent.actor import Actor
from duckflow.agent.connection import Model, ModelConnection
from duckflow.agent.memory import AgentHistory
from duckflow.agent.phases import Phases
from duckflow.agent.session import StateOwner
from duckflow.agent.settings import AgentSettings
from duckflow.errors import ContextTooLong, DuckflowError, PicturesRefused, ProviderRefused, ReplyUnusable, ToolsRefused
from duckflow.events.ports import Emit
from duckflow.events.types import (
    DecisionMade,
    Event,
    FiveChanged,
    LoopBegan,
    MessageAdded,
    Noticed,
    ReplyRejected,
    Reviewed,
    StreamReset,
    TextStreamed,
)
from duckflow.events.views import ContextPart
from duckflow.forms.form import Form, LiveWords, ParsedReply, ReplyRoom
from duckflow.i18n.asking import QuestionStream, one_question
from duckflow.i18n.template import note
from duckflow.llm.provider import Reply, Request
from duckflow.memory.settings import MemorySettings
from duckflow.memory.tokens import history_budget
from duckflow.pacemaker.detectors import RepeatedText
from duckflow.pacemaker.settings import DetectorSettings
from duckflow.prompts.compile import Compiler, Moment
from duckflow.state.action import RESPOND, Action, Decision, Operation
from duckflow.state.agent import AgentState
from duckflow.state.data import said, say, shorten
from duckflow.state.message import Message, PromptMessage
from duckflow.state.phase import Phase, Review, StateDelta
from duckflow.state.profile import ModelProfile
from duckflow.tools.toolbox import talk_operations

SHRINKS = 2
REFUSAL_SHOWN = 400
MALFORMED = "The call could not be formed, so nothing was done. Make it again: an offered tool, with plain JSON."
Narrow = Callable[[Sequence[Operation]], Sequence[Operation]]
"""A function that reduces the offered operations: to some of them, or to fewer allowed arguments."""


class BegunReply:
    """The part of an unfinished reply that the user has seen."""

    HEARS = (TextStreamed, LoopBegan, StreamReset, DecisionMade)

    def __init__(self) -> None:
        self._seen = ""

    def hear(self, event: Event) -> None:
        match event:
            case TextStreamed(channel="say"):
                self._seen += event.text
            case LoopBegan() | StreamReset() | DecisionMade():
                self._seen = ""
            case _:
                pass

    def interrupted(self, language: str) -> str:
        """Returns a note for the model: that its turn was stopped, and which of its words the user has seen."""
        seen_text = self._seen.strip()
        return note(language, "interrupted") + (
            f"\n{note(language, 'interrupted_saying', text=seen_text)}" if seen_text else ""
        )


class LiveReply:
    """Shows the model's words as they stream in, and stops a model that says the same passage over and over."""

    def __init__(self, settings: DetectorSettings, live: LiveWords) -> None:
        self._live = live
        self._said = QuestionStream()
        self._watch = RepeatedText(settings)

    def feed(self, delta: str) -> str:
        if self._watch.hear(delta):
            raise ReplyUnusable("it repeated the same passage over and over; say it once, briefly")
        return self._said.feed(self._live.feed(delta))

    def end(self) -> str:
        return self._said.end()


class Thinker:
    """Asks the model for a Decision (a reply with actions). A reply that cannot be read goes back to the model with the
    exact reason."""

    def __init__(
        self,
        connection: ModelConnection,
        compiler: Compiler,
        emit: Emit,
        settings: AgentSettings,
        memory: MemorySettings,
        detectors: DetectorSettings,
        remembering: AgentHistory,
        streams: bool = True,
        answer_schema: dict[str, Any] | None = None,
    ) -> None:
        """`streams` means that the reply is shown while it comes; replies of an agent in the background are not shown.
        `answer_schema` describes the final answer; models that call tools get it beside the tools."""
        self._answer_schema = answer_schema
        self.connection = connection
        self._compiler = compiler
        self._emit = emit
        self._settings = settings
        self._memory = memory
        self._detectors = detectors
        self._remembering = remembering
        self._streams = streams

    async def decide(self, state: AgentState, limit: int, note: str, narrow: Narrow | None) -> ParsedReply:
        corrections: tuple[PromptMessage, ...] = ()
        attempt, pictures_unseen = 0, False
        while True:
            reply, model = Reply("", "stop"), await self.connection.ready()
            form = model.form
            try:
                operations = self._compiler.offered(state, form)
                operations = narrow(operations) if narrow else operations
                operations = form.without_texts(operations) if attempt else operations
                moment = Moment(form, model.profile, limit, note, corrections, self._remembering.evidence())
                reply = await self._ask(state, moment, operations)
                return await self._read(reply, state, model)
            except ToolsRefused:
                continue
            except PicturesRefused as problem:
                # An answer needs a picture that the user has just shown, but not one that came up in the work.
                if state.loop == 1 or pictures_unseen:
                    raise
                pictures_unseen = True
                self._emit(Noticed(what=said(problem)))
            except ReplyUnusable as problem:
                attempt += 1
                self._emit(ReplyRejected(reason=problem.correction, attempt=attempt))
                self._emit(StreamReset())
                if attempt > self._settings.reply_attempts:
                    raise
                correction = self._compiler.correction(state.language, reply.text, problem.correction, form.format_name)
                corrections += correction

    async def _read(self, reply: Reply, state: AgentState, model: Model) -> ParsedReply:
        """Reads a reply into a Decision (a reply with actions). It works in a thread, because a broken reply takes
        seconds to mend."""
        if reply.finish == "malformed":
            raise ReplyUnusable(MALFORMED)
        if reply.broke_off:
            detail = shorten(reply.text.strip(), REFUSAL_SHOWN) or reply.raw or "-"
            shown_detail = detail if reply.finish == "refusal" else reply.raw or "-"
            raise ProviderRefused(f"model.ended.{reply.finish}", model=state.model, detail=shown_detail)
        reading = await asyncio.to_thread(model.form.read, reply, self._compiler.operations(), state)
        if reading.ignores_tools:
            model.provider.forgo_tools()
        return reading

    async def warm(self, state: AgentState) -> None:
        """Connects the model before the first message, and has a local model read the prompt's stable part already."""
        try:
            model = await self.connection.ready()
            if model.profile.local:
                stable_messages = self._compiler.main(state, [], Moment(model.form, model.profile))[:1]
                request = Request(stable_messages, max_tokens=1)
                async with aclosing(self.connection.streamed(model.provider, request)) as chunks:
                    async for _ in chunks:
                        pass
        except DuckflowError as problem:
            self._emit(Noticed(what=said(problem)))

    async def _ask(self, state: AgentState, moment: Moment, operations: Sequence[Operation]) -> Reply:
        """Asks the model. A request that turns out too long is sent again with less history."""
        budget, settings = self._budget(moment.profile), self._settings
        reply_room = ReplyRoom(settings.decision_tokens, min(settings.inline_tokens, moment.profile.window // 4))
        for halvings in range(SHRINKS + 1):
            history = await self._remembering.history(budget >> halvings)
            messages = self._compiler.main(state, history, moment)
            request = moment.form.request(messages, operations, state, reply_room)
            if self._answer_schema and request.tools:
                request = request._replace(schema=self._answer_schema)
            self._remembering.sent(request)
            try:
                reply = await self.connection.call(request, partial(self._live, moment.form), self._channel)
            except ContextTooLong:
                if halvings == SHRINKS:
                    raise
            else:
                self._remembering.learn(reply.prompt_tokens)
                return reply
        raise ContextTooLong("model.context_too_long")

    @property
    def _channel(self) -> Literal["say", ""]:
        return "say" if self._streams else ""

    def _live(self, form: Form) -> LiveReply:
        return LiveReply(self._detectors, form.live(self._compiler.operations()))

    async def weighed(self, state: AgentState) -> tuple[ContextPart, ...]:
        """Returns the parts of the next request, each with its number of tokens."""
        model = await self.connection.ready()
        history = self._remembering.shown(self._budget(model.profile))
        return self._compiler.weighed(state, history, Moment(model.form, model.profile))

    async def history(self, state: AgentState, actor: Actor) -> list[Message]:
        """Returns the conversation as far as it fits; for a step of a plan only the step's own messages."""
        budget, job = self._budget((await self.connection.ready()).profile), state.jobs.get(actor.job_id)
        if job is None:
            return self._remembering.shown(budget)
        own_messages = [message for message in job.messages if message.step == actor.step_id]
        return self._remembering.history_of_step(own_messages, budget)

    def _budget(self, profile: ModelProfile) -> int:
        return history_budget(self._memory, profile.window, profile.most_history)


TALK_ARGUMENTS = ("text", "question")


def accept(
    reading: ParsedReply, session: StateOwner, phases: Phases, already_said: Collection[str] = ()
) -> ParsedReply:
    """Applies the model's reply to the state, and returns it without the parts that are refused. The model is told of
    these parts. An answer that was already given in this turn, word for word, is not given again."""
    decision = _polite(reading.decision, already_said)
    checked_delta = _checked(decision.state_delta, session.state) if decision.state_delta else None
    session.emit(DecisionMade(decision=decision, doubtful=reading.doubtful))
    turn = session.state.turn
    text = reading.text if reading.wire else "\n\n".join(decision.said())
    message = Message(role="assistant", text=text, turn=turn, decision=decision, wire=reading.wire)
    session.emit(MessageAdded(message=message))
    if checked_delta and (checked_delta.delta.items() or checked_delta.delta.decision):
        session.emit(FiveChanged(delta=checked_delta.delta))
    if checked_delta and checked_delta.told:
        session.emit(MessageAdded(message=Message(role="system", text=checked_delta.told, turn=turn)))
    if checked_delta and checked_delta.goal_refused:
        session.emit(Noticed(what=say("five.refused", goal=checked_delta.goal_refused)))
    if decision.rating and decision.verdict and session.state.phase is Phase.REVIEW:
        session.emit(Reviewed(review=Review(rating=decision.rating, verdict=decision.verdict, by="model")))
    phases.follow(decision)
    return reading._replace(decision=decision)


def _polite(decision: Decision, already_said: Collection[str]) -> Decision:
    """Returns the model's reply in the form in which the user gets it: with at most one question, with choices only if
    there are two or more, and without repetitions."""
    actions = [_polite_action(action) for action in decision.actions]
    if decision.next_step == "done":
        actions = [
            action for action in actions if action.operation != RESPOND or action.args.get("text") not in already_said
        ]
    return decision if actions == decision.actions else decision.model_copy(update={"actions": actions})


def _polite_action(action: Action) -> Action:
    args: dict[str, Any] = {}
    for name in TALK_ARGUMENTS if action.operation in talk_operations() else ():
        if isinstance(text := action.args.get(name), str):
            args[name] = one_question(text)
    if isinstance(choices := action.args.get("choices"), list):
        args["choices"] = _real(cast("list[Any]", choices))
    has_changed = any(action.args[name] != value for name, value in args.items())
    return action.model_copy(update={"args": {**action.args, **args}}) if has_changed else action


def _real(choices: list[Any]) -> list[Any]:
    """Returns the choices that differ from each other; an empty list if only one is left."""
    first_of_text = {str(choice).strip().casefold(): choice for choice in reversed(choices)}
    distinct_choices = [choice for choice in choices if first_of_text[str(choice).strip().casefold()] is choice]
    return distinct_choices if len(distinct_choices) > 1 else []


class CheckedDelta(NamedTuple):
    """The accepted part of a change that the model wants, and the note that tells the model which part is not
    accepted."""

    delta: StateDelta
    goal_refused: str = ""
    told: str = ""


def _checked(delta: StateDelta, state: AgentState) -> CheckedDelta:
    """Checks the model's change of the five items (goal, constraints and the rest of `state.five`). Goal and
    constraints may change only right after the user has spoken. While an approved plan is carried out, its goal
    stays."""
    accepted_delta, notes, refused_goal = delta, list[str](), ""
    five, plan = state.five, state.plan
    if delta.goal is not None and delta.goal != five.goal:
        if plan is not None and plan.under_way:
            refused_goal = delta.goal
            notes.append(note(state.language, "goal_stays_plans", goal=five.goal))
        elif five.goal and not state.heard:
            refused_goal = delta.goal
            notes.append(note(state.language, "goal_stays", goal=five.goal))
    if refused_goal:
        accepted_delta = accepted_delta.model_copy(update={"goal": None})
    lost_constraints = [constraint for constraint in five.constraints if constraint not in (delta.constraints or ())]
    if delta.constraints is not None and lost_constraints and not state.heard:
        accepted_delta = accepted_delta.model_copy(update={"constraints": None})
        notes.append(note(state.language, "constraints_stay", constraints="; ".join(lost_constraints)))
    if delta.plan_brief is not None and plan is not None and plan.under_way:
        # While a plan is carried out, its short form is computed from the plan.
        accepted_delta = accepted_delta.model_copy(update={"plan_brief": None})
    return CheckedDelta(accepted_delta, refused_goal, "\n".join(notes))
