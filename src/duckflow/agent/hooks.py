"""The hooks of one conversation: which there are, which the user trusts, and what they make of events and actions."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.brought_programs import HookConsent
from duckflow.agent.gatekeeper import Clearance, Ready
from duckflow.agent.session import Session
from duckflow.agent.trust import Admission
from duckflow.errors import ToolError
from duckflow.events.types import Event, MessageAdded, Noticed, QuestionAsked, Waiting
from duckflow.events.work import AgentEnded
from duckflow.extensions.places import HOME_HOOKS, PROJECT_HOOKS, ExtensionPlaces, HookSettings
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.state.action import Action
from duckflow.state.message import Message
from duckflow.state.mode import Mode
from duckflow.state.noun import shorten
from duckflow.state.phrase import Phrase, say
from duckflow.tools.tool import AnyTool, Done

if TYPE_CHECKING:
    from duckflow.extensions.hook_files import FoundHooks, Hook
    from duckflow.extensions.hook_run import HookReply, HookTranscript
    from duckflow.programs.launch import Launch


MODES = {
    Mode.ASK: "default",
    Mode.AUTO_EDIT: "acceptEdits",
    Mode.AUTO: "acceptEdits",
    Mode.PLAN: "plan",
    Mode.FULL_AUTO: "bypassPermissions",
    Mode.CONTAINED: "bypassPermissions",
}
LEAVING_SECONDS = 5.0
LONGEST_OUTPUT = 10_000
"""Characters that a hook may put in place of a shorter result."""


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
        consent: HookConsent,
    ) -> None:
        self.settings = settings
        self.consent = consent
        self.stopped = ""
        """Why a hook wants the turn to end, if one does."""
        self.folder = places.folder
        self._session = session
        self._places = places
        self._admission = admission
        self._found: FoundHooks | None = None
        self._with_folder = False
        self._transcript: HookTranscript | None = None
        self._begun = False
        self._looked = False
        self._behind: set[asyncio.Task[Any]] = set()
        session.subscribe(self._hear, QuestionAsked, AgentEnded)

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
            await self.consent.look(self._found.hooks, first)
        if not self._begun:
            self._begun = True
            source = "resume" if self._session.state.turn else "startup"
            reply = await self.tell("SessionStart", {"source": source}, (source,))
            self.bring("SessionStart", reply.context)

    async def tell(
        self, event: str, about: Mapping[str, Any], names: tuple[str, ...] = (), subject: str = ""
    ) -> "HookReply":
        """All that listen are told at once; the strictest counts. Problems and words for the user are shown."""
        from duckflow.extensions.hook_run import HookReply

        hooks = [one for one in self._found.hooks if one.event == event] if self._found else []
        hooks = [hook for hook in hooks if hook.matches(names, subject) and await self.consent.may_run(hook)]
        if not hooks:
            return HookReply()
        told = {**self._common(event), **about}
        for hook in hooks:
            if not hook.waits:
                task = asyncio.create_task(self._run(hook, told))
                self._behind.add(task)
                task.add_done_callback(self._behind.discard)
        waiting = [hook for hook in hooks if hook.waits]
        if waiting:
            self._session.emit(Waiting(why=say("wait.hook", command=shorten(waiting[0].shown, 80))))
        replies = await asyncio.gather(*(self._run(hook, told) for hook in waiting))
        for reply in replies:
            if reply.problem:
                self._session.emit(Noticed(what=reply.problem))
            if reply.message:
                self._session.emit(Noticed(what=say("hook.says", text=reply.message)))
        return _together(replies)

    async def before_pruning(self, trigger: Literal["auto", "manual"], focus: str) -> str:
        """Waits for hooks that save what leaves the context. Gives the reason why one does not want it."""
        if not self.there_are("PreCompact"):
            return ""
        reply = await self.tell("PreCompact", {"trigger": trigger, "custom_instructions": focus}, (trigger,))
        return reply.reason if reply.decision == "deny" else ""

    async def _run(self, hook: "Hook", told: Mapping[str, Any]) -> "HookReply":
        from duckflow.extensions.hook_run import run_hook

        place = self.consent.programs.only_place(hook.program) if hook.brought else None
        return await run_hook(hook, {**told, "cwd": str(place or self.folder)}, partial(self._launch, hook))

    def _hear(self, event: Event) -> None:
        """Tells hooks that can change nothing, behind the work: somebody is asked, or an agent has ended."""
        match event:
            case QuestionAsked() if self.there_are("Notification"):
                kind = "permission_prompt" if event.question.gate else "elicitation_dialog"
                message = Words(self._session.state.language).phrase(event.question.title)
                told = self.tell("Notification", {"message": message, "notification_type": kind}, (kind,))
            case AgentEnded() if self.there_are("SubagentStop"):
                kind = self._session.state.agents[event.agent_id].kind
                about = {"agent_id": event.agent_id, "agent_type": kind, "last_assistant_message": event.report.found}
                told = self.tell("SubagentStop", about, (kind,))
            case _:
                return
        task = asyncio.create_task(told)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

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
            HookStanding(hook, "own" if not hook.source else "trusted" if self.consent.is_agreed(hook) else "new")
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
        named = self.settings.groups() or any((top / name).is_file() for top, name in files)
        if not named and not (with_folder and self.consent.programs.agreements.all()):
            return None
        from duckflow.extensions.hook_files import find_hooks

        return find_hooks(self.settings, self._places.home, self.folder, with_folder)

    async def _launch(self, hook: "Hook") -> "Launch":
        from duckflow.extensions.hook_run import hook_environment, own_launch
        from duckflow.programs.find import find_shell, user_environment
        from duckflow.safety.brought.launch import CannotRunError

        environment = hook_environment(user_environment(), self.settings.environment, self.folder)
        if not hook.brought:
            if self._git_would_run_programs():
                raise CannotRunError("hook.git_untrusted")
            return own_launch(hook, environment)
        shell, line = ((find_shell(self.folder), "-c"), hook.command) if hook.arguments is None else ((), None)
        argv = shell or (hook.command, *(hook.arguments or ()))
        transcript = [self._transcript.path] if self._transcript and self._transcript.path.exists() else []
        return await self.consent.programs.launch(hook.program, argv, line, environment, readable=transcript)

    def _git_would_run_programs(self) -> bool:
        """A hook of the user's own may call git, which starts what the repository names, with the user's rights."""
        from duckflow.safety.repository import git_runs_programs

        free = self._admission.trusted or self.consent.programs.mode() is Mode.CONTAINED
        return not free and git_runs_programs(self.folder)

    def _common(self, event: str) -> dict[str, Any]:
        from duckflow.extensions.hook_run import HookTranscript

        state = self._session.state
        if self._transcript is None:
            path = self._session.path.with_suffix(".transcript.jsonl")
            self._transcript = HookTranscript(path, state.session_id, state.folder)
        return {
            "session_id": state.session_id,
            "transcript_path": self._transcript.write(state.messages),
            "cwd": str(self.folder),
            "permission_mode": MODES[self.consent.programs.mode()],
            "hook_event_name": event,
            "model": state.model,
            "turn_id": str(state.turn),
        }


def _together(replies: Sequence["HookReply"]) -> "HookReply":
    """A refusal goes before a question, that before a yes; what is to be known is added up."""
    from duckflow.extensions.hook_run import HookReply

    heard = HookReply(
        problem=next((reply.problem for reply in replies if reply.decision == "ask" and reply.problem), None)
    )
    for decision in ("deny", "ask", "allow"):
        if wanting := [reply for reply in replies if reply.decision == decision]:
            heard = heard._replace(decision=decision, reason="\n".join(filter(None, (one.reason for one in wanting))))
            break
    stops = [reply for reply in replies if reply.stops]
    context = "\n\n".join(reply.context for reply in replies if reply.context)
    updated = next((reply.updated for reply in replies if reply.updated is not None), None)
    output = next((reply.output for reply in replies if reply.output is not None), None)
    reason = "\n".join(one.reason for one in stops) if stops else heard.reason
    return heard._replace(context=context, updated=updated, output=output, stops=bool(stops), reason=reason)


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
                checked.refused.append((one.action, self.refusal(one.action, reply.reason)))
                continue
            try:
                checked.ready.append(self._as_wanted(one, reply, prepare, actor))
            except (ToolError, OSError) as problem:
                checked.refused.append((one.action, self.refusal(one.action, str(problem))))
        return checked

    async def at_gate(self, asked_about: Sequence[Ready], by_person: bool, actor: Actor) -> Clearance | None:
        """Lets hooks answer before the user is asked. A yes counts where the user's settings say so, not where a
        person must see it, and not where the hook wants other arguments than the Gate would show."""
        if not self._hooks.there_are("PermissionRequest"):
            return None
        replies = [await self._tell("PermissionRequest", one, {}) for one in asked_about]
        for reply in replies:
            self._stop(reply, actor)
            if reply.decision == "deny" or reply.stops:
                return Clearance(False, reason=reply.reason, by_hook=True)
        yes = all(reply.decision == "allow" and reply.updated is None for reply in replies)
        return Clearance(True) if yes and self._hooks.settings.may_allow and not by_person else None

    def tell_with(self, action_id: str, *told: str) -> None:
        """What the model is to learn with the result: what was done is not just what it proposed."""
        if lines := [line for line in (self._contexts.get(action_id, ""), *told) if line]:
            self._contexts[action_id] = "\n".join(lines)

    def follow(self, tool: AnyTool) -> bool:
        """Hooks may run their programs after a tool that did more than talk, where there are such hooks."""
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
            if reply.output is not None:
                shown = reply.output[: max(LONGEST_OUTPUT, len(outcome.for_model))]
                outcome = outcome._replace(for_model=shown, pictures=())
                told.append(self._note("hook_output"))
                actor.emit(Noticed(what=say("hook.output", operation=one.action.operation, subject=one.action.about)))
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
            return one._replace(asks=say("hook.asks", reason=reply.reason) if reply.reason else reply.problem)
        return one._replace(allowed=reply.decision == "allow" and self._hooks.settings.may_allow)

    def _stop(self, reply: "HookReply", actor: Actor) -> None:
        if reply.stops and actor.follows_steps:
            self._hooks.stopped = reply.reason

    def refusal(self, action: Action, reason: str) -> ToolError:
        operation = action.operation
        return ToolError(self._note("hook_refuses", reason=reason), "hook.refused", operation=operation, reason=reason)

    def _note(self, key: str, **values: str) -> str:
        return note(self._language(), key, **values)
