"""Stands between a decision and its deeds: grades them, and asks where the mode says so."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.gate_question import RiskyAction, covered, gate_question, habit_of, rules_offered
from duckflow.agent.lasting import may_lose, runs_later_by, what_lasts
from duckflow.agent.permissions import ANY, EDITS, SECRET_FILES, Permission, Permissions, fitting, plan_rules, rule_for
from duckflow.agent.phases import Phases
from duckflow.agent.session import Session
from duckflow.events.types import MessageAdded, ModeChosen, Noticed, PermissionGiven
from duckflow.i18n.answers import about_plan, named_in
from duckflow.i18n.template import note
from duckflow.safety.path_names import names_file
from duckflow.safety.repository import tracked_files
from duckflow.safety.risk import Assessment, Deed, Mode, Ruling, assess, judge
from duckflow.state.action import CHANGING, PROPOSE_PLAN, REVISE_PLAN, Action, Decision
from duckflow.state.message import Message, said_since
from duckflow.state.phrase import Phrase, say
from duckflow.state.plan import Plan
from duckflow.state.question import NOBODY, Answer, Preview, Question
from duckflow.tools.tool import AnyTool, Args


class Ready(NamedTuple):
    """An action whose tool, arguments and preview are at hand."""

    action: Action
    tool: AnyTool
    args: Args
    preview: Preview
    asks: Phrase | None = None
    """Why a hook wants the user to be asked."""
    allowed: bool = False
    """A hook that may do so allows it."""


class Clearance(NamedTuple):
    """Whether the deeds may be done. `asked`: a person said so. `edited`: their text in place of the proposed one."""

    allowed: bool
    asked: bool = False
    reason: str = ""
    edited: str | None = None
    asked_about: frozenset[str] = frozenset()
    """The actions the question was about."""
    wish: bool = False
    """It was no no: the user wants something else first."""
    revealed: frozenset[str] = frozenset()
    """The actions whose secrets the model may see: the user was asked for just that."""
    nobody: bool = False
    """No person is there who could say yes. The reason is what the model can do instead."""
    by_hook: bool = False
    """A hook has said no, and nobody was asked."""
    only: frozenset[str] = frozenset()
    """The actions that a yes was for which named some files."""
    talk: Mapping[str, str] = MappingProxyType({})
    """The user's own words at the Gate, for the model to keep, by the first action that was asked about."""

    @property
    def why_not(self) -> str:
        """The note for the model on how it was answered, where it may not be done."""
        return "moved_nobody" if self.nobody else "moved_wished" if self.wish else "moved_no"

    def free(self, deeds: list[Ready]) -> list[Ready]:
        """All, or with a no those that need none and come before what was asked about, and those that a yes named."""
        asked = [place for place, one in enumerate(deeds) if one.action.action_id in self.asked_about]
        before = deeds[: asked[0] if asked else 0]
        named = [one for one in deeds if one.action.action_id in self.only]
        return deeds if self.allowed else [*before, *named]


HooksAnswer = Callable[[Sequence[Ready], bool, Actor], Awaitable[Clearance | None]]
"""Asks hooks about actions before the user is asked. A yes does not count where the flag says that a person must see
them."""


def _judged(one: Ready, assessment: Assessment, doubtful: bool, mode: Mode) -> Ruling:
    verdict = judge(mode, assessment, changes=not one.tool.reads_only(one.args), doubtful=doubtful)
    return "ask" if verdict == "pass" and (one.tool.outside or one.asks) else verdict


