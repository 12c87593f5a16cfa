"""Decides which actions of a list go together, and which of them can be done now."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise, takewhile
from typing import NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.gatekeeper import Ready
from duckflow.errors import DuckflowError, ToolError
from duckflow.i18n.asking import ends_asking
from duckflow.state.action import EXIT, RESPOND, Action, Decision
from duckflow.tools.tool import AnyTool, Args, Done
from duckflow.tools.toolbox import Toolbox

log = logging.getLogger(__name__)


class Prepared(NamedTuple):
    """The actions that can be done now, the actions that must wait, and the reason why the first of those must wait."""

    ready: list[Ready]
    later: list[Action]
    problem: ToolError | None


class Preparation:
    """Finds the tools of actions, checks their arguments, and makes their previews."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._checked: dict[str, tuple[Action, Args]] = {}
        """The actions whose arguments have been checked already, by id."""

    def part(self, actions: Sequence[Action]) -> list[Action]:
        """Returns the next actions that belong together: all neighbouring changes, or all neighbouring reads, or else a
        single action. The user is asked about them in one question. A file tool after a command is asked about when the
        command is over, because the command decides where the tool's path leads and what a file there does."""
        changes = list(takewhile(self.changes, actions))
        neighbours = enumerate(pairwise(changes), 1)
        end = next((index for index, pair in neighbours if not self._writes(pair[0]) and self._writes(pair[1])), None)
        reads = takewhile(lambda action: self.reads(action.operation), actions)
        return changes[:end] or list(reads) or list(actions[:1])

    async def in_order(self, decision: Decision, asks: bool, language: str) -> list[Action]:
        """Returns the actions in the order in which they run, with their tools ready. If the reply or a call asks the
        user something or waits for them, the question comes before the actions that change something."""
        self._checked.clear()
        actions = [self._toolbox.meant(action) for action in decision.actions]
        await self._toolbox.get_ready(actions)
        if not (asks or any(self.asks(action, language) for action in actions)):
            return actions
        if not (deeds := self.deeds(actions, language)):
            return actions
        other_actions, rationale = [action for action in actions if action not in deeds], decision.rationale
        if all(map(self.only_looks, other_actions)) and ends_asking(rationale, language):
            other_actions.append(Action(operation=RESPOND, args={"text": rationale}, reasoning=rationale))
        return [*other_actions, *deeds]

    def deeds(self, actions: Sequence[Action], language: str) -> list[Action]:
        """Returns the actions that do something, as opposed to talking. Showing a plan to the user counts as a
        question."""
        return [action for action in actions if self.acts(action) and not self.asks(action, language)]

    def asks(self, action: Action, language: str) -> bool:
        """Says whether the call asks the user something. A call that ends the conversation does not."""
        if (tool := self.tool(action.operation)) is None or action.operation == EXIT:
            return False
        try:
            return tool.asks(self._arguments(tool, action), language)
        except ToolError:
            return False

    def changes(self, action: Action) -> bool:
        if (tool := self.tool(action.operation)) is None:
            return False
        try:
            return not tool.reads_only(self._arguments(tool, action))
        except ToolError:
            # A call that still lacks its text is judged by its kind.
            return tool.changes

    def edits(self, operation: str) -> bool:
        """Says whether the operation only puts a text into a file."""
        tool = self.tool(operation)
        return tool is not None and bool(tool.body)

    def reads(self, operation: str) -> bool:
        tool = self.tool(operation)
        return tool is not None and tool.effect == "read"

    def _writes(self, action: Action) -> bool:
        tool = self.tool(action.operation)
        return tool is not None and tool.effect == "write"

    def acts(self, action: Action) -> bool:
        """Says whether the action does more than look at something or talk. Starting a job counts as more."""
        if (tool := self.tool(action.operation)) is None:
            return False
        try:
            return tool.acts(self._arguments(tool, action))
        except ToolError:
            # A call whose arguments are wrong is judged by its kind.
            return tool.effect not in ("read", "talk")

    def only_looks(self, action: Action) -> bool:
        """Says whether the action may run beside a question to the user."""
        tool = self.tool(action.operation)
        return tool is not None and tool.effect != "talk" and not self.acts(action)

    def tool(self, operation: str) -> AnyTool | None:
        try:
            return self._toolbox.find(operation)
        except ToolError:
            return None

    def prepare(self, part: Sequence[Action], lacking: Mapping[str, ToolError]) -> Prepared:
        """Prepares the actions in their order. An action that cannot be prepared now may need a change by an earlier
        one: it waits, and only edits of other files are still prepared after it. `lacking` says by action why its text
        is missing."""
        ready_calls: list[Ready] = []
        later_actions: list[Action] = []
        problem: ToolError | None = None
        for index, action in enumerate(part):
            if later_actions and not all(self.edits(edit.operation) for edit in (action, *later_actions)):
                return Prepared(ready_calls, later_actions + list(part[index:]), problem)
            if action.args.get("path") in [later_action.args.get("path") for later_action in later_actions]:
                later_actions.append(action)
                continue
            try:
                if earlier_problem := lacking.get(action.action_id):
                    raise earlier_problem
                ready_calls.append(self.ready(action))
            except (ToolError, OSError) as error:
                problem = problem or in_words(error)
                later_actions.append(action)
        return Prepared(ready_calls, later_actions, problem)

    def ready(self, action: Action) -> Ready:
        tool = self._toolbox.find(action.operation)
        args = self._arguments(tool, action)
        return Ready(action, tool, args, tool.preview(args), places=tool.places(args))

    def _arguments(self, tool: AnyTool, action: Action) -> Args:
        """Returns the checked arguments. They are checked once for each action object: when a text or the user changes
        an action, a new object is made."""
        action_and_arguments = self._checked.get(action.action_id)
        if action_and_arguments is None or action_and_arguments[0] is not action:
            action_and_arguments = self._checked[action.action_id] = action, self._toolbox.arguments(tool, action.args)
        return action_and_arguments[1]


def in_words(problem: Exception, operation: str = "") -> ToolError:
    """Returns what the model is told of a call that failed. A bug in the tool itself (Duckflow's or a plugin's) becomes
    a result like any other failure."""
    if isinstance(problem, ToolError):
        return problem
    if isinstance(problem, OSError):
        return ToolError(problem.strerror or str(problem))
    if isinstance(problem, DuckflowError):
        raise problem
    log.error("%s broke off", operation, exc_info=problem)
    reason = f"{type(problem).__name__}: {problem}"
    return ToolError(
        f"{operation} itself broke off ({reason}). Do it another way.", "tool.broke", operation=operation, reason=reason
    )


async def _read(call: Ready, actor: Actor) -> Done:
    """Carries out a read that was prepared before the user was asked about others: its path may lead elsewhere by
    now."""
    return await call.run(actor, None)


@asynccontextmanager
async def read_ahead(ready: Sequence[Ready], actor: Actor) -> AsyncGenerator[dict[str, asyncio.Task[Done]]]:
    """Starts the reads that come first at the same time. Their results are still reported in order."""
    await actor.wait_while_paused()
    read_calls = list(takewhile(lambda call: call.tool.effect == "read", ready))
    read_tasks = {
        call.action.action_id: asyncio.create_task(_read(call, actor))
        for call in (read_calls if len(read_calls) > 1 else ())
    }
    try:
        yield read_tasks
    finally:
        for task in read_tasks.values():
            task.cancel()
        await asyncio.gather(*read_tasks.values(), return_exceptions=True)
