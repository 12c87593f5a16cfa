"""Thinking: from state to the next Decision, with bounded tries."""

from duckflow.agent.calls import Caller, Reply
from duckflow.agent.settings import AgentSettings
from duckflow.errors import ContextTooLong, ReplyUnusable
from duckflow.events.ports import Emit
from duckflow.events.types import ReplyRejected, StreamReset
from duckflow.llm.decision import Reading, read_decision
from duckflow.llm.partial import LiveText
from duckflow.llm.provider import Request
from duckflow.llm.schema import decision_schema
from duckflow.memory.bubble import view
from duckflow.memory.settings import MemorySettings
from duckflow.prompts.compile import Compiler, Moment
from duckflow.state.agent import AgentState
from duckflow.state.message import Message
from duckflow.state.operation import Operation
from duckflow.state.prompt import PromptMessage

SHRINKS = 2


class Thinker:
    """Asks the model for a Decision; a bad reply goes back with the exact reason."""

    def __init__(
        self,
        caller: Caller,
        compiler: Compiler,
        operations: tuple[Operation, ...],
        emit: Emit,
        settings: tuple[AgentSettings, MemorySettings],
    ) -> None:
        self._caller = caller
        self._compiler = compiler
        self._operations = operations
        self._schema = decision_schema(operations)
        self._emit = emit
        self._settings, self._memory = settings

    async def decide(self, state: AgentState, limit: int, note: str) -> Reading:
        corrections: tuple[PromptMessage, ...] = ()
        attempt = 0
        while True:
            reply = await self._ask(state, Moment(limit, note, corrections))
            try:
                return read_decision(reply.text, self._operations, reply.finish)
            except ReplyUnusable as problem:
                attempt += 1
                self._emit(StreamReset())
                self._emit(ReplyRejected(reason=problem.correction, attempt=attempt))
                if attempt > self._settings.reply_attempts:
                    raise
                corrections += self._compiler.correction(reply.text, problem.correction)

    async def _ask(self, state: AgentState, moment: Moment) -> Reply:
        """A request that turns out too long is sent again with less history."""
        budget = self.history_budget()
        for shrink in range(SHRINKS + 1):
            history = view(state.messages, budget >> shrink)
            messages = self._compiler.main(state, history, moment)
            request = Request(messages, schema=self._schema, max_tokens=self._settings.decision_tokens)
            try:
                return await self._caller.call(request, LiveText, "say")
            except ContextTooLong:
                if shrink == SHRINKS:
                    raise
        raise ContextTooLong("model.context_too_long")

    def history(self, state: AgentState) -> list[Message]:
        return view(state.messages, self.history_budget())

    def history_budget(self) -> int:
        window = self._caller.provider.window
        return min(self._memory.budget_tokens, int(window * self._memory.window_share))
