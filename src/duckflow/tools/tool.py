"""What a tool is."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from duckflow.state.operation import Operation
from duckflow.state.phrase import Phrase
from duckflow.state.question import Preview


class Args(BaseModel):
    """Arguments of a tool. What the tool does not know is an error the model hears of."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


A = TypeVar("A", bound=Args)


@dataclass(frozen=True, slots=True)
class Done:
    """What a tool brought: a text for the model, a phrase for people, and which files changed."""

    for_model: str
    for_user: Phrase
    changed: tuple[str, ...] = ()
    ok: bool = True


class Tool(ABC, Generic[A]):
    """One operation. It returns Done or raises ToolError; both reach the model as a result."""

    operation: ClassVar[str]
    changes: ClassVar[bool] = False
    body: ClassVar[str] = ""
    args: type[A]

    @abstractmethod
    async def run(self, args: A) -> Done: ...

    def preview(self, args: A) -> Preview:
        """What `run` would do. Tools that change something override this."""
        return Preview()

    def describe(self) -> Operation:
        return Operation(
            name=self.operation, parameters=self.args.model_json_schema(), changes=self.changes, body=self.body
        )


AnyTool = Tool[Any]
