"""Rules that the user has kept: before a turn ends, its changes are checked against these rules. A correction that can
be checked is offered as a rule, once."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from duckflow.agent.actor import Actor
from duckflow.agent.policies.policy import Ending, Policy, TurnSoFar
from duckflow.agent.session import StateOwner
from duckflow.agent.undo import UndoKeeper
from duckflow.errors import ToolError
from duckflow.events.types import MessageAdded, Noticed
from duckflow.proof.settings import RULES
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import UndoScope
from duckflow.state.data import Phrase, quote, say
from duckflow.state.message import Message
from duckflow.state.question import Choice, Question

if TYPE_CHECKING:
    from duckflow.proof.rules import KeptRule, KeptRules
    from duckflow.proof.trial_folder import MakeLaunch
    from duckflow.safety.sandbox.sandbox import Sandbox

TOLD, MOST_RETURNS = 10, 2
COMMAND_SECONDS = 30.0
MOST_SAID = 64 * 1024


class ProjectRules:
    """The rules that the user has kept for the folder. The conversation and its agents share them. The command of a
    rule runs only in a trusted folder and in bubblewrap, since the rule may have come with the folder."""

    def __init__(
        self,
        folder: Workspace,
        undo: UndoKeeper,
        trusted: Callable[[], bool],
        find_sandbox: "Callable[[], Awaitable[Sandbox]]",
        make_launch: "MakeLaunch",
    ) -> None:
        self._folder = folder
        self.undo = undo
        self._trusted = trusted
        self._find_sandbox = find_sandbox
        self._make_launch = make_launch
        self.held, self.broken = Counter[str](), Counter[str]()
        self.offered = set[str]()

    def kept(self) -> "KeptRules":
        from duckflow.proof.rules import KeptRules

        return KeptRules(self._folder)

    async def breaches(self, scope: UndoScope) -> "dict[str, tuple[KeptRule, list[str]]]":
        """Returns the rules that the changes of this scope break, each with the places where it is broken."""
        broken_rules: dict[str, tuple[KeptRule, list[str]]] = {}
        if not (self._folder.root / RULES).is_dir():
            return broken_rules
        changes = await self.undo.changes(scope)
        for name, rule in (await asyncio.to_thread(self.kept)).items():
            is_concerned = any(rule.fits(change.path) for change in changes)
            breaches = await self._failed(rule) if rule.command and is_concerned else list(rule.breaches(changes))
            (self.broken if breaches else self.held)[name] += is_concerned
            if breaches:
                broken_rules[name] = rule, breaches
        return broken_rules

    async def _failed(self, rule: "KeptRule") -> list[str]:
        """Returns the last line of output if the rule's command failed; nothing if it cannot be run here."""
        from duckflow.programs.run import FloodError, OverrunError, collect

        sandbox = await self._find_sandbox() if self._trusted() else None
        if sandbox is None or sandbox.kind != "bubblewrap":
            return []
        launch = sandbox.confine(self._make_launch(sandbox, rule.command), writes=False)
        try:
            process_output = await collect(launch, seconds=COMMAND_SECONDS, most=MOST_SAID)
        except (TimeoutError, FloodError, OverrunError, OSError):
            return []
        output = b"\n".join((process_output.out, process_output.err)).decode("utf-8", "replace").strip().splitlines()
        return [f"{rule.command}: {(output or [''])[-1]}"] if process_output.code else []

    def of_turn(self, owner: StateOwner, actor: Actor) -> "KeepRules":
        return KeepRules(owner, actor, self, lambda: UndoScope(turn=owner.state.turn))

    def of_agent(self, owner: StateOwner, actor: Actor) -> "KeepRules":
        return KeepRules(owner, actor, self, lambda: self.undo.scope_of(actor))

    def listed(self, wanted: str) -> list[Phrase]:
        """Carries out `/rules`, which lists every rule with how often it was kept and broken in this session, and
        `/rules remove NAME`."""
        rules = self.kept()
        verb, _, name = wanted.strip().partition(" ")
        if verb:
            if verb != "remove" or name not in rules:
                return [say("rules.usage")]
            rules.remove(name)
            return [say("rules.removed", name=name)]
        rows = [
            say("rules.row", name=name, words=rule.words, held=self.held[name], broken=self.broken[name])
            for name, rule in rules.items()
        ]
        return [*(rows or [say("rules.none")]), *(say("rules.unread", path=path) for path in rules.problems)]


class KeepRules(Policy):
    """Sends a turn that breaks a rule back to the model, at most twice."""

    def __init__(self, owner: StateOwner, actor: Actor, rules: ProjectRules, scope: Callable[[], UndoScope]) -> None:
        self._owner = owner
        self._actor = actor
        self._rules = rules
        self._scope = scope
        self._left: dict[str, tuple[KeptRule, list[str]]] = {}
        self._returns = 0

    async def opening(self, turn: TurnSoFar) -> None:
        self._left, self._returns = {}, 0

    async def after(self, turn: TurnSoFar) -> str | None:
        if not turn.ending or turn.ending.outcome != "done" or not turn.state.changed_in_turn:
            return None
        self._left = await self._rules.breaches(self._scope())
        if not self._left or self._returns >= MOST_RETURNS:
            return None
        self._returns += 1
        # A rule stands in a file of the folder, so its words are quoted like any other material.
        lines = [f"{rule.words}\n  {place}" for rule, places in self._left.values() for place in places]
        message = Message(role="tool", operation="rules", text="\n".join(lines[:TOLD]), turn=turn.state.turn)
        self._owner.emit(MessageAdded(message=message))
        return turn.note("rules_broken")

    async def ending(self, turn: TurnSoFar, ending: Ending) -> None:
        if not ending.well:
            return
        for rule, places in self._left.values():
            self._owner.emit(Noticed(what=say("rules.left", words=rule.words, place=places[0])))
        if not self._actor.inner and not self._actor.job_id:
            await self._offer(turn)

    async def _offer(self, turn: TurnSoFar) -> None:
        """Offers to keep a correction of the user's as a rule. Only a message that follows a change can be a
        correction; a wish in a first message is none."""
        if not turn.state.changed_before:
            return
        from duckflow.i18n.words import may_find

        words, language, kinds = (
            turn.wish or turn.request,
            turn.state.language,
            ("forbidden", "path", "unchanged", "command"),
        )
        if not any(may_find(f"rules.{kind}", words, language) for kind in kinds):
            return
        from duckflow.proof.rules import rule_in

        changes = await self._rules.undo.changes(UndoScope(since=max(1, turn.state.turn - 1)))
        rule = rule_in(words, language, changes)
        if (
            rule is None
            or rule.name in self._rules.offered
            or rule.name in (rules := await asyncio.to_thread(self._rules.kept))
        ):
            return
        self._rules.offered.add(rule.name)
        choices = tuple(Choice(key=key, label=say(f"rules.choice.{key}")) for key in ("yes", "no"))
        question = Question(kind="choice", title=say("rules.offer"), details=(quote(rule.text()),), choices=choices)
        if (await self._actor.ask(question)).choice != "yes":
            return
        try:
            self._owner.emit(Noticed(what=say("rules.kept", path=rules.keep(rule))))
        except (OSError, ToolError):
            self._owner.emit(Noticed(what=say("rules.not_kept")))