class Gatekeeper:
    """One question for everything in a list that needs one; never for what was allowed before."""

    def __init__(
        self,
        session: Session,
        phases: Phases,
        mode: Mode,
        permissions: Permissions,
        reversible: bool,
        sandboxed: Callable[[], Awaitable[bool]],
    ) -> None:
        """`reversible`: undo is switched on. `sandboxed`: whether commands run in a sandbox here."""
        self._phases = phases
        self.mode = mode
        self.contained = mode is Mode.CONTAINED
        """It was started so: the mode may be chosen again."""
        self._reversible = reversible
        self._sandboxed = sandboxed
        self._said_without_sandbox = False
        self.permissions = permissions
        self._session = session
        if session.state.mode != mode and Mode.CONTAINED in (mode, session.state.mode):
            # It is on record, and no session goes on in this mode unless it is chosen again.
            session.emit(ModeChosen(mode=mode))
        for rule in session.state.allowed:
            permissions.add(Permission.model_validate(rule.values), for_good=False)

    async def clear(
        self, deeds: Sequence[Ready], decision: Decision, doubtful: bool, actor: Actor, hooks: HooksAnswer
    ) -> Clearance:
        risky: list[RiskyAction] = []
        told: list[Phrase] = []
        by_person = False
        mode = await self._mode_here()
        if mode is Mode.CONTAINED:
            return await self._clear_unasked(deeds)
        for one in deeds:
            deed = self._deed(one)
            assessment = await self._assess(one, deed, mode)
            draft = None if actor.for_user else self._draft_for(one)
            verdict = "ask" if draft else _judged(one, assessment, doubtful, mode)
            if verdict == "refuse":
                return Clearance(False, reason=f"mode {self.mode} is read-only: nothing may be changed")
            target = one.tool.target(one.args)
            command, by_name = target or one.tool.command(one.args), bool(assessment.runs_later)
            operation, impacts = one.action.operation, one.preview.impacts
            said, tools = one.tool.said, deed.command.tools if deed.command else ()
            allowed = self.permissions.allows(operation, impacts, command, by_name, said, tools, self._plan_id())
            known = one.tool.allowed or one.allowed or allowed or self._approved_check(command, deed)
            changed = self.permissions.changed(operation, said) if said and not known else None
            reasons = tuple(filter(None, (changed, one.asks, draft)))
            for why in reasons:
                known, assessment = False, assessment._replace(reasons=(*assessment.reasons, why))
            if verdict == "ask" and (doubtful or not known or (assessment.always_ask and not target)):
                by_person |= bool(doubtful or reasons or assessment.always_ask)
                rule = rule_for(operation, impacts, command, by_name, tools)
                if assessment.wants_secrets:
                    rule, assessment = SECRET_FILES, assessment._replace(always_ask=False)
                if one.tool.outside:
                    rule, command = Permission(operation=operation, pattern=ANY, said=said), one.preview.diff
                assessment = assessment._replace(always_ask=assessment.always_ask and not target)
                lasts = await asyncio.to_thread(self._what_lasts, one, deed)
                if deed.command and deed.command.only_runs_code and self._reversible and not lasts:
                    # The sandbox holds it and undo takes it back: its risk is that of an edit.
                    assessment = assessment._replace(level="medium")
                editable = one.tool.proposed(one.args) if one.tool.editable(one.args) else ""
                reads = deed.effect == "read" and not command
                risky.append(RiskyAction(one.action, one.preview, assessment, rule, editable, command, lasts, reads))
            else:
                told += assessment.runs_later
        for reason in dict.fromkeys(told):
            actor.emit(Noticed(what=reason))
        if not risky:
            return Clearance(True)
        asked_about = frozenset(one.action.action_id for one in risky)
        asked = [one for one in deeds if one.action.action_id in asked_about]
        clearance = await hooks(asked, by_person, actor) or await self._put(risky, decision, doubtful, actor)
        return clearance._replace(asked_about=asked_about)

    async def _clear_unasked(self, deeds: Sequence[Ready]) -> Clearance:
        """Everything may be done but what is forbidden on every machine, and what a hook wants a person to see."""
        for one in deeds:
            assessment = await self._assess(one, self._deed(one), Mode.CONTAINED)
            if one.asks or judge(Mode.CONTAINED, assessment, changes=True, doubtful=False) == "refuse":
                return Clearance(False, asked_about=frozenset({one.action.action_id}), nobody=True)
        return Clearance(True, revealed=frozenset(one.action.action_id for one in deeds))

    async def lets_pass(self, one: Ready) -> bool:
        mode = await self._mode_here()
        assessment = await self._assess(one, self._deed(one), mode)
        return not self._draft_for(one) and _judged(one, assessment, False, mode) == "pass"

    async def _mode_here(self) -> Mode:
        """Without a sandbox the mode `auto` is no more than `auto-edit`, and that is said once."""
        if self.mode is not Mode.AUTO or await self._sandboxed():
            return self.mode
        if not self._said_without_sandbox:
            self._said_without_sandbox = True
            self._session.emit(Noticed(what=say("mode.without_sandbox")))
        return Mode.AUTO_EDIT

    def _draft_for(self, one: Ready) -> Phrase | None:
        """Says that a draft waits for the user's yes. Until then no mode lets a change pass without a question that may
        belong to its steps; the mode that only reads refuses it anyway."""
        state = self._session.state
        plan = state.plan
        if plan is None or plan.status != "draft" or self.mode is Mode.PLAN:
            return None
        if one.tool.effect not in CHANGING or one.tool.reads_only(one.args):
            return None
        subjects = [impact.path for impact in one.preview.impacts] or one.tool.command(one.args).split()[:1]
        wanted = "\n".join(said_since(state.messages, (PROPOSE_PLAN, REVISE_PLAN)))
        beside = all(names_file(wanted, subject) and not plan.names(subject) for subject in subjects)
        return None if subjects and beside else say("risk.draft", name=plan.name)

    def _approved_check(self, command: str, deed: Deed) -> bool:
        """The plan that the user has agreed to names this very command as a check, and it runs shut in."""
        plan, judged = self._session.state.plan, deed.command
        if plan is None or not plan.under_way or judged is None:
            return False
        return command in plan.checks and judged.shut_in and not judged.leaves

    def _deed(self, one: Ready) -> Deed:
        deed = one.tool.deed(one.args, one.preview)
        if deed.command and not self._reversible:
            # Without undo a run of the tests is a command like others.
            return deed._replace(command=deed.command._replace(tools=()))
        return deed

    async def _assess(self, one: Ready, deed: Deed, mode: Mode) -> Assessment:
        assessment = assess(deed, Path(self._session.state.folder))
        if mode is not Mode.AUTO or assessment.level == "low":
            return assessment
        return assessment._replace(comes_back=await asyncio.to_thread(self._comes_back, one, deed, assessment))

    def _comes_back(self, one: Ready, deed: Deed, assessment: Assessment) -> bool:
        """Whether sandbox and undo make it harmless: nothing of it lasts, leaves the folder or runs later."""
        if not self._reversible or assessment.runs_later or one.tool.outside or deed.effect not in ("write", "run"):
            return False
        command, folder = one.tool.command(one.args), Path(self._session.state.folder)
        if deed.command and (not deed.command.shut_in or deed.command.leaves or runs_later_by(command, folder)):
            return False
        return not self._what_lasts(one, deed) and not may_lose(deed, command, folder)

    def _what_lasts(self, one: Ready, deed: Deed) -> tuple[Phrase, ...]:
        tool, folder = one.tool, Path(self._session.state.folder)
        return tuple(what_lasts(deed, tool.command(one.args), tool.goes_on(one.args), folder))

    async def _put(self, risky: Sequence[RiskyAction], decision: Decision, doubtful: bool, actor: Actor) -> Clearance:
        paths = [impact.path for one in risky for impact in one.preview.impacts]
        tracked = await asyncio.to_thread(tracked_files, Path(self._session.state.folder), paths)
        question = gate_question(risky, decision, doubtful, tracked, self._reversible)
        habit = habit_of(risky, question)
        if habit and (times := dict(self.permissions.usual()).get(habit)):
            question = question.model_copy(update={"details": (say("gate.usual", times=times),)})
        with self._phases.gate() if actor.follows_steps else nullcontext(None) as answered:
            answer = await actor.ask(question)
            clearance = self._meaning(answer, question, risky)
            if habit and not clearance.nobody and (clearance.allowed or not clearance.reason):
                self.permissions.learn(habit, clearance.allowed)
            if answered:
                answered(clearance.allowed, clearance.why_not)
        talk = self._talk(answer)
        if talk and actor.job_id:
            heading = note(self._session.state.language, "gate_of_job", job=question.job_name or actor.job_id)
            told = Message(role="system", text=f"{heading}\n{talk}", turn=self._session.state.turn)
            self._session.emit(MessageAdded(message=told))
        revealed = frozenset(one.action.action_id for one in risky if one.assessment.reveals)
        if clearance.nobody and doubtful:
            clearance = clearance._replace(reason=note(self._session.state.language, "repaired"))
        return clearance._replace(revealed=revealed, talk={risky[0].action.action_id: talk} if talk else {})

    def _talk(self, answer: Answer) -> str:
        told = partial(note, self._session.state.language)
        lines = [told("gate_talk", asked=one.asked, told=one.told) for one in answer.talk]
        return "\n".join([*lines, *([told("gate_said", said=answer.said)] if answer.said else [])])

    def _meaning(self, answer: Answer, question: Question, risky: Sequence[RiskyAction]) -> Clearance:
        offered = {choice.key for choice in question.choices}
        match answer.choice:
            case "yes":
                named = [one for one in risky if not answer.paths or one.only_touches(answer.paths)]
                only = frozenset(one.action.action_id for one in named if len(named) < len(risky))
                whole = len(named) == len(risky)
                return Clearance(whole, asked=True, reason=answer.text, wish=not whole, only=only)
            case "edit" if "edit" in offered:
                return Clearance(True, asked=True, edited=answer.text)
            case "session" | "always" as scope:
                rules = self._meant(answer.about, risky)
                partly = answer.bounded and not all(covered(one, rules) for one in risky)
                if rules or not partly:
                    self._allow(rules, scope, answer.about)
                return Clearance(not partly, asked=True, reason=answer.text if partly else "", wish=partly)
            case "wish":
                if answer.kept_scope and (rules := self._meant(answer.about, risky)):
                    self._allow(rules, "session", answer.about)
                return Clearance(False, asked=True, reason=answer.text, wish=True)
            case _:
                return Clearance(False, asked=True, reason=answer.text, nobody=answer.choice == NOBODY)

    def _plan_id(self) -> str:
        plan = self._session.state.plan
        return plan.plan_id if plan and plan.under_way and not plan.ended else ""

    def _meant(self, about: str, risky: Sequence[RiskyAction]) -> list[Permission]:
        """The rules that a yes is for which goes further: those that fit what was named; or, where that is the plan,
        rules for its files and what is asked about here, as long as it is carried out."""
        state = self._session.state
        whole = about_plan(about, state.language) if self._plan_id() else ""
        if not whole or state.plan is None:
            offered = ((one.rule, one.preview.impacts) for one in risky if one.rule in rules_offered(risky))
            named = (fitting(rule, impacts, about, state.language) for rule, impacts in offered if rule)
            return list(dict.fromkeys(filter(None, named)))
        rules = plan_rules(state.plan)
        more = [rule for rule in rules_offered(risky) if whole == "all" and (rule.operation != EDITS or not rules)]
        return [*rules, *(rule.model_copy(update={"plan": self._plan_id()}) for rule in more)]

    def allow_plan(self, plan: Plan, about: str) -> None:
        """A yes to a plan that goes further than the plan itself: its files may be edited while it is carried out. What
        else was named is asked about when it comes."""
        language = self._session.state.language
        meant = not named_in(about, language) or about_plan(about, language)
        self._allow(plan_rules(plan) if meant else [], "session", "")

    def _allow(self, rules: Sequence[Permission], scope: Literal["session", "always"], about: str) -> None:
        """People are told of each rule before it counts."""
        if not rules:
            self._session.emit(Noticed(what=say("permission.only_once")))
        for rule in dict.fromkeys(rule.as_named(about, self._session.state.language) for rule in rules):
            self._session.emit(Noticed(what=rule.begins(scope)))
            self.permissions.add(rule, for_good=scope == "always")
            self._session.emit(PermissionGiven(rule=rule.describe(), scope=scope))
