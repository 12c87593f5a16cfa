"""The hooks of one conversation: which ones there are, which ones the user trusts, and their effect on events and
actions."""

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
from duckflow.state.data import Phrase, say, shorten
from duckflow.state.message import Message
from duckflow.state.mode import Mode
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
"""Most characters that a hook may put in place of a result, unless the result itself is longer."""


class HookStanding(NamedTuple):
    """A hook and its state, for the list that `/hooks` shows."""

    hook: "Hook"
    state: str
    """`own` if the hook is in the user's own settings, otherwise `trusted` or `new`."""


class Hooks:
    """Tells hooks of events. Where there are no hooks, nothing is loaded and nothing waits."""

    def __init__(
        self,
        session: Session,
        settings: HookSettings,
        places: ExtensionPlaces,
        admission: Admission,
        consent: HookConsent,
    ) -> None:
        self.settings = settings
        self._own_groups = settings.groups()
        self.consent = consent
        self.stopped = ""
        """The reason why a hook wants the turn to end, if one does."""
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

    @property
    def are_any(self) -> bool:
        return self._found is not None

    def there_are(self, event: str) -> bool:
        return self._found is not None and any(hook.event == event for hook in self._found.hooks)

    async def get_ready(self) -> None:
        """Gets ready when a turn begins: asks the user about new hooks, and tells hooks once that the session has
        begun. It is called after the user was asked whether to trust the folder."""
        is_first_look, self._looked = not self._looked, True
        if self._found is None or self._with_folder != self._admission.trusted:
            self._with_folder = self._admission.trusted
            self._found = self._find(self._with_folder)
            if self._found is None:
                return
            for problem in self._found.problems:
                self._session.emit(Noticed(what=problem))
            await self.consent.look(self._found.hooks, is_first_look)
        if not self._begun:
            self._begun = True
            source = "resume" if self._session.state.turn else "startup"
            reply = await self.tell("SessionStart", {"source": source}, (source,))
            self.bring("SessionStart", reply.context)

    async def tell(
        self, event: str, about: Mapping[str, Any], names: tuple[str, ...] = (), subject: str = ""
    ) -> "HookReply":
        """Runs all hooks for this event at once; the strictest reply counts. Problems with hooks, and their words for
        the user, are shown."""
        from duckflow.extensions.hook_run import HookReply

        hooks = [hook for hook in self._found.hooks if hook.event == event] if self._found else []
        hooks = [hook for hook in hooks if hook.matches(names, subject) and await self.consent.may_run(hook)]
        if not hooks:
            return HookReply()
        fields = {**self._common(event), **about}
        for hook in hooks:
            if not hook.waits:
                task = asyncio.create_task(self._run(hook, fields))
                self._behind.add(task)
                task.add_done_callback(self._behind.discard)
        waiting_hooks = [hook for hook in hooks if hook.waits]
        if waiting_hooks:
            self._session.emit(Waiting(why=say("wait.hook", command=shorten(waiting_hooks[0].shown, 80))))
        replies = await asyncio.gather(*(self._run(hook, fields) for hook in waiting_hooks))
        for reply in replies:
            if reply.problem and reply.problem.key != "hook.no_sandbox":  # The consent has told of it, once.
                self._session.emit(Noticed(what=reply.problem))
            if reply.message:
                self._session.emit(Noticed(what=say("hook.says", text=reply.message)))
        return _together(replies)

    async def before_pruning(self, trigger: Literal["auto", "manual"], focus: str) -> str:
        """Runs the hooks that can save messages before these leave the context. Returns the reason if a hook does not
        want the context to be pruned."""
        if not self.there_are("PreCompact"):
            return ""
        reply = await self.tell("PreCompact", {"trigger": trigger, "custom_instructions": focus}, (trigger,))
        return reply.reason if reply.decision == "deny" else ""

    async def _run(self, hook: "Hook", fields: Mapping[str, Any]) -> "HookReply":
        from duckflow.extensions.hook_run import run_hook

        folder = self.consent.programs.only_place(hook.program) if hook.brought else None
        return await run_hook(hook, {**fields, "cwd": str(folder or self.folder)}, partial(self._launch, hook))

    def _hear(self, event: Event) -> None:
        """Tells hooks in the background that the user is asked something, or that an agent has ended. The replies of
        these hooks change nothing."""
        match event:
            case QuestionAsked() if self.there_are("Notification"):
                kind = "permission_prompt" if event.question.gate else "elicitation_dialog"
                message = Words(self._session.state.language).phrase(event.question.title)
                report = self.tell("Notification", {"message": message, "notification_type": kind}, (kind,))
            case AgentEnded() if self.there_are("SubagentStop"):
                kind = self._session.state.agents[event.agent_id].kind
                details = {"agent_id": event.agent_id, "agent_type": kind, "last_assistant_message": event.report.found}
                report = self.tell("SubagentStop", details, (kind,))
            case _:
                return
        task = asyncio.create_task(report)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    def bring(self, event: str, context: str) -> None:
        """Adds a text that a hook has returned to the conversation, as a quotation for the model."""
        if context:
            turn = self._session.state.turn
            message = Message(role="tool", operation=f"hook {event}", text=context, turn=turn)
            self._session.emit(MessageAdded(message=message))

    def standing(self) -> tuple[list[HookStanding], tuple[Phrase, ...]]:
        """Returns all current hooks, and the problems with some of them. No question is asked, and no hook is run."""
        listing = self._find(self._admission.trusted or self._places.trusted_before)
        if listing is None:
            return [], ()
        states = [
            HookStanding(hook, "own" if not hook.source else "trusted" if self.consent.is_agreed(hook) else "new")
            for hook in listing.hooks
        ]
        return states, listing.problems

    async def aclose(self) -> None:
        """Tells hooks that the session is over, and waits for them only for a short time."""
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
        has_hooks = self._own_groups or any((hook_folder / name).is_file() for hook_folder, name in files)
        if not has_hooks and not (with_folder and self.consent.programs.agreements.all()):
            return None
        from duckflow.extensions.hook_files import find_hooks

        return find_hooks(self.settings, self._places.home, self.folder, with_folder)

    async def _launch(self, hook: "Hook") -> "Launch":
        from duckflow.extensions.hook_run import hook_environment, own_launch
        from duckflow.programs.find import find_shell, user_environment
        from duckflow.safety.brought.launch import CannotRunError

        environment = hook_environment(user_environment(), self.settings.environment, self.folder)
        transcript = [self._transcript.path] if self._transcript and self._transcript.path.exists() else []
        if not hook.brought:
            if self._git_would_run_programs():
                raise CannotRunError("hook.git_untrusted")
            launch = own_launch(hook, environment)
            return await self.consent.shut_in(hook, launch, transcript) if self._runs_of_folder(hook) else launch
        shell, line = ((find_shell(self.folder), "-c"), hook.command) if hook.arguments is None else ((), None)
        argv = shell or (hook.command, *(hook.arguments or ()))
        return await self.consent.programs.launch(hook.program, argv, line, environment, readable=transcript)

    def _runs_of_folder(self, hook: "Hook") -> bool:
        from duckflow.programs.find import worked_in
        from duckflow.safety.brought.own_programs import runs_of_folder

        is_contained = self.consent.programs.mode() is Mode.CONTAINED
        home, tops = str(self._places.home), worked_in(self.folder)
        return not is_contained and any(runs_of_folder(hook.shown, top, home) for top in tops)

    def _git_would_run_programs(self) -> bool:
        """Says whether git could run programs of this repository. A hook of the user's own may call git, and git starts
        programs that the repository names, with the user's rights."""
        from duckflow.safety.repository import git_runs_programs

        is_folder_permitted = self._admission.trusted or self.consent.programs.mode() is Mode.CONTAINED
        return not is_folder_permitted and git_runs_programs(self.folder)

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
    """Combines the replies of several hooks. A refusal counts more than a question, and a question more than a yes. The
    contexts of all replies are joined."""
    from duckflow.extensions.hook_run import HookReply

    combined_reply = HookReply(
        problem=next((reply.problem for reply in replies if reply.decision == "ask" and reply.problem), None)
    )
    for decision in ("deny", "ask", "allow"):
        if deciding_replies := [reply for reply in replies if reply.decision == decision]:
            combined_reply = combined_reply._replace(
                decision=decision, reason="\n".join(filter(None, (reply.reason for reply in deciding_replies)))
            )
            break
    stopping_replies = [reply for reply in replies if reply.stops]
    context = "\n\n".join(reply.context for reply in replies if reply.context)
    updated_input = next((reply.updated for reply in replies if reply.updated is not None), None)
    output = next((reply.output for reply in replies if reply.output is not None), None)
    reason = "\n".join(reply.reason for reply in stopping_replies) if stopping_replies else combined_reply.reason
    return combined_reply._replace(
        context=context, updated=updated_input, output=output, stops=bool(stopping_replies), reason=reason
    )


