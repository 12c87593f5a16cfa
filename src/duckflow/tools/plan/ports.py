"""The interfaces that the plan tools need from outside."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from duckflow.state.agent import Job


class Think(Protocol):
    """Asks the model with the prompt that `procedure` names. `failures` are the model's earlier replies, each with its
    fault."""

    async def __call__(
        self,
        procedure: str,
        values: Mapping[str, str],
        schema: dict[str, Any],
        failures: Sequence[tuple[str, str]],
    ) -> str: ...


class Jobs(Protocol):
    """The background worker, as tools see it. It raises a ToolError for a request that cannot be carried out."""

    def start(self, plan_id: str, step_ids: Sequence[str]) -> Job: ...

    async def pause(self, job_id: str) -> Job: ...

    async def resume(self, job_id: str) -> Job: ...

    async def cancel(self, job_id: str) -> Job: ...


class Approval(Protocol):
    """Takes the user's yes to a draft from the model. Raises a ToolError if the words are no yes."""

    async def pass_on(self, words: str, background: bool) -> str: ...
