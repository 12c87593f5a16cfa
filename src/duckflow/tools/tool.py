"""The base class of tools. A tool describes itself completely; other code asks the tool, or the Operation that it
describes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from duckflow.clock import PauseControl
from duckflow.safety.risk import Deed
from duckflow.state.action import CHANGING, Action, Effect, Operation, PlanMoment, StepKind, all_names
from duckflow.state.checks import CheckReport
from duckflow.state.data import Phrase, say
from duckflow.state.picture import Picture
from duckflow.state.question import Preview

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
    """The arguments of a tool. An argument that the tool does not know is an error, which the model is told."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


A = TypeVar("A", bound=Args)


class Done(NamedTuple):
    """The result of a tool: a text for the model, a phrase for people, the files that changed, and pictures."""

    for_model: str
    for_user: Phrase
    changed: tuple[str, ...] = ()
    ok: bool = True
    pictures: tuple[Picture, ...] = ()
    check: CheckReport | None = None
    """The report of a run of tests or of another check."""
    declined: Literal["", "refused", "wished"] = ""
    """The user was asked by the tool itself, and said no, or wants something else first. The call did not fail, but
    what comes after it in the same reply is not run."""


class ChangeLimit(NamedTuple):
    """The limit of a user's yes: the files and folders that may be changed in the work folder, and a note for the model
    in case a command fails because of it."""

    names: tuple[str, ...]
    note: str = ""

    @property
    def shown(self) -> str:
        return ", ".join(self.names) or "-"


class CallContext(NamedTuple):
    """The context of one call: a control that can pause the call, a function that shows its output (with the number of
    lines left out), and the limit of what the call may change, if there is one."""

    pause: PauseControl
    show: Callable[[str, int], None]
    limit: ChangeLimit | None = None

    @classmethod
    def alone(cls) -> "CallContext":
        """Returns a context in which nobody pauses the call and nobody sees its output."""

        def show(text: str, left_out: int) -> None:
            """Shows nothing."""

        return cls(PauseControl(), show)