class CheckedByHooks(NamedTuple):
    """The actions that may go on to the Gate (the question before risky actions), and those that hooks have refused,
    with the reason."""

    ready: list[Ready]
    refused: list[tuple[Action, ToolError]]


class ToolHooks:
    """Runs hooks around tool calls. A hook can refuse an action, or demand that the user is asked. A hook can allow
    actions only if the user's own settings say so."""

    def __init__(self, hooks: Hooks, language: Callable[[], str]) -> None:
        self._hooks = hooks
        self._language = language
        self._contexts: dict[str, str] = {}
        """Texts that the model gets with a result, by the id of the action."""

    async def check(self, ready: Sequence[Ready], prepare: Callable[[Action], Ready], actor: Actor) -> CheckedByHooks:
        """Asks hooks about actions before the user is asked, so that the user sees the actions as they will run."""
        if not self._hooks.there_are("PreToolUse"):
            return CheckedByHooks(list(ready), [])
        checked_calls = CheckedByHooks([], [])
        for call in ready:
            reply = await self._tell("PreToolUse", call, {})
            self._stop(reply, actor)
            if reply.decision == "deny" or reply.stops:
                checked_calls.refused.append((call.action, self.refusal(call.action, reply.reason)))
                continue
            try:
                checked_calls.ready.append(self._as_wanted(call, reply, prepare, actor))
            except (ToolError, OSError) as problem:
                checked_calls.refused.append((call.action, self.refusal(call.action, str(problem))))
        return checked_calls

    async def at_gate(self, asked_about: Sequence[Ready], by_person: bool, actor: Actor) -> Clearance | None:
        """Lets hooks answer in place of the user. A hook's yes counts only if the user's settings say so. It never
        counts if a person must see the action, or if the hook wants other arguments than the user would see."""
        if not self._hooks.there_are("PermissionRequest"):
            return None
        replies = [await self._tell("PermissionRequest", call, {}) for call in asked_about]
        for reply in replies:
            self._stop(reply, actor)
            if reply.decision == "deny" or reply.stops:
                return Clearance(False, reason=reply.reason, by_hook=True)
        all_allow = all(reply.decision == "allow" and reply.updated is None for reply in replies)
        return Clearance(True) if all_allow and self._hooks.settings.may_allow and not by_person else None

    def tell_with(self, action_id: str, *texts: str) -> None:
        """Keeps texts for the model, which gets them together with the action's result. An example is the note that the
        user or a hook has changed the action."""
        if lines := [line for line in (self._contexts.get(action_id, ""), *texts) if line]:
            self._contexts[action_id] = "\n".join(lines)

    def follow(self, tool: AnyTool) -> bool:
        """Says whether hooks may run programs after this tool: it does more than talk, and there are hooks for it."""
        return tool.effect != "talk" and self._hooks.there_are("PostToolUse")

    async def after(self, call: Ready, outcome: Done, actor: Actor) -> Done:
        """Returns the result with the texts that hooks add to it."""
        remarks = [self._contexts.pop(call.action.action_id, "")]
        if self.follow(call.tool):
            response = call.tool.result_for_hooks(outcome.for_model, call.action.args, self._hooks.folder)
            reply = await self._tell("PostToolUse", call, {"tool_response": response})
            self._stop(reply, actor)
            if reply.decision == "deny":
                remarks.append(self._note("hook_objects", reason=reply.reason))
            if reply.output is not None:
                output = reply.output[: max(LONGEST_OUTPUT, len(outcome.for_model))]
                outcome = outcome._replace(for_model=output, pictures=())
                remarks.append(self._note("hook_output"))
                actor.emit(Noticed(what=say("hook.output", operation=call.action.operation, subject=call.action.about)))
            remarks.append(reply.context)
        added_text = "\n".join(filter(None, remarks))
        return outcome._replace(for_model=f"{outcome.for_model}\n{added_text}") if added_text else outcome

    async def _tell(self, event: str, call: Ready, extra: dict[str, Any]) -> "HookReply":
        names, tool_input = call.tool.names, call.tool.for_hooks(call.action.args, self._hooks.folder)
        details = {"tool_name": names[0], "tool_input": tool_input, "tool_use_id": call.action.action_id, **extra}
        return await self._hooks.tell(event, details, names, call.action.about)

    def _as_wanted(self, call: Ready, reply: "HookReply", prepare: Callable[[Action], Ready], actor: Actor) -> Ready:
        context = [reply.context]
        if reply.updated is not None:
            args = call.tool.from_hooks(call.action.args, reply.updated, self._hooks.folder)
            if args != call.action.args:
                call = prepare(call.action.model_copy(update={"args": args}))
                changed_phrase = say("hook.changed", operation=call.action.operation, subject=call.action.about)
                actor.emit(Noticed(what=changed_phrase))
                context.append(self._note("hook_changed", args=str(args)))
        self.tell_with(call.action.action_id, *context)
        if reply.decision == "ask":
            return call._replace(asks=say("hook.asks", reason=reply.reason) if reply.reason else reply.problem)
        return call._replace(allowed=reply.decision == "allow" and self._hooks.settings.may_allow)

    def _stop(self, reply: "HookReply", actor: Actor) -> None:
        if reply.stops and actor.follows_steps:
            self._hooks.stopped = reply.reason

    def refusal(self, action: Action, reason: str) -> ToolError:
        operation = action.operation
        return ToolError(self._note("hook_refuses", reason=reason), "hook.refused", operation=operation, reason=reason)

    def _note(self, key: str, **values: str) -> str:
        return note(self._language(), key, **values)
