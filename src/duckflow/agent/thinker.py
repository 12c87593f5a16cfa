"""Thinking: from state to the next Decision, with bounded tries."""

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from functools import partial

from duckflow.agent.actor import Actor
from duckflow.agent.connection import ModelConnection, Reply, closable
from duckflow.agent.history import AgentHistory
from duckflow.agent.settings import AgentSettings
from duckflow.errors import ContextTooLong, DuckflowError, PicturesRefused, ProviderRefused, ReplyUnusable, ToolsRefused
from duckflow.events.ports import Emit
from duckflow.events.types import (
    DecisionMade,
    Event,
    LoopBegan,
    Noticed,
    ReplyRejected,
    StreamReset,
    TextStreamed,
)
from duckflow.llm.decision import Reading, read_decision
from duckflow.llm.native import read_native
from duckflow.llm.partial import LiveText
from duckflow.llm.provider import Request
from duckflow.llm.schema import STEPS, decision_schema
from duckflow.memory.settings import MemorySettings
from duckflow.pacemaker.repetition import RepeatedText
from duckflow.pacemaker.settings import DetectorSettings
from duckflow.prompts.compile import Compiler, Moment
from duckflow.prompts.layers import Layer
from duckflow.prompts.offer import Narrow
from duckflow.prompts.template import note
from duckflow.state.action import Operation
from duckflow.state.agent import AgentState
from duckflow.state.message import Message, NativeReply, PromptMessage
from duckflow.state.one_question import QuestionStream
from duckflow.state.phase import Phase
from duckflow.state.phrase import said
from duckflow.state.profile import ModelProfile

SHRINKS = 2


class BegunReply:
    """What the user has seen of a reply that is not whole yet."""

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
        """For the model: the turn was stopped, and how far it had come with its words."""
        seen = self._seen.strip()
        return note(language, "interrupted") + (f"\n{note(language, 'interrupted_saying', text=seen)}" if seen else "")


class LiveReply:
    """What is said as it streams in; a model that says the same passage over and over is cut short."""

    def __init__(self, settings: DetectorSettings, operations: Iterable[Operation], spoken: bool) -> None:
        self._live = LiveText({one.name: one.says for one in operations if one.says}, spoken)
        self._said = QuestionStream()
        self._watch = RepeatedText(settings)

    def feed(self, delta: str) -> str:
        if self._watch.hear(delta):
            raise ReplyUnusable("it repeated the same passage over and over; say it once, briefly")
        return self._said.feed(self._live.feed(delta))

    def end(self) -> str:
        return self._said.end()


class Thinker:
    """Asks the model for a Decision; a bad reply goes back with the exact reason."""

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
    ) -> None:
        """`streams`: what it says is shown while it comes; what an agent in the background says is not."""
        self.connection = connection
        self._compiler = compiler
        self._emit = emit
        self._settings = settings
        self._memory = memory
        self._detectors = detectors
        self._remembering = remembering
        self._streams = streams

    async def decide(self, state: AgentState, limit: int, note: str, narrow: Narrow | None) -> Reading:
        corrections: tuple[PromptMessage, ...] = ()
        attempt, unseen = 0, False
        while True:
            reply, profile = Reply("", "stop"), await self.connection.ready_profile()
            if attempt and not profile.native_tools:
                # A long text may be what went wrong: it is asked for by itself.
                profile = profile._replace(bodies="asked")
            try:
                offered = self._compiler.offered(state, profile)
                operations = narrow(offered) if narrow else offered
                moment = Moment(profile, limit, note, corrections, self._remembering.evidence())
                reply = await self._ask(state, moment, operations)
                return await self._read(reply, state, profile)
            except ToolsRefused:
                continue
            except PicturesRefused as problem:
                # What the user has just shown is the matter itself; what comes up in the work is not.
                if state.loop == 1 or unseen:
                    raise
                unseen = True
                self._emit(Noticed(what=said(problem)))
            except ReplyUnusable as problem:
                attempt += 1
                self._emit(ReplyRejected(reason=problem.correction, attempt=attempt))
                self._emit(StreamReset())
                if attempt > self._settings.reply_attempts:
                    raise
                form = "" if profile.native_tools else "JSON"
                corrections += self._compiler.correction(state.language, reply.text, problem.correction, form)

    async def _read(self, reply: Reply, state: AgentState, profile: ModelProfile) -> Reading:
        if reply.finish == "refusal" and not (reply.text.strip() or reply.calls):
            raise ProviderRefused("model.content_refused", model=state.model, detail="content_filter")
        operations = self._compiler.operations()
        if not profile.native_tools:
            return read_decision(reply.text, operations, reply.finish, state.phase)
        given = NativeReply(text=reply.text, calls=reply.calls, extra=dict(reply.extra))
        reading = read_native(given, reply.finish, operations, state)
        if reading.native is None:
            (await self.connection.ready()).forgo_tools()
        return reading

    async def warm(self, state: AgentState) -> None:
        """Connect before the first message, and let a model on this machine read the prompt's stable part already."""
        try:
            provider = await self.connection.ready()
            if self.connection.profile.local:
                stable = self._compiler.main(state, [], Moment(self.connection.profile))[:1]
                async with aclosing(closable(provider, Request(stable, max_tokens=1))) as chunks:
                    async for _ in chunks:
                        pass
        except DuckflowError as problem:
            self._emit(Noticed(what=said(problem)))

    async def _ask(self, state: AgentState, moment: Moment, operations: Sequence[Operation]) -> Reply:
        """A request that turns out too long is sent again with less history."""
        budget = await self.history_budget()
        steps = (Phase.EXECUTION,) if all(one.changes for one in operations) else STEPS
        profile = moment.profile
        inline, tools = profile.bodies == "inline", self._compiler.tools(state.language) if profile.native_tools else ()
        review = state.phase is Phase.REVIEW and not profile.compact
        schema = decision_schema(operations, inline, not profile.compact, profile.several_actions, steps, review)
        room = min(self._settings.inline_tokens, profile.window // 4) if inline else self._settings.decision_tokens
        for shrink in range(SHRINKS + 1):
            history = self._remembering.history(budget >> shrink)
            messages = self._compiler.main(state, history, moment)
            request = Request(messages, None if tools else schema, room, tools=tools)
            self._remembering.sent(request)
            try:
                heard = partial(LiveReply, self._detectors, self._compiler.operations(), bool(tools))
                reply = await self.connection.call(request, heard, "say" if self._streams else "")
            except ContextTooLong:
                if shrink == SHRINKS:
                    raise
            else:
                self._remembering.learn(reply.prompt_tokens)
                return reply
        raise ContextTooLong("model.context_too_long")

    async def weighed(self, state: AgentState) -> tuple[Layer, ...]:
        """The parts of the next request with their tokens."""
        history = self._remembering.shown(await self.history_budget())
        return self._compiler.weighed(state, history, Moment(await self.connection.ready_profile()))

    async def history(self, state: AgentState, actor: Actor) -> list[Message]:
        """The conversation as far as it fits; for a step of a plan what that has brought, and nothing else."""
        budget, job = await self.history_budget(), state.jobs.get(actor.job_id)
        if job is None:
            return self._remembering.shown(budget)
        return self._remembering.history_of_step([one for one in job.messages if one.step == actor.step_id], budget)

    async def history_budget(self) -> int:
        profile = await self.connection.ready_profile()
        return self._memory.budget(profile.window, profile.compact)