class Tool(ABC, Generic[A]):
    """One operation. It returns Done or raises ToolError; both reach the model as a result.

    The attributes that are set in a class's body may also be set for one instance, as outside tools do."""

    operation: str
    effect: Effect
    told: Mapping[str, str] | None = None
    """The description for the model, by language, of a tool that is not built in. The texts of built-in tools are in
    i18n (`tools.json`). They are short, because every call to the model pays for them."""
    more: str = ""
    """A part of the description that is known only at run time, such as names."""
    args: type[A]
    body: str = ""
    """Name of the argument that is sent outside the JSON; empty if there is none."""
    untold: frozenset[str] = frozenset()
    """Arguments that are accepted but not described to the model: every call pays for each word of the prompt."""
    asked_for: frozenset[str] = frozenset()
    """Arguments that have a default but are required in the schema, so that tools with the same arguments share one
    schema."""
    says: str = ""
    """Name of the argument that is shown to the user while it streams in; empty if there is none."""
    paths: tuple[str, ...] = ()
    """Names of the arguments that hold the files a call may change. A tool that names none here, but writes or runs
    commands, may change any file."""
    subject: tuple[str, ...] = ()
    """Names of the arguments that say what a call is about; the first one with a value counts."""
    known_as: str = ""
    """The name of the same tool in other assistants; hooks and kinds of agents written for them use it."""
    hook_args: Mapping[str, str] = MappingProxyType({})
    """The arguments that hooks may change, with the names that hooks use for them. Empty means all, by their own
    names."""
    makes: tuple[str, ...] | None = None
    """Names of the arguments in `paths` whose files exist after the call. None means all of them."""
    expects: Literal["", "there", "file", "folder"] = ""
    """The target that `path` must name in a planned task: something that exists, or a file or folder to be made."""
    when: tuple[PlanMoment, ...] = ()
    """The stages of planning at which the tool is offered to the model; empty means always."""
    led: bool = False
    """True if the tool is offered to a small model. Such a model does better with few operations."""
    rare: bool = False
    in_tasks: bool | None = None
    """True if a background task may use the tool. None means that tasks may use it unless it talks or plans."""
    led_in_tasks: bool = False
    """True if a small model may plan tasks with the tool."""
    outside: bool = False
    """True if the tool is somebody else's program outside of the sandbox. The user is asked about it in every mode,
    unless a rule covers it."""
    said: str = ""
    """The description and schema that somebody else's tool gives of itself. A rule for the tool holds only while this
    text stays the same."""
    allowed: bool = False
    """True if the user's settings allow the tool without a question."""
    counts_as: StepKind | None = None
    """The kind of step that the Pacemaker (the limits on steps and progress) counts a call as. None means that the
    effect of the call decides."""

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
        """Runs the call within its context. Tools that start a command or an agent override this."""
        return await self.run(args)

    async def get_ready(self, calls: Sequence[Mapping[str, Any]] = ()) -> None:
        """Does slow preparations before these calls (given by their raw arguments) are judged. Tools that need
        preparations override this."""

    def preview(self, args: A) -> Preview:
        """Returns a preview of what `run` would do. Tools that change something override this."""
        return Preview()

    def doing(self, args: A) -> Phrase | None:
        """Returns the phrase that people see while the call runs. An outside tool is known by its name only."""
        if self.effect == "talk":
            return None
        return say("wait.action", operation=self.operation) if self.outside else say(f"wait.effect.{self.effect}")

    def asks(self, args: A, language: str) -> bool:
        """Says whether the call asks the user something, in the user's language. Nothing may run after such a call."""
        return False

    def reads_only(self, args: A) -> bool:
        """Says whether this call changes nothing."""
        return not self.changes

    def acts(self, args: A) -> bool:
        """Says whether this call does more than look at something or talk. Such a call waits while the user is
        asked."""
        only_looks_or_talks = self.effect in ("read", "talk") or (self.changes and self.reads_only(args))
        return self.goes_on(args) or not only_looks_or_talks

    def touches(self, args: A) -> tuple[str, ...]:
        """Returns the paths that the call may change, so that they can be saved before. An empty tuple means that they
        are unknown: then everything is saved."""
        return tuple(str(value) for name in self.paths if (value := getattr(args, name, "")))

    def places(self, args: A) -> tuple[str, ...]:
        """Returns the places to which these paths lead now. A call runs only where they are still the same as when the
        user was asked."""
        return ()

    def command(self, args: A) -> str:
        """Returns the shell command of the call; empty if it runs none."""
        return ""

    def target(self, args: A) -> str:
        """Returns the target of a call that a rule of the user could allow, such as a host. Files and commands have
        rules of their own. Empty means that there is no such target."""
        return ""

    def goes_on(self, args: A) -> bool:
        """Says whether the command still runs when the call is over."""
        return False

    def keeps_limits(self, args: A) -> bool:
        """Says whether the limit of a user's yes surely holds for this call. It does for a tool whose preview shows
        every file that it changes."""
        return self.effect != "run"

    def editable(self, args: A) -> str:
        """Returns the name of the argument that a person may edit before the call runs; empty if there is none."""
        return self.body

    def proposed(self, args: A) -> str:
        """Returns the value of the editable argument as a text."""
        return str(getattr(args, self.editable(args), ""))

    def has_body(self, args: Mapping[str, Any]) -> bool:
        """Says whether the argument `body` already came inside the JSON."""
        return self.body in args

    def standing(self, args: dict[str, Any]) -> str:
        """Returns the current text that the argument `body` would replace, if there is one and it is short enough to be
        shown."""
        return ""

    def deed(self, args: A, preview: Preview) -> Deed:
        """Returns a description of what the call would do, from which the risk is computed."""
        effect = "read" if self.changes and self.reads_only(args) else self.effect
        path = "" if effect in CHANGING else str(getattr(args, "path", ""))
        return Deed(effect, impacts=preview.impacts, diff=preview.diff, reads=path)

    def meant(self, action: Action) -> Action:
        """Returns the action that the call really means: the given action, or a call of another tool if this tool only
        passes calls on to others."""
        return action

    def for_hooks(self, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Returns the arguments of a call in the form that hooks expect."""
        return {self.hook_args.get(name, name): value for name, value in args.items()}

    def from_hooks(self, args: Mapping[str, Any], updated: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Returns the arguments with the changes of a hook. Arguments that the hook leaves out stay."""
        if not self.hook_args:
            return {**args, **updated}
        return {
            **args,
            **{name: updated[hook_name] for name, hook_name in self.hook_args.items() if hook_name in updated},
        }

    def result_for_hooks(self, text: str, args: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Returns the result of a call in the form that hooks expect."""
        return {"success": True, "content": text}

    def describe(self) -> Operation:
        """Returns everything about the tool that is the same for every call."""
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
        """Returns the JSON schema of the arguments that are described to the model."""
        schema = self.args.model_json_schema()
        properties = {name: field for name, field in schema.get("properties", {}).items() if name not in self.untold}
        required = [name for name in properties if name in self.asked_for or name in schema.get("required", ())]
        return {**schema, "properties": properties, **({"required": required} if required else {})}


AnyTool = Tool[Any]
