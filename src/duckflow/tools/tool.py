"""What a tool is. It says all there is to say about itself; everybody else asks it, or the Operation it describes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from duckflow.safety.risk import Deed
from duckflow.state.action import CHANGING, Action, Effect, Operation, PlanMoment, StepKind, all_names
from duckflow.state.checks import CheckReport
from duckflow.state.phrase import Phrase, say
from duckflow.state.picture import Picture
from duckflow.state.question import Preview
from duckflow.tools.pausing import PauseControl

KINDS: Mapping[Effect, StepKind] = {
    "read": "read",
    "write": "edit",
    "run": "run",
    "network": "search",
    "talk": "talk",
    "plan": "other",
    "memory": "edit",
}


class Args(BaseModel):
    """Arguments of a tool. What the tool does not know is an error the model hears of."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


A = TypeVar("A", bound=Args)


class Done(NamedTuple):
    """What a tool brought: a text for the model, a phrase for people, which files changed, and what is to be seen."""

    for_model: str
    for_user: Phrase
    changed: tuple[str, ...] = ()
    ok: bool = True
    pictures: tuple[Picture, ...] = ()
    check: CheckReport | None = None
    """The report of a run of tests or of another check."""


class CallContext(NamedTuple):
    """In whose name a tool runs: what pauses it, and where its output is shown (with how many lines were left out)."""

    pause: PauseControl
    show: Callable[[str, int], None]

    @classmethod
    def alone(cls) -> "CallContext":
        """Where nobody pauses it and nobody looks."""

        def show(text: str, left_out: int) -> None:
            """Nowhere."""

        return cls(PauseControl(), show)


