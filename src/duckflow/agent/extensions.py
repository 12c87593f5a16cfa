"""The extensions of one conversation. They are looked for when its first turn begins. Those of the work folder are used
only once the user trusts the folder."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.permissions import EDITS, Permission, Permissions, listed_rules
from duckflow.agent.session import Session
from duckflow.agent.session_secrets import SessionSecrets, hide_in
from duckflow.agent.trust import Admission
from duckflow.agent.undo import UndoKeeper
from duckflow.errors import DuckflowError, UsageError
from duckflow.events.ports import Ask, CommandTable, Emit
from duckflow.events.talking import CommandFinished, CommandStarted
from duckflow.events.types import ActionFinished, ActionStarted, Event, MessageAdded, Noticed, OutputStreamed, TurnEnded
from duckflow.extensions.places import AGENT_PLACES, COMMAND_PLACES, SKILL_PLACES, ExtensionPlaces
from duckflow.forms.form import ParsedReply
from duckflow.programs.find import environment_as_typed, find_program, user_environment
from duckflow.safety.risk import runs_later
from duckflow.state.action import READ_SKILL, RUN_AGENT, RUN_COMMAND, Action, ActionResult, Decision, TaskProfile
from duckflow.state.data import said, say, shorten
from duckflow.state.message import Message
from duckflow.state.mode import Mode
from duckflow.state.phase import Phase
from duckflow.state.question import Choice, Question
from duckflow.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from duckflow.extensions.agent_kinds import AgentKind
    from duckflow.extensions.custom_commands import CustomCommand
    from duckflow.extensions.skill_tool import ReadSkill
    from duckflow.extensions.skills import Skill


log = logging.getLogger(__name__)
OPERATION = "user.shell"
SHOWN_COMMAND = 80
HEAD, TAIL, CAUSES = 4000, 8000, 4000
INTERRUPTED = 130
# Nobody could answer a pager.
WITHOUT_PAGER = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


class UserCommands:
    """Runs commands that the user types. The table of slash commands is made when it is first needed."""

    def __init__(
        self,
        session: Session,
        make_table: Callable[[], CommandTable],
        moved: Callable[[], None],
        undo: UndoKeeper,
        secrets: SessionSecrets,
    ) -> None:
        """`moved` is called when a command has begun or ended."""
        self._session = session
        self._make_table = make_table
        self._moved = moved
        self._undo = undo
        self._secrets = secrets
        self._running: set[asyncio.Task[None]] = set()
        self._started = 0
        self._untold: list[tuple[str, str]] = []

    @cached_property
    def table(self) -> CommandTable:
        return self._make_table()

    @property
    def runs(self) -> bool:
        return bool(self._running)

    def start(self, line: str, work: Coroutine[Any, Any, str]) -> None:
        """Carries out a command in the background. Its start is reported, and its output once it has ended."""
        self._started += 1
        self._session.emit(CommandStarted(command_id=self._started, line=line))
        task = asyncio.create_task(self._carry_out(self._started, work))
        self._running.add(task)
        task.add_done_callback(self._ended)
        self._moved()

    def cancel(self) -> None:
        for task in self._running:
            task.cancel()

    async def rest(self, seconds: float) -> None:
        """Waits until all commands have ended, but not longer than this many seconds."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=seconds)

    async def run_own(self, command: str, is_typed: bool) -> int:
        """Runs a command in the user's own shell, to its end. Nobody is asked, because the user typed the command
        (`is_typed`), or a slash command that makes it. If it is cancelled, everything it started is ended, and the
        command is reported as interrupted."""
        from duckflow.programs.launch import Launch
        from duckflow.programs.run import run
        from duckflow.tools.shell.output import CommandOutput

        start_time = time.monotonic()
        output = CommandOutput(HEAD, TAIL, CAUSES, self._show)
        folder = Path(self._session.state.folder)
        shell = find_program(os.environ.get("SHELL", ""), folder) or "/bin/sh"
        await self._secrets.look()
        async with self._undo.watch(command) as changed_paths:
            try:
                environment = (user_environment() if is_typed else environment_as_typed(folder)) | WITHOUT_PAGER
                code = await run(Launch((shell, "-c", command), folder, environment), output.take)
            except asyncio.CancelledError:
                code = INTERRUPTED
            finally:
                output.take(b"", last=True)
                output.leave_screen()
        # The user sees every line. The model is shown no more than of a command of its own.
        text = hide_in(output.text(failed=code != 0), await self._secrets.look()).text
        self._note(command, code, text, round(time.monotonic() - start_time, 1), changed_paths)
        return code

    def tell(self) -> None:
        """Tells the model which commands the user ran during a turn, once that turn has ended."""
        untold_problems, self._untold = self._untold, []
        for source, text in untold_problems:
            message = Message(role="tool", operation=source, text=text, turn=self._session.state.turn)
            self._session.emit(MessageAdded(message=message))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._moved()

    def _show(self, text: str, left_out: int) -> None:
        self._session.emit(OutputStreamed(text=text, left_out=left_out))

    def _note(self, command: str, code: int, output: str, seconds: float, changed: Sequence[str]) -> None:
        """Records the command in the journal, and quotes its output to the model."""
        args = {"command": command}
        action = Action(operation=OPERATION, args=args, reasoning="typed by the user", subject="command")
        text = f"exit code {code}\n{output or '(no output)'}"
        result = ActionResult(
            action_id=action.action_id,
            operation=OPERATION,
            ok=code == 0,
            for_model=text,
            for_user=say("shell.finished", command=shorten(command, SHOWN_COMMAND), code=code, seconds=seconds),
            changed=tuple(changed),
            seconds=seconds,
        )
        self._session.emit(ActionStarted(action=action))
        self._session.emit(ActionFinished(result=result))
        self._untold.append((f"!{command}", text))
        if not self._session.state.turn_open:
            self.tell()

    async def _carry_out(self, number: int, work: Coroutine[Any, Any, str]) -> None:
        finished_event = CommandFinished(command_id=number)
        try:
            finished_event = CommandFinished(command_id=number, text=await work)
        except DuckflowError as problem:
            finished_event = CommandFinished(command_id=number, problem=said(problem))
        except Exception:
            # A bug in a command must not end the conversation.
            log.exception("a command broke off")
            finished_event = CommandFinished(command_id=number, problem=say("turn.broke_off"))
        finally:
            self._session.emit(finished_event)


