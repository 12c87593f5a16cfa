"""What hooks say to single actions: before them they may refuse, change or ask, after them they may object."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.gatekeeper import Ready
from duckflow.agent.hooks import Hooks
from duckflow.errors import ToolError
from duckflow.events.types import Noticed
from duckflow.i18n.template import note
from duckflow.state.action import Action, subject_of
from duckflow.state.phrase import say
from duckflow.tools.tool import Done

if TYPE_CHECKING:
    from duckflow.extensions.hook_run import HookReply


class CheckedByHooks(NamedTuple):
    """What may go on to the Gate, and what was refused, with the reason."""

    ready: list[Ready]
    refused: list[tuple[Action, ToolError]]


class ToolHooks:
    """A hook can tighten. That one loosens what the Gate asks needs the user's own settings."""

    def __init__(self, hooks: Hooks, language: Callable[[], str]) -> None:
        self._hooks = hooks
        self._language = language
        self._contexts: dict[str, str] = {}
        """What the model is to be told with a result, by its action."""

    async def check(self, ready: Sequence[Ready], prepare: Callable[[Action], Ready], actor: Actor) -> CheckedByHooks:
        """Before the Gate, so that it shows what really runs."""
        if not self._hooks.there_are("PreToolUse"):
            return CheckedByHooks(list(ready), [])
        checked = CheckedByHooks([], [])
        for one in ready:
            reply = await self._tell("PreToolUse", one, {})
            self._stop(reply, actor)
            if reply.decision == "deny" or reply.stops:
                checked.refused.append((one.action, self._refusal(one, reply.reason)))
                continue
            try:
                checked.ready.append(self._as_wanted(one, reply, prepare, actor))
            except (ToolError, OSError) as problem:
                checked.refused.append((one.action, self._refusal(one, str(problem))))
        return checked

    def tell_with(self, action_id: str, *told: str) -> None:
        """What the model is to learn with the result: what was done is not just what it proposed."""
        if lines := [line for line in (self._contexts.get(action_id, ""), *told) if line]:
            self._contexts[action_id] = "\n".join(lines)

    async def after(self, one: Ready, outcome: Done, actor: Actor) -> Done:
        """The result, with what hooks have to say to it."""
        told = [self._contexts.pop(one.action.action_id, "")]
        if one.tool.effect != "talk" and self._hooks.there_are("PostToolUse"):
            from duckflow.extensions.tool_shapes import tool_response

            given = tool_response(one.action.operation, outcome.for_model, one.action.args, self._hooks.folder)
            reply = await self._tell("PostToolUse", one, {"tool_response": given})
            self._stop(reply, actor)
            if reply.decision == "deny":
                told.append(self._note("hook_objects", reason=reply.reason))
            told.append(reply.context)
        more = "\n".join(filter(None, told))
        return outcome._replace(for_model=f"{outcome.for_model}\n{more}") if more else outcome

    async def _tell(self, event: str, one: Ready, more: dict[str, Any]) -> "HookReply":
        from duckflow.extensions.tool_shapes import names_of, tool_input

        operation, args = one.action.operation, one.action.args
        names, given = names_of(operation), tool_input(operation, args, self._hooks.folder)
        about = {"tool_name": names[0], "tool_input": given, "tool_use_id": one.action.action_id, **more}
        return await self._hooks.tell(event, about, names, subject_of(args))

    def _as_wanted(self, one: Ready, reply: "HookReply", prepare: Callable[[Action], Ready], actor: Actor) -> Ready:
        context = [reply.context]
        if reply.updated is not None:
            from duckflow.extensions.tool_shapes import our_arguments

            operation = one.action.operation
            args = our_arguments(operation, one.action.args, reply.updated, Path(self._hooks.folder))
            if args != one.action.args:
                one = prepare(one.action.model_copy(update={"args": args}))
                actor.emit(Noticed(what=say("hook.changed", operation=operation, subject=subject_of(args))))
                context.append(self._note("hook_changed", args=str(args)))
        self.tell_with(one.action.action_id, *context)
        if reply.decision == "ask":
            return one._replace(asks=say("hook.asks", reason=reply.reason))
        return one._replace(allowed=reply.decision == "allow" and self._hooks.settings.may_allow)

    def _stop(self, reply: "HookReply", actor: Actor) -> None:
        if reply.stops and actor.follows_steps:
            self._hooks.stopped = reply.reason

    def _refusal(self, one: Ready, reason: str) -> ToolError:
        operation = one.action.operation
        return ToolError(self._note("hook_refuses", reason=reason), "hook.refused", operation=operation, reason=reason)

    def _note(self, key: str, **values: str) -> str:
        return note(self._language(), key, **values)
