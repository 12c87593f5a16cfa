"""The hooks of one conversation: which there are, which the user trusts, and what they make of events and actions."""

import asyncio
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from duckflow.agent.actor import Actor
from duckflow.agent.gatekeeper import Ready
from duckflow.agent.session import Session
from duckflow.agent.trust import Admission
from duckflow.errors import ToolError
from duckflow.events.ports import Ask
from duckflow.events.types import MessageAdded, Noticed, Waiting
from duckflow.extensions.places import HOME_HOOKS, PROJECT_HOOKS, ExtensionPlaces, HookSettings
from duckflow.i18n.template import note
from duckflow.safety.path_names import shown
from duckflow.state.action import Action
from duckflow.state.message import Message
from duckflow.state.mode import Mode
from duckflow.state.noun import shorten
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Choice, Question
from duckflow.store.paths import make_private
from duckflow.tools.tool import AnyTool, Done

if TYPE_CHECKING:
    from duckflow.extensions.hook_files import FoundHooks, Hook
    from duckflow.extensions.hook_run import HookReply
    from duckflow.extensions.transcript import HookTranscript


MODES = {Mode.ASK: "default", Mode.AUTO_EDIT: "acceptEdits", Mode.PLAN: "plan", Mode.FULL_AUTO: "bypassPermissions"}
LEAVING_SECONDS = 5.0


