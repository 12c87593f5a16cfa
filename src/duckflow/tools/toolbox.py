"""All tools by name: the tools that talk, and groups of tools that are made when the first of a group is needed."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field, ValidationError

from duckflow.errors import ToolError
from duckflow.i18n.asking import ends_asking
from duckflow.state.action import Action, Operation, first_given
from duckflow.state.data import SAID, say
from duckflow.tools.tool import AnyTool, Args, Done, Tool


class ResponseArgs(Args):
    text: str = Field(min_length=1)


class Response(Tool[ResponseArgs]):
    """Says something to the user."""

    operation = "response"
    effect = "talk"
    says = "text"
    led = True
    args = ResponseArgs

    async def run(self, args: ResponseArgs) -> Done:
        return Done(for_model="shown to the user", for_user=say(SAID, text=args.text))

    def asks(self, args: ResponseArgs, language: str) -> bool:
        return ends_asking(args.text, language)


class DuckCallArgs(Args):
    text: str = Field(min_length=1, validation_alias=AliasChoices("text", "question"))
    choices: list[str] = Field(default_factory=list[str], max_length=4)


class DuckCallTool(Tool[DuckCallArgs]):
    """Stops the work and asks the user for help."""

    operation = "duck_call"
    effect = "talk"
    counts_as = "ask"
    says = "question"
    untold = frozenset({"choices"})
    args = DuckCallArgs

    async def run(self, args: DuckCallArgs) -> Done:
        numbered_choices = "".join(f"\n{number}. {choice}" for number, choice in enumerate(args.choices, 1))
        return Done(for_model="shown to the user", for_user=say(SAID, text=args.text + numbered_choices))

    def asks(self, args: DuckCallArgs, language: str) -> bool:
        return True


class ExitArgs(Args):
    text: str


class Exit(Tool[ExitArgs]):
    """Ends the session with a last message."""

    operation = "exit"
    effect = "talk"
    counts_as = "submit"
    says = "text"
    rare = True
    args = ExitArgs

    async def run(self, args: ExitArgs) -> Done:
        return Done(for_model="the session ends", for_user=say(SAID, text=args.text))

    def asks(self, args: ExitArgs, language: str) -> bool:
        """Returns True, so that nothing runs after the end."""
        return True


NEAR = 8
PACKAGED = Path(__file__).with_name("operations.json")
"""The descriptions of the packaged tools: describing the tools anew would cost time at every start. `make fix` writes
the file; a test compares it with the tools."""


@cache
def packaged_operations() -> tuple[Operation, ...]:
    rows: list[dict[str, Any]] = json.loads(PACKAGED.read_text(encoding="utf-8"))
    return tuple(Operation.model_construct(**row) for row in rows)


def talk_operations() -> frozenset[str]:
    """Returns the names of the operations that only say something to the user."""
    return frozenset(operation.name for operation in packaged_operations() if operation.effect == "talk")


class Toolbox:
    """Finds tools by name and checks their arguments; mistakes are reported to the model. Tools can be added and
    removed at run time."""

    def __init__(
        self, operations: Sequence[Operation], make: Callable[[str], Iterable[AnyTool]], later: Collection[str] = ()
    ) -> None:
        """`make` returns the tools of a group, such as `file_ops`. The operations in `later` can be called, but are
        offered to the model only after `tell`."""
        self._operations = {operation.name: operation for operation in operations if operation.name not in later}
        self._later = {operation.name: operation for operation in operations if operation.name in later}
        self._make = make
        self._groups: dict[str, dict[str, AnyTool]] = {}
        self._at_hand: dict[str, AnyTool] = {tool.operation: tool for tool in (Response(), DuckCallTool(), Exit())}
        self._untold = set(self._later)

    def group(self, name: str) -> tuple[AnyTool, ...]:
        """Returns the tools of a group, and makes them if they do not exist yet."""
        if name not in self._groups:
            self._groups[name] = {tool.operation: tool for tool in self._make(name)}
        return tuple(self._groups[name].values())

    def _made(self, operation: str) -> AnyTool | None:
        group_name = operation.partition(".")[0]
        self.group(group_name)
        return self._groups[group_name].get(operation)

    def operations(self) -> tuple[Operation, ...]:
        """Returns the operations that are offered to the model now."""
        return tuple(self._operations.values())

    def add(self, tool: AnyTool, told: bool = True) -> None:
        """Makes the tool callable; it replaces a tool of the same name. If `told` is False, the model must search for
        the tool first."""
        if told:
            self._operations[tool.operation] = tool.describe()
            self._untold.discard(tool.operation)
        else:
            self._operations.pop(tool.operation, None)
            self._untold.add(tool.operation)
        self._at_hand[tool.operation] = tool

    def tell(self, name: str) -> None:
        """Offers this operation to the model from now on."""
        if operation := self._later.pop(name, None):
            self._operations[name] = operation
            self._untold.discard(name)

    def tell_more(self, name: str, more: str) -> None:
        """Replaces the part of an operation's description that is known only at run time."""
        if operation := next((operation for operation in packaged_operations() if operation.name == name), None):
            self._operations[name] = operation.model_copy(update={"more": more})

    def remove(self, name: str) -> None:
        """Removes the operation of this name."""
        self._operations.pop(name, None)
        self._untold.discard(name)
        self._at_hand.pop(name, None)

    def at_hand(self) -> tuple[AnyTool, ...]:
        """Returns the tools that belong to no group."""
        return tuple(self._at_hand.values())

    def find(self, operation: str) -> AnyTool:
        is_known_operation = operation in self._operations or operation in self._untold
        if is_known_operation and (tool := self._at_hand.get(operation) or self._made(operation)):
            return tool
        import difflib

        # The error does not list all operations: the prompt does, and a short error is easier to recognize as one.
        similar_names = ", ".join(difflib.get_close_matches(operation, list(self._operations), n=NEAR, cutoff=0.0))
        raise ToolError(
            f"unknown operation {operation!r}. Valid operations, the nearest first: {similar_names}",
            "tool.unknown",
            operation=operation,
        )

    def meant(self, action: Action) -> Action:
        """Returns the action that the given action really means (a tool may only pass a call on to another tool), with
        the name of its main argument as the subject."""
        if tool := self._at_hand.get(action.operation):
            action = tool.meant(action)
        operation = action.operation
        known_operation = self._operations.get(operation) or self._later.get(operation) or self._at_hand.get(operation)
        subject = first_given(known_operation.subject, action.args) if known_operation else ""
        return action if subject == action.subject else action.model_copy(update={"subject": subject})

    async def get_ready(self, actions: Iterable[Action]) -> None:
        calls = dict[str, list[dict[str, Any]]]()
        for action in actions:
            calls.setdefault(action.operation, []).append(action.args)
        for operation in calls.keys() & self._operations.keys():
            await self.find(operation).get_ready(calls[operation])

    def arguments(self, tool: AnyTool, raw: dict[str, Any]) -> Args:
        """Checks the arguments and returns them as a model. A null for an optional argument is the same as leaving it
        out."""
        present_args = {name: value for name, value in raw.items() if value is not None}
        try:
            return tool.args.model_validate(present_args)
        except ValidationError as problem:
            mistakes = "; ".join(
                f"{'.'.join(map(str, error['loc'])) or 'args'}: {error['msg']}" for error in problem.errors()
            )
            known_names = ", ".join(tool.args.model_fields)
            raise ToolError(
                f"bad args for {tool.operation}: {mistakes}. It takes: {known_names}",
                "tool.bad_args",
                operation=tool.operation,
            ) from None