class Tool(ABC, Generic[A]):
    """One operation. It returns Done or raises ToolError; both reach the model as a result.

    What is set here in a class's body may be set for one instance as well: outside tools do so."""

    operation: str
    effect: Effect
    told: Mapping[str, str] | None = None
    """What the model is told of a tool that is not ours, by language. Our own texts stand in i18n (`tools.json`): a few
    words, paid for in every call."""
    more: str = ""
    """A part of that text that is known only while it runs, such as names."""
    args: type[A]
    body: str = ""
    """The argument that travels outside the JSON, or nothing."""
    untold: frozenset[str] = frozenset()
    """Arguments that are understood but not told of: every word of a prompt is paid for in every call."""
    asked_for: frozenset[str] = frozenset()
    """Arguments with a default that the model is asked for all the same: tools of one shape share it in the schema."""
    says: str = ""
    """The argument that is shown to the user while it streams in, or nothing."""
    paths: tuple[str, ...] = ()
    """The arguments that hold the files it may change. A write or run without any may change all."""
    subject: tuple[str, ...] = ()
    """The arguments that say what a call is about; the first that is given counts."""
    known_as: str = ""
    """The name of the same tool in other assistants, by which their hooks and kinds of agents mean it."""
    hook_args: Mapping[str, str] = MappingProxyType({})
    """Its arguments that hooks may change, with the names by which hooks know them; none: all, by their own names."""
    makes: tuple[str, ...] | None = None
    """Those of them that are there afterwards; not said: all."""
    expects: Literal["", "there", "file", "folder"] = ""
    """What `path` must name in a planned task: something that is there, or a file or folder to be made."""
    when: tuple[PlanMoment, ...] = ()
    """At which moments of a plan the model is told of it; empty: always."""
    led: bool = False
    rare: bool = False
    """Whether a small model is told of it: it does better with few operations."""
    in_tasks: bool | None = None
    """Whether a background task may use it; not said: unless it talks or plans."""
    led_in_tasks: bool = False
    """Whether a small model may plan tasks with it."""
    outside: bool = False
    said: str = ""
    """All that somebody else's tool says of itself. A rule for it holds while this stays the same."""
    """It is a program of somebody else's, outside of the sandbox: asked for in every mode, unless a rule covers it."""
    allowed: bool = False
    """The user's settings are such a rule."""
    counts_as: StepKind | None = None
    """What the Pacemaker counts a call as; not said: by its effect."""

    @property
    def names(self) -> tuple[str, ...]:
        return all_names(self.operation, self.known_as)

    @property
    def changes(self) -> bool:
        return self.effect in CHANGING

    @property
    def step_kind(self) -> StepKind:
        return self.counts_as or KINDS[self.effect]

    @abstractmethod
    async def run(self, args: A) -> Done: ...

    async def run_for(self, args: A, call: CallContext) -> Done:
        """As `run`, in somebody's name. Tools that start something which runs by itself override this."""
        return await self.run(args)

    async def get_ready(self, calls: Sequence[Mapping[str, Any]] = ()) -> None:
        """Does what takes time before these calls, given by their raw arguments, can be judged. Tools that need it
        override this."""

    def preview(self, args: A) -> Preview:
        """What `run` would do. Tools that change something override this."""
        return Preview()

    def doing(self, args: A) -> Phrase | None:
        """How the call is told to people while it runs."""
        return None if self.effect == "talk" else say("wait.action", operation=self.operation)

    def asks(self, args: A, language: str) -> bool:
        """Whether the call puts a question to the user, who speaks this language: then nothing may run after it."""
        return False

    def reads_only(self, args: A) -> bool:
        """Whether this call changes nothing."""
        return not self.changes

    def acts(self, args: A) -> bool:
        """Whether this call does more than look at something or talk: then it waits while the user is asked."""
        looks = self.effect in ("read", "talk") or (self.changes and self.reads_only(args))
        return self.goes_on(args) or not looks

    def touches(self, args: A) -> tuple[str, ...]:
        """The paths that may change, so that they can be kept before; none: it cannot be told, all are kept."""
        return tuple(str(value) for name in self.paths if (value := getattr(args, name, "")))

    def command(self, args: A) -> str:
        """The shell command, where there is one."""
        return ""

    def target(self, args: A) -> str:
        """What a rule would allow where that is neither files nor a command: a host. Nothing: no such rule."""
        return ""

    def goes_on(self, args: A) -> bool:
        """Whether it still runs when the call is over."""
        return False

    def editable(self, args: A) -> str:
        """The argument a person may edit before it is done, or nothing."""
        return self.body

    def proposed(self, args: A) -> str:
        """What stands in that argument, as a text."""
        return str(getattr(args, self.editable(args), ""))

    def has_body(self, args: Mapping[str, Any]) -> bool:
        """Whether the raw text already came inside the JSON."""
        return self.body in args

    def standing(self, args: dict[str, Any]) -> str:
        """The text that a body would replace, where there is one and it is short enough to be shown."""
        return ""

    def deed(self, args: A, preview: Preview) -> Deed:
        """What the call would do, for the risk to be computed from."""
        effect = "read" if self.changes and self.reads_only(args) else self.effect
        path = "" if effect in CHANGING else str(getattr(args, "path", ""))
        return Deed(effect, impacts=preview.impacts, diff=preview.diff, reads=path)

    def meant(self, action: Action) -> Action:
        """The action that a call of this tool stands for: another one, where tools are called by name."""
        return action

    def for_hooks(self, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """The arguments of a call as hooks expect them."""
        return {self.hook_args.get(name, name): value for name, value in args.items()}

    def from_hooks(self, args: Mapping[str, Any], updated: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """The arguments with what a hook has put in their place. What the hook leaves out stays."""
        if not self.hook_args:
            return {**args, **updated}
        return {**args, **{name: updated[their] for name, their in self.hook_args.items() if their in updated}}

    def result_for_hooks(self, text: str, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """What a call brought as hooks expect it."""
        return {"success": True, "content": text}

    def describe(self) -> Operation:
        """All of it that is the same for every call."""
        return Operation(
            name=self.operation,
            parameters=self.parameters(),
            effect=self.effect,
            kind=self.step_kind,
            told=dict(self.told or {}),
            more=self.more,
            body=self.body,
            says=self.says,
            paths=self.paths,
            subject=self.subject,
            known_as=self.known_as,
            makes=self.paths if self.makes is None else self.makes,
            expects=self.expects,
            when=self.when,
            led=self.led,
            rare=self.rare,
            in_tasks=self.effect not in ("talk", "plan") if self.in_tasks is None else self.in_tasks,
            led_in_tasks=self.led_in_tasks,
        )

    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments that the model is told of."""
        schema = self.args.model_json_schema()
        told = {name: field for name, field in schema.get("properties", {}).items() if name not in self.untold}
        required = [name for name in told if name in self.asked_for or name in schema.get("required", ())]
        return {**schema, "properties": told, **({"required": required} if required else {})}


AnyTool = Tool[Any]