class TrustedHooks:
    """The digests of hooks that the user has said yes to, in a file of their own."""

    def __init__(self, kept_in: Path) -> None:
        self._kept_in = kept_in
        self._refused: set[str] = set()

    def __contains__(self, digest: str) -> bool:
        return digest in self._known()

    def refused(self, digest: str) -> bool:
        return digest in self._refused

    def refuse(self, digests: Iterable[str]) -> None:
        """Until the end of the session."""
        self._refused |= set(digests)

    def add(self, digests: Iterable[str]) -> None:
        known = sorted({*self._known(), *digests})
        self._kept_in.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._kept_in.with_suffix(".new")
        make_private(fresh)
        fresh.write_text(json.dumps(known, indent=1), encoding="utf-8")
        fresh.replace(self._kept_in)

    def _known(self) -> frozenset[str]:
        try:
            known: Any = json.loads(self._kept_in.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return frozenset()
        return frozenset(map(str, cast("list[Any]", known))) if isinstance(known, list) else frozenset()


class HookStanding(NamedTuple):
    """One hook for those who list them."""

    hook: "Hook"
    state: str
    """`own`: it stands in the user's own settings; `trusted`, `new`."""


class Hooks:
    """Tells them of events. Where there are none, nothing is loaded and every question is answered at once."""

    def __init__(
        self,
        session: Session,
        settings: HookSettings,
        places: ExtensionPlaces,
        admission: Admission,
        trusted: TrustedHooks,
        ask: Ask,
        mode: Callable[[], Mode],
    ) -> None:
        self.settings = settings
        self.stopped = ""
        """Why a hook wants the turn to end, if one does."""
        self.folder = places.folder
        self._session = session
        self._places = places
        self._admission = admission
        self._trusted = trusted
        self._ask = ask
        self._mode = mode
        self._found: FoundHooks | None = None
        self._with_folder = False
        self._transcript: HookTranscript | None = None
        self._begun = False
        self._looked = False
        self._asking = asyncio.Lock()
        self._behind: set[asyncio.Task[Any]] = set()

    def there_are(self, event: str) -> bool:
        return self._found is not None and any(hook.event == event for hook in self._found.hooks)

    async def get_ready(self) -> None:
        """When a turn begins and the folder has been asked about: new ones are asked about, the session has begun."""
        first, self._looked = not self._looked, True
        if self._found is None or self._with_folder != self._admission.trusted:
            self._with_folder = self._admission.trusted
            self._found = self._find(self._with_folder)
            if self._found is None:
                return
            for problem in self._found.problems:
                self._session.emit(Noticed(what=problem))
            await self._ask_about(self._found.hooks, changed=not first)
        if not self._begun:
            self._begun = True
            source = "resume" if self._session.state.turn else "startup"
            reply = await self.tell("SessionStart", {"source": source}, (source,))
            self.bring("SessionStart", reply.context)

    async def tell(
        self, event: str, about: Mapping[str, Any], names: tuple[str, ...] = (), subject: str = ""
    ) -> "HookReply":
        """All that listen are told at once; the strictest counts. Problems and words for the user are shown."""
        from duckflow.extensions.hook_run import HookReply, hook_environment, run_hook

        hooks = [one for one in self._found.hooks if one.event == event] if self._found else []
        hooks = [hook for hook in hooks if hook.matches(names, subject) and await self._may_run(hook)]
        if not hooks:
            return HookReply()
        told = {**self._common(event), **about}
        environment = hook_environment(os.environ, self.settings.environment, self.folder)
        for hook in hooks:
            if not hook.waits:
                task = asyncio.create_task(run_hook(hook, told, environment))
                self._behind.add(task)
                task.add_done_callback(self._behind.discard)
        waiting = [hook for hook in hooks if hook.waits]
        if waiting:
            self._session.emit(Waiting(why=say("wait.hook", command=shorten(waiting[0].shown, 80))))
        replies = await asyncio.gather(*(run_hook(hook, told, environment) for hook in waiting))
        for reply in replies:
            if reply.problem:
                self._session.emit(Noticed(what=reply.problem))
            if reply.message:
                self._session.emit(Noticed(what=say("hook.says", text=reply.message)))
        return _together(replies)

    def bring(self, event: str, context: str) -> None:
        """What a hook wants the model to know: as a quotation."""
        if context:
            turn = self._session.state.turn
            message = Message(role="tool", operation=f"hook {event}", text=context, turn=turn)
            self._session.emit(MessageAdded(message=message))

    def standing(self) -> tuple[list[HookStanding], tuple[Phrase, ...]]:
        """All there are now, and what is wrong with some; nothing is asked and nothing is run."""
        found = self._find(self._admission.trusted or self._places.trusted_before)
        if found is None:
            return [], ()
        states = [
            HookStanding(hook, "own" if not hook.source else "trusted" if hook.digest() in self._trusted else "new")
            for hook in found.hooks
        ]
        return states, found.problems

    async def aclose(self) -> None:
        """The session is over. Nobody waits long for that."""
        if self._begun and self.there_are("SessionEnd"):
            try:
                async with asyncio.timeout(LEAVING_SECONDS):
                    await self.tell("SessionEnd", {"reason": "other"}, ("other",))
            except TimeoutError:
                self._session.emit(Noticed(what=say("hook.too_slow", command="SessionEnd", seconds=LEAVING_SECONDS)))
        for task in list(self._behind):
            task.cancel()
        await asyncio.gather(*self._behind, return_exceptions=True)

    def _find(self, with_folder: bool) -> "FoundHooks | None":
        files = (*((self._places.home, name) for name in HOME_HOOKS), *((self.folder, name) for name in PROJECT_HOOKS))
        if not self.settings.groups() and not any((top / name).is_file() for top, name in files):
            return None
        from duckflow.extensions.hook_files import find_hooks

        return find_hooks(self.settings, self._places.home, self.folder, with_folder)

    async def _may_run(self, hook: "Hook") -> bool:
        """What has changed since the yes is asked about again."""
        if not hook.source or (digest := hook.digest()) in self._trusted:
            return True
        if self._trusted.refused(digest):
            return False
        await self._ask_about([hook], changed=True)
        return hook.digest() in self._trusted

    async def _ask_about(self, hooks: Sequence["Hook"], changed: bool = False) -> None:
        async with self._asking:
            new = {digest: hook for hook in hooks if hook.source and (digest := hook.digest()) not in self._trusted}
            new = {digest: hook for digest, hook in new.items() if not self._trusted.refused(digest)}
            # Whoever has just trusted the folder has seen what its hooks run. What comes later nobody has seen.
            agreed: set[str] = set()
            if not changed and self._admission.wanted:
                agreed = set(new)
            elif not changed and self._admission.newly:
                agreed = {digest for digest, hook in new.items() if Path(hook.source).is_relative_to(self.folder)}
            rest = [hook for digest, hook in new.items() if digest not in agreed]
            if rest and await self._agreed(rest, changed):
                agreed = set(new)
            if agreed:
                self._trusted.add(agreed)
            if refused := set(new) - agreed:
                self._trusted.refuse(refused)
                self._session.emit(Noticed(what=say("hook.untrusted", count=len(refused))))

    async def _agreed(self, hooks: Sequence["Hook"], changed: bool) -> bool:
        details = tuple(
            say("hook.listed", event=hook.event, command=shown(hook.shown), file=shown(hook.source)) for hook in hooks
        )
        choices = tuple(Choice(key=key, label=say(f"hook.choice.{key}")) for key in ("trust", "no"))
        title = say("hook.changed_question" if changed else "hook.question")
        question = Question(kind="choice", title=title, details=details, choices=choices)
        return (await self._ask(question)).choice == "trust"

    def _common(self, event: str) -> dict[str, Any]:
        from duckflow.extensions.transcript import HookTranscript

        state = self._session.state
        if self._transcript is None:
            path = self._session.path.with_suffix(".transcript.jsonl")
            self._transcript = HookTranscript(path, state.session_id, state.folder)
        return {
            "session_id": state.session_id,
            "transcript_path": self._transcript.write(state.messages),
            "cwd": str(self.folder),
            "permission_mode": MODES[self._mode()],
            "hook_event_name": event,
            "model": state.model,
            "turn_id": str(state.turn),
        }


def _together(replies: Sequence["HookReply"]) -> "HookReply":
    """A refusal goes before a question, that before a yes; what is to be known is added up."""
    from duckflow.extensions.hook_run import HookReply

    heard = HookReply()
    for decision in ("deny", "ask", "allow"):
        if wanting := [reply for reply in replies if reply.decision == decision]:
            heard = heard._replace(decision=decision, reason="\n".join(one.reason for one in wanting))
            break
    stops = [reply for reply in replies if reply.stops]
    context = "\n\n".join(reply.context for reply in replies if reply.context)
    updated = next((reply.updated for reply in replies if reply.updated is not None), None)
    reason = "\n".join(one.reason for one in stops) if stops else heard.reason
    return heard._replace(context=context, updated=updated, stops=bool(stops), reason=reason)


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

    def follow(self, tool: AnyTool) -> bool:
        """Whether programs of hooks may run once the tool has done its work."""
        return tool.effect != "talk" and self._hooks.there_are("PostToolUse")

    async def after(self, one: Ready, outcome: Done, actor: Actor) -> Done:
        """The result, with what hooks have to say to it."""
        told = [self._contexts.pop(one.action.action_id, "")]
        if self.follow(one.tool):
            response = one.tool.result_for_hooks(outcome.for_model, one.action.args, self._hooks.folder)
            reply = await self._tell("PostToolUse", one, {"tool_response": response})
            self._stop(reply, actor)
            if reply.decision == "deny":
                told.append(self._note("hook_objects", reason=reply.reason))
            told.append(reply.context)
        more = "\n".join(filter(None, told))
        return outcome._replace(for_model=f"{outcome.for_model}\n{more}") if more else outcome

    async def _tell(self, event: str, one: Ready, more: dict[str, Any]) -> "HookReply":
        names, shaped = one.tool.names, one.tool.for_hooks(one.action.args, self._hooks.folder)
        about = {"tool_name": names[0], "tool_input": shaped, "tool_use_id": one.action.action_id, **more}
        return await self._hooks.tell(event, about, names, one.action.about)

    def _as_wanted(self, one: Ready, reply: "HookReply", prepare: Callable[[Action], Ready], actor: Actor) -> Ready:
        context = [reply.context]
        if reply.updated is not None:
            args = one.tool.from_hooks(one.action.args, reply.updated, self._hooks.folder)
            if args != one.action.args:
                one = prepare(one.action.model_copy(update={"args": args}))
                changed = say("hook.changed", operation=one.action.operation, subject=one.action.about)
                actor.emit(Noticed(what=changed))
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