NAMED = 5
HIDDEN = (".claude", ".codex")
"""Folders in the home folder that are hidden from commands in the sandbox."""


class FoundExtensions(NamedTuple):
    """The extensions that were found. Those of the work folder are among them only if the folder is trusted."""

    with_folder: bool
    skills: "Sequence[Skill]" = ()
    commands: "Sequence[CustomCommand]" = ()
    kinds: "Sequence[AgentKind]" = ()
    """The kinds of agents that the user or the folder defines."""


class AllowedTools:
    """Lets a command or a skill do what its `allowed-tools` field lists, if the user agrees. The user is asked once in
    a session; a yes is valid until the turn ends. Actions that always need a question are still asked about. So are
    files that make code run later, because the one question does not mention them."""

    def __init__(self, session: Session, permissions: Permissions, ask: Ask, mode: Callable[[], Mode]) -> None:
        self._permissions = permissions
        self._ask = ask
        self._mode = mode
        self._answers: dict[tuple[Permission, ...], bool] = {}
        self._held: list[Permission] = []
        session.subscribe(lambda _: self.withdraw(), TurnEnded)

    async def grant(self, name: str, allowed: str) -> None:
        listed = (rule for rule in listed_rules(allowed) if rule not in self._permissions.always)
        rules = tuple(rule for rule in listed if rule.operation != EDITS or not runs_later(rule.pattern, is_new=True))
        if not rules or self._mode() in (Mode.PLAN, Mode.FULL_AUTO, Mode.CONTAINED):
            return
        if rules not in self._answers:
            details = tuple(rule.describe() for rule in rules)
            choices = tuple(Choice(key=key, label=say(f"custom.allow.{key}")) for key in ("yes", "no"))
            question = Question(kind="choice", title=say("custom.allow", name=name), details=details, choices=choices)
            self._answers[rules] = (await self._ask(question)).choice == "yes"
        new_rules = [rule for rule in rules if self._answers[rules] and rule not in self._permissions.session]
        self._permissions.session += new_rules
        self._held += new_rules

    def withdraw(self) -> None:
        held_rules, self._held = self._held, []
        for rule in held_rules:
            if rule in self._permissions.session:
                self._permissions.session.remove(rule)


