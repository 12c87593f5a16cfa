"""Carries out specialised prompts: plans, tasks, reports."""

from collections.abc import Mapping, Sequence
from typing import Any

from duckflow.agent.bodies import Hidden
from duckflow.agent.connection import ModelConnection
from duckflow.errors import ReplyUnusable
from duckflow.llm.provider import Request
from duckflow.prompts.compile import Compiler
from duckflow.state.agent import AgentState


class Procedures:
    """The `think` port of the plan tools."""

    def __init__(self, state: AgentState, connection: ModelConnection, compiler: Compiler, max_tokens: int) -> None:
        self._state = state
        self._connection = connection
        self._compiler = compiler
        self._max_tokens = max_tokens

    async def think(
        self, procedure: str, values: Mapping[str, str], schema: dict[str, Any], failures: Sequence[tuple[str, str]]
    ) -> str:
        messages = self._compiler.procedure(self._state, procedure, dict(values), failures)
        room = max(256, min(self._max_tokens, (await self._connection.ready_profile()).window // 2))
        reply = await self._connection.call(Request(messages, schema=schema, max_tokens=room), Hidden, "body")
        if reply.finish == "refusal":
            raise ReplyUnusable("the model refused")
        return reply.text
