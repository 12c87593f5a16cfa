"""What a tool is."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from duckflow.safety.risk import Deed
from duckflow.state.action import Operation
from duckflow.state.phrase import Phrase
from duckflow.state.question import Preview
from duckflow.tools.pausing import PauseControl


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


@dataclass(frozen=True, slots=True)
class CallContext:
    """In whose name a tool runs: what pauses it, and where its output is shown (with how many lines were left out)."""

    pause: PauseControl
    show: Callable[[str, int], None]


class Tool(ABC, Generic[A]):
    """One operation. It returns Done or raises ToolError; both reach the model as a result."""

    operation: ClassVar[str]
    changes: ClassVar[bool] = False
    body: ClassVar[str] = ""
    untold: ClassVar[frozenset[str]] = frozenset()
    """Arguments that are understood but not told of: every word of a prompt is paid for in every call."""
    asked_for: ClassVar[frozenset[str]] = frozenset()
    """Arguments with a default that the model is asked for all the same: tools of one shape share it in the schema."""
    args: type[A]

    @abstractmethod
    async def run(self, args: A) -> Done: ...

    async def run_for(self, args: A, call: CallContext) -> Done:
        """As `run`, in somebody's name. Tools that start something which runs by itself override this."""
        return await self.run(args)

    async def get_ready(self) -> None:
        """What takes time and has to be there before the call can be judged. Tools that need it override this."""

    def preview(self, args: A) -> Preview:
        """What `run` would do. Tools that change something override this."""
        return Preview()

    def reads_only(self, args: A) -> bool:
        """Whether this call changes nothing."""
        return not self.changes

    def touches(self, args: A) -> tuple[str, ...]:
        """The paths that may change, so that they can be kept before."""
        return tuple(str(value) for name in ("path", "source", "target") if (value := getattr(args, name, "")))

    def command(self, args: A) -> str:
        """The shell command, where there is one."""
        return ""

    def editable(self, args: A) -> str:
        """The argument a person may edit before it is done, or nothing."""
        return self.body

    def standing(self, args: dict[str, Any]) -> str:
        """The text that a body would replace, where there is one and it is short enough to be shown."""
        return ""

    def deed(self, args: A, preview: Preview) -> Deed:
        """What the call would do, for the risk to be computed from."""
        changes = not self.reads_only(args)
        path = "" if changes else str(getattr(args, "path", ""))
        return Deed(changes=changes, impacts=preview.impacts, diff=preview.diff, reads=path)

    def describe(self) -> Operation:
        schema = self.args.model_json_schema()
        told = {name: field for name, field in schema.get("properties", {}).items() if name not in self.untold}
        required = [name for name in told if name in self.asked_for or name in schema.get("required", ())]
        parameters = {**schema, "properties": told, **({"required": required} if required else {})}
        return Operation(name=self.operation, parameters=parameters, changes=self.changes, body=self.body)


AnyTool = Tool[Any]