class Extensions:
    """Skills, custom commands and kinds of agents. Where there are none, nothing is loaded, and the model is told
    nothing about them."""

    def __init__(
        self, places: ExtensionPlaces, admission: Admission, toolbox: Toolbox, emit: Emit, allowed: AllowedTools
    ) -> None:
        self.allowed = allowed
        self._places = places
        self._admission = admission
        self._toolbox = toolbox
        self._emit = emit
        self._found: FoundExtensions | None = None
        self._told: frozenset[str] = frozenset()
        self._kinds_told = False

    async def admit(self) -> bool:
        """Says before a turn whether Duckflow may act in this folder. If so, the model is told of the skills."""
        is_admitted = await self._admission.admit()
        if is_admitted:
            self._offer(self.found())
        return is_admitted

    async def look(self) -> None:
        """Looks for all extensions again: some may have come since the session began."""
        if self._may_be_any():
            await self._admission.look_again()
            self._found = None
            self._offer(self.found())

    def found(self) -> FoundExtensions:
        is_trusted = self._admission.trusted or (not self._admission.decided and self._places.trusted_before)
        if self._found is None or self._found.with_folder != is_trusted:
            self._found = self._look(is_trusted)
        return self._found

    def catalogue(self, room: int) -> list[tuple[str, str]]:
        if not self.found().skills:
            return []
        from duckflow.extensions.skills import fit_catalogue

        return fit_catalogue(self.found().skills, room)

    @cached_property
    def tool(self) -> "ReadSkill":
        from duckflow.extensions.skill_tool import ReadSkill

        hidden_paths = [self._places.home / name for name in HIDDEN]
        return ReadSkill(lambda: self.found().skills, hidden_paths, self._places.copies, self.allowed.grant)

    def _may_be_any(self) -> bool:
        names, places = (*SKILL_PLACES, *COMMAND_PLACES, *AGENT_PLACES), self._places
        return any((folder / name).is_dir() for folder in (places.home, places.folder) for name in names)

    def _look(self, trusted: bool) -> FoundExtensions:
        if not self._may_be_any():
            return FoundExtensions(trusted)
        from duckflow.extensions.agent_kinds import find_kinds
        from duckflow.extensions.custom_commands import find_commands
        from duckflow.extensions.skills import find_skills

        home, project = self._places.home, self._places.folder if trusted else None
        return FoundExtensions(
            trusted, find_skills(home, project), find_commands(home, project), find_kinds(home, project)
        )

    def _offer(self, extensions: FoundExtensions) -> None:
        """Offers a tool for skills if there are any, and reports once each skill whose head cannot be read."""
        if extensions.skills:
            self._toolbox.add(self.tool)
        else:
            self._toolbox.remove(READ_SKILL)
        if extensions.kinds or self._kinds_told:
            from duckflow.extensions.agent_kinds import listed_kinds

            self._toolbox.tell_more(RUN_AGENT, listed_kinds(extensions.kinds))
            self._kinds_told = bool(extensions.kinds)
        flawed_skills = [skill.name for skill in extensions.skills if skill.warnings and skill.name not in self._told]
        self._told |= frozenset(flawed_skills)
        if flawed_skills:
            self._emit(
                Noticed(what=say("skill.flawed", count=len(flawed_skills), names=", ".join(flawed_skills[:NAMED])))
            )


class GatedShell:
    """Runs the shell commands of a custom command. They pass the Gate (the question before risky actions) and are
    journaled, but are not part of the conversation."""

    def __init__(self, dispatcher: Dispatcher, emit: Emit, ask: Ask) -> None:
        self._dispatcher = dispatcher
        self._emit = emit
        self._actor = Actor(self._pass_on, ask, for_user=True)

    async def output_of(self, command: str, why: str) -> str:
        action = Action(operation=RUN_COMMAND, args={"command": command}, reasoning=why)
        decision = Decision.made_up(why, [action], TaskProfile.FILE_OPERATION, Phase.EXECUTION)
        dispatched = await self._dispatcher.run(ParsedReply(decision), self._actor)
        if dispatched.stop in ("refused", "nobody"):
            raise UsageError("custom.refused", command=command)
        return dispatched.results[-1].for_model

    def _pass_on(self, event: Event) -> None:
        if not isinstance(event, MessageAdded):
            self._emit(event)
