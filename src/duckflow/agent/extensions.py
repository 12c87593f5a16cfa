"""The extensions of one conversation: looked for when its first turn begins; those of the folder once it is trusted."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.permissions import Permission, Permissions, listed_rules
from duckflow.agent.session import Session
from duckflow.agent.trust import Admission
from duckflow.errors import UsageError
from duckflow.events.ports import Ask, Emit
from duckflow.events.types import Event, MessageAdded, Noticed, TurnEnded
from duckflow.extensions.places import ExtensionPlaces
from duckflow.forms.form import Reading
from duckflow.state.action import READ_SKILL, RUN_AGENT, RUN_COMMAND, Action, Decision, TaskProfile
from duckflow.state.mode import Mode
from duckflow.state.phase import Phase
from duckflow.state.phrase import say
from duckflow.state.question import Choice, Question
from duckflow.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from duckflow.extensions.agent_kinds import AgentKind
    from duckflow.extensions.custom_commands import CustomCommand
    from duckflow.extensions.skill_tool import ReadSkill
    from duckflow.extensions.skills import Skill

NAMED = 5
HIDDEN = (".claude", ".codex")
"""These parts of the home are hidden from commands in the sandbox."""


class FoundExtensions(NamedTuple):
    """What there is, with what the folder brings or without."""

    with_folder: bool
    skills: "Sequence[Skill]" = ()
    commands: "Sequence[CustomCommand]" = ()
    kinds: "Sequence[AgentKind]" = ()
    """Of agents."""


class AllowedTools:
    """Lets a command or a skill do what its `allowed-tools` list, after a yes. The user is asked once in a session,
    whoever brought it; a yes holds until the turn ends. What is always asked is asked all the same."""

    def __init__(self, session: Session, permissions: Permissions, ask: Ask, mode: Callable[[], Mode]) -> None:
        self._permissions = permissions
        self._ask = ask
        self._mode = mode
        self._answers: dict[tuple[Permission, ...], bool] = {}
        self._held: list[Permission] = []
        session.subscribe(lambda _: self.withdraw(), TurnEnded)

    async def grant(self, name: str, allowed: str) -> None:
        rules = tuple(rule for rule in listed_rules(allowed) if rule not in self._permissions.always)
        if not rules or self._mode() in (Mode.PLAN, Mode.FULL_AUTO, Mode.CONTAINED):
            return
        if rules not in self._answers:
            details = tuple(rule.describe() for rule in rules)
            choices = tuple(Choice(key=key, label=say(f"custom.allow.{key}")) for key in ("yes", "no"))
            question = Question(kind="choice", title=say("custom.allow", name=name), details=details, choices=choices)
            self._answers[rules] = (await self._ask(question)).choice == "yes"
        fresh = [rule for rule in rules if self._answers[rules] and rule not in self._permissions.session]
        self._permissions.session += fresh
        self._held += fresh

    def withdraw(self) -> None:
        held, self._held = self._held, []
        for rule in held:
            if rule in self._permissions.session:
                self._permissions.session.remove(rule)


class Extensions:
    """Skills, custom commands, kinds of agents. Where there are none, nothing is loaded and nothing told."""

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
        """Before a turn: whether anything may be done here; from then on the model knows the skills."""
        admitted = await self._admission.admit()
        if admitted:
            self._offer(self.found())
        return admitted

    async def look(self) -> None:
        """All there are now: some may have come since the session began."""
        if self._places.hold_any():
            await self._admission.look_again()
            self._found = None
            self._offer(self.found())

    def found(self) -> FoundExtensions:
        trusted = self._admission.trusted or (not self._admission.decided and self._places.trusted_before)
        if self._found is None or self._found.with_folder != trusted:
            self._found = self._look(trusted)
        return self._found

    def catalogue(self, room: int) -> list[tuple[str, str]]:
        if not self.found().skills:
            return []
        from duckflow.extensions.skills import fit_catalogue

        return fit_catalogue(self.found().skills, room)

    @cached_property
    def tool(self) -> "ReadSkill":
        from duckflow.extensions.skill_tool import ReadSkill

        hidden = [self._places.home / name for name in HIDDEN]
        return ReadSkill(lambda: self.found().skills, hidden, self._places.copies, self.allowed.grant)

    def _look(self, trusted: bool) -> FoundExtensions:
        if not self._places.hold_any():
            return FoundExtensions(trusted)
        from duckflow.extensions.agent_kinds import find_kinds
        from duckflow.extensions.custom_commands import find_commands
        from duckflow.extensions.skills import find_skills

        home, project = self._places.home, self._places.folder if trusted else None
        return FoundExtensions(
            trusted, find_skills(home, project), find_commands(home, project), find_kinds(home, project)
        )

    def _offer(self, found: FoundExtensions) -> None:
        """The tool is there as long as there are skills; heads with flaws are told of once."""
        if found.skills:
            self._toolbox.add(self.tool)
        else:
            self._toolbox.remove(READ_SKILL)
        if found.kinds or self._kinds_told:
            from duckflow.extensions.agent_kinds import listed_kinds

            self._toolbox.tell_more(RUN_AGENT, listed_kinds(found.kinds))
            self._kinds_told = bool(found.kinds)
        flawed = [skill.name for skill in found.skills if skill.warnings and skill.name not in self._told]
        self._told |= frozenset(flawed)
        if flawed:
            self._emit(Noticed(what=say("skill.flawed", count=len(flawed), names=", ".join(flawed[:NAMED]))))


class GatedShell:
    """Runs what a custom command asks for: through the Gate, on the record, and as no part of the conversation."""

    def __init__(self, dispatcher: Dispatcher, emit: Emit, ask: Ask) -> None:
        self._dispatcher = dispatcher
        self._emit = emit
        self._actor = Actor(self._pass_on, ask, for_user=True)

    async def output_of(self, command: str, why: str) -> str:
        action = Action(operation=RUN_COMMAND, args={"command": command}, reasoning=why)
        decision = Decision.made_up(why, [action], TaskProfile.FILE_OPERATION, Phase.EXECUTION)
        done = await self._dispatcher.run(Reading(decision), self._actor)
        if done.stop in ("refused", "nobody"):
            raise UsageError("custom.refused", command=command)
        return done.results[-1].for_model

    def _pass_on(self, event: Event) -> None:
        if not isinstance(event, MessageAdded):
            self._emit(event)
