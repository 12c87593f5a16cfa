"""The tool that hands a task to an agent with a context of its own."""

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Protocol

from pydantic import Field, field_validator

from duckflow.state.action import RUN_AGENT, looks_only
from duckflow.state.data import Phrase, say, shorten
from duckflow.tools.tool import Args, Done, Tool

SHOWN = 60


class AgentArgs(Args):
    task: str = Field(min_length=1)
    kind: str = "explore"
    files: list[str] = Field(default_factory=list[str])

    @field_validator("files")
    @classmethod
    def _names_files(cls, files: list[str]) -> list[str]:
        if not all(name.strip() for name in files):
            raise ValueError("each of files must name a file or a folder")
        return files


class RunsAgents(Protocol):
    """Runs an agent to its end and returns its report."""

    async def run(self, task: str, kind: str, files: Sequence[str]) -> Done: ...


class AgentRun(Tool[AgentArgs]):
    """Runs an agent. Several such calls in a row run at the same time, as calls that only read do. This is safe because
    each action of the agent passes the Gate (the question before risky actions) by itself."""

    operation = RUN_AGENT
    effect = "read"
    known_as = "Task"
    hook_args = MappingProxyType({"task": "prompt", "kind": "subagent_type"})
    counts_as = "other"
    in_tasks = False
    asked_for = frozenset({"kind"})
    args = AgentArgs

    def __init__(self, agents: Callable[[], RunsAgents]) -> None:
        """`agents` is a function that returns the runner of agents. It is called only when an agent is to be run."""
        self._agents = agents

    def acts(self, args: AgentArgs) -> bool:
        return not looks_only(self.operation, self.effect, {"kind": args.kind})

    def doing(self, args: AgentArgs) -> Phrase | None:
        return say("agent.works", kind=args.kind, task=shorten(args.task, SHOWN))

    async def run(self, args: AgentArgs) -> Done:
        return await self._agents().run(args.task, args.kind.strip(), args.files)
