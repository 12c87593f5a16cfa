"""Stands between the model's reply and its actions: assesses their risk, and asks the user at the Gate (the question
before risky actions) where the mode says so."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.gate_question import (
    RiskyAction,
    Scope,
    covered,
    gate_question,
    habit_of,
    only_reads,
    rules_offered,
)
from duckflow.agent.meant_rules import rules_meant
from duckflow.agent.narrow_yes import within
from duckflow.agent.permissions import ANY, EDITS, SECRET_FILES, Permission, Permissions, rule_for
from duckflow.agent.phases import Phases
from duckflow.agent.plan_permissions import PlanPermissions, RulesOfYes, plan_rules
from duckflow.agent.recovery import Recovery, Unkept
from duckflow.agent.said_at_gates import SaidAtGates
from duckflow.agent.session import Session
from duckflow.errors import ToolError
from duckflow.events.types import MessageAdded, ModeChosen, Noticed
from duckflow.i18n.answer_scope import named_in
from duckflow.i18n.answers import WholeAnswer, about_plan
from duckflow.i18n.template import note
from duckflow.safety.path_names import names_file, shown
from duckflow.safety.repository import tracked_files
from duckflow.safety.risk import Assessment, Deed, Mode, Ruling, assess, judge
from duckflow.state.action import CHANGING, PROPOSE_PLAN, REVISE_PLAN, Action, Decision
from duckflow.state.data import Phrase, say
from duckflow.state.message import AT_GATE, Message, said_since
from duckflow.state.plan import Plan
from duckflow.state.question import NOBODY, Answer, Preview, Question
from duckflow.tools.files.change import refused_as_changed
from duckflow.tools.tool import AnyTool, Args, ChangeLimit, Done


class Ready(NamedTuple):
    """An action with its tool, checked arguments and preview."""

    action: Action
    tool: AnyTool
    args: Args
    preview: Preview
    asks: Phrase | None = None
    """The reason why a hook wants the user to be asked."""
    allowed: bool = False
    """True if a hook that is entitled to do so has allowed the action."""
    places: tuple[str, ...] = ()
    """The places to which the paths of the call led when it was prepared. The user was asked about these."""

    def run(self, actor: Actor, limit: ChangeLimit | None) -> Awaitable[Done]:
        """Runs the tool within the limit, unless its paths lead elsewhere by now, or the call goes beyond a limit that
        the user has set meanwhile."""
        if self.tool.places(self.args) != self.places:
            raise refused_as_changed(", ".join(map(shown, self.tool.touches(self.args) or self.places)))
        if limit and self.goes_beyond(limit):
            what_now = "If this is still needed, call it again: the user is asked."
            told_model = f"Not run: the user has meanwhile limited changes to {limit.shown}. {what_now}"
            raise ToolError(told_model, "risk.limited", limit=limit.shown)
        return self.tool.run_for(self.args, actor.call(limit))

    def goes_beyond(self, limit: ChangeLimit) -> bool:
        """Says whether the call changes a file outside of the limit, or nothing keeps it from doing so."""
        if self.tool.effect not in CHANGING or self.tool.reads_only(self.args):
            return False
        paths = [impact.path for impact in self.preview.impacts]
        return any(not within(path, limit.names) for path in paths) or not self.tool.keeps_limits(self.args)


class Clearance(NamedTuple):
    """The answer to the question whether actions may be done. `asked`: a person has answered. `edited`: the text of the
    user in place of the proposed one."""

    allowed: bool
    asked: bool = False
    reason: str = ""
    edited: str | None = None
    asked_about: frozenset[str] = frozenset()
    """The actions that the question was about."""
    wish: bool = False
    """True if the user did not refuse the actions, but wants something else to be done first."""
    unlimited: frozenset[str] = frozenset()
    """The actions that may change more than the limit of an earlier yes, because the user has allowed just that."""
    revealed: frozenset[str] = frozenset()
    """The actions whose secrets the model may see, because the user was asked for just that."""
    nobody: bool = False
    """True if no person is there who could allow the actions. `reason` then says what the model can do instead."""
    by_hook: bool = False
    """True if a hook has refused, and nobody was asked."""
    only: frozenset[str] = frozenset()
    """The actions that the user allowed by naming their files."""
    talk: Mapping[str, str] = MappingProxyType({})
    """The user's own words at the Gate (the question before risky actions), for the model to keep. The key is the id of
    the first action that was asked about."""

    @property
    def why_not(self) -> str:
        """Returns the key of the note that tells the model why the user's answer was not a yes."""
        return "moved_nobody" if self.nobody else "moved_wished" if self.wish else "moved_no"

    def limit(self, call: Ready, limit: ChangeLimit | None) -> ChangeLimit | None:
        """Returns the limit that holds for a call when it runs. The given limit may be younger than the clearance."""
        return None if call.action.action_id in self.unlimited else limit

    def free(self, deeds: list[Ready]) -> list[Ready]:
        """Returns the actions that may run: all of them if they are allowed. After a refusal these are the actions
        before the first one that the user was asked about, and those that the user named."""
        asked_positions = [index for index, call in enumerate(deeds) if call.action.action_id in self.asked_about]
        earlier_calls = deeds[: asked_positions[0] if asked_positions else 0]
        named_calls = [call for call in deeds if call.action.action_id in self.only]
        return deeds if self.allowed else [*earlier_calls, *named_calls]


HooksAnswer = Callable[[Sequence[Ready], bool, Actor], Awaitable[Clearance | None]]
"""A function that asks hooks about actions before the user is asked. If its second argument is true, a person must see
the actions, so that a yes of a hook does not count."""


def _judged(call: Ready, assessment: Assessment, doubtful: bool, mode: Mode) -> Ruling:
    verdict = judge(mode, assessment, changes=not call.tool.reads_only(call.args), doubtful=doubtful)
    return "ask" if verdict == "pass" and (call.tool.outside or call.asks) else verdict


def _held_within(call: Ready, limit: ChangeLimit | None) -> Iterator[Phrase]:
    """Yields what the user should know of a command that will run within the limit of an earlier yes."""
    if limit and call.tool.command(call.args) and not call.tool.reads_only(call.args) and not call.goes_beyond(limit):
        yield say("risk.within", limit=limit.shown)


def _approved_check(plan: Plan | None, command: str, deed: Deed) -> bool:
    """Says whether the approved plan names exactly this command as a check, and the command runs in the sandbox."""
    if plan is None or not plan.under_way or deed.command is None:
        return False
    return command in plan.checks and deed.command.shut_in and not deed.command.leaves


def _talk(answer: Answer, said: str, language: str) -> str:
    """Returns what the user asked and said at a Gate (the question before risky actions), in words for the model."""
    gate_note = partial(note, language)
    lines = [gate_note("gate_talk", asked=exchange.asked, told=exchange.told) for exchange in answer.talk]
    return "\n".join([*lines, *([gate_note("gate_said", said=said)] if said else [])])


class Gatekeeper:
    """Asks the user one question about all actions of a list that need one. An action that a rule of the user allows is
    asked about only if its risk demands a question in every mode."""

    def __init__(
        self,
        session: Session,
        phases: Phases,
        mode: Mode,
        permissions: Permissions,
        reversible: bool,
        sandboxed: Callable[[], Awaitable[bool]],
        unkept: Unkept,
    ) -> None:
        """`reversible` means that undo is switched on. `sandboxed` says whether commands run in a sandbox here."""
        self._phases = phases
        self.mode = mode
        self.contained = mode is Mode.CONTAINED
        """True if the session was started in the mode `contained`, so that this mode may be chosen again."""
        self._sandboxed = sandboxed
        self._said_without_sandbox = False
        self.permissions = permissions
        self._session = session
        self._recovery = Recovery(Path(session.state.folder), reversible, unkept)
        if session.state.mode != mode and Mode.CONTAINED in (mode, session.state.mode):
            # The change is journaled, and no session goes on in this mode unless it is chosen again.
            session.emit(ModeChosen(mode=mode))
        for rule in session.state.allowed:
            permissions.add(Permission.model_validate(rule.values), for_good=False)
        self._plans = PlanPermissions(session, permissions)
        self.said = SaidAtGates(session)
        self._rules = RulesOfYes(session, permissions, self._plans)

    async def clear(
        self, deeds: Sequence[Ready], decision: Decision, doubtful: bool, actor: Actor, hooks: HooksAnswer
    ) -> Clearance:
        """Decides whether actions may run: by risk, mode, rules, and the checks that the approved plan names. Where
        these do not allow an action, hooks or the user are asked."""
        risky, warnings, needs_person = list[RiskyAction](), list[Phrase](), False
        mode, plan_id = await self._mode_here(), self._plans.plan_of(actor) if self._session.state.plans else ""
        if mode is Mode.CONTAINED and not self.said.limit_for(actor):
            return await self._clear_unasked(deeds)
        for call in deeds:
            deed = self._deed(call)
            assessment = await self._assess(call, deed, mode)
            held = self._held_back(call, actor)
            verdict = "ask" if held else _judged(call, assessment, doubtful, mode)
            if verdict == "refuse":
                return Clearance(False, reason=f"mode {self.mode} is read-only: nothing may be changed")
            target = call.tool.target(call.args)
            command, only_by_name = target or call.tool.command(call.args), bool(assessment.runs_later)
            operation, impacts = call.action.operation, call.preview.impacts
            description, tools = call.tool.said, deed.command.tools if deed.command else ()
            asks, look_at_code = verdict == "ask", self._recovery.code_runs
            code_runs = await look_at_code(call.tool, call.args, deed, assessment) if asks else ()
            is_plans_code, tools = bool(code_runs) and self._plans.carries_out(actor), code_runs or tools
            is_plans_code &= not self.said.owes(actor)
            # No rule covers the background, where undo does not follow a command.
            ruled = "" if call.tool.goes_on(call.args) else command
            rule_allows = self.permissions.allows(operation, impacts, ruled, only_by_name, description, tools, plan_id)
            rule_allows = rule_allows and (bool(deed.command and deed.command.tools) or not self.said.owes(actor))
            rule_allows = rule_allows or is_plans_code or _approved_check(self._session.state.plan, command, deed)
            is_allowed = call.tool.allowed or call.allowed or rule_allows
            difference = self.permissions.changed(operation, description) if description and not is_allowed else None
            reasons = tuple(filter(None, (difference, call.asks, *held)))
            for why in reasons:
                is_allowed, assessment = False, assessment._replace(reasons=(*assessment.reasons, why))
            if asks and (doubtful or not is_allowed or (assessment.always_ask and not target)):
                needs_person |= bool(doubtful or reasons or assessment.always_ask)
                rule = rule_for(operation, impacts, ruled, only_by_name, tools)
                if assessment.wants_secrets:
                    rule, assessment = SECRET_FILES, assessment._replace(always_ask=False)
                if call.tool.outside:
                    rule, command = Permission(operation=operation, pattern=ANY, said=description), call.preview.diff
                told_reasons = (*assessment.reasons, *_held_within(call, self.said.limit_for(actor)))
                assessment = assessment._replace(always_ask=assessment.always_ask and not target, reasons=told_reasons)
                lasts = await self._recovery.what_lasts(call.tool, call.args, deed)
                if not lasts and self._recovery.like_an_edit(call.tool, call.args, deed):
                    assessment = assessment._replace(level="medium")
                editable = call.tool.proposed(call.args) if call.tool.editable(call.args) else ""
                rules = (rule, rule_for(operation, impacts, ruled, only_by_name) if code_runs else rule)
                looks = only_reads(deed, command)
                risky.append(
                    RiskyAction(call.action, call.preview, assessment, *rules, editable, command, lasts, looks)
                )
            else:
                warnings += assessment.runs_later
        for reason in dict.fromkeys(warnings):
            actor.emit(Noticed(what=reason))
        if not risky:
            return Clearance(True)
        asked_ids = frozenset(risky_action.action.action_id for risky_action in risky)
        asked_calls = [call for call in deeds if call.action.action_id in asked_ids]
        clearance = await hooks(asked_calls, needs_person, actor) or await self._put(risky, decision, doubtful, actor)
        return clearance._replace(asked_about=asked_ids)

    async def _clear_unasked(self, deeds: Sequence[Ready]) -> Clearance:
        """Allows all actions unasked, except those forbidden in every mode, and those that a hook wants seen."""
        for call in deeds:
            assessment = await self._assess(call, self._deed(call), Mode.CONTAINED)
            if call.asks or judge(Mode.CONTAINED, assessment, changes=True, doubtful=False) == "refuse":
                return Clearance(False, asked_about=frozenset({call.action.action_id}), nobody=True)
        return Clearance(True, revealed=frozenset(call.action.action_id for call in deeds))

    async def lets_pass(self, call: Ready, actor: Actor) -> bool:
        mode = await self._mode_here()
        assessment = await self._assess(call, self._deed(call), mode)
        return not self._held_back(call, actor) and _judged(call, assessment, False, mode) == "pass"

    async def _mode_here(self) -> Mode:
        """Returns the mode that is in effect. Without a sandbox, `auto` works like `auto-edit`, and the user is told so
        once."""
        if self.mode is not Mode.AUTO or await self._sandboxed():
            return self.mode
        if not self._said_without_sandbox:
            self._said_without_sandbox = True
            self._session.emit(Noticed(what=say("mode.without_sandbox")))
        return Mode.AUTO_EDIT

    def _held_back(self, call: Ready, actor: Actor) -> tuple[Phrase, ...]:
        """Returns the reasons to ask even where the mode or a rule allows a change: it may go beyond what the user
        limited their yes to; or a draft of a plan waits for the user's yes, and the change may belong to the plan's
        steps."""
        is_change = call.tool.effect in CHANGING and not call.tool.reads_only(call.args)
        if actor.for_user or self.mode is Mode.PLAN or not is_change:
            return ()
        command, plan, limit = call.tool.command(call.args), self._session.state.plan, self.said.limit_for(actor)
        reasons = [say("risk.limited", limit=limit.shown) if limit and call.goes_beyond(limit) else None]
        if plan and plan.status == "draft":
            subjects = [impact.path for impact in call.preview.impacts] or command.split()[:1]
            said_text = "\n".join(said_since(self._session.state.messages, (PROPOSE_PLAN, REVISE_PLAN)))
            is_outside_plan = all(names_file(said_text, subject) and not plan.names(subject) for subject in subjects)
            reasons.append(None if subjects and is_outside_plan else say("risk.draft", name=plan.name))
        return tuple(filter(None, reasons))

    def _deed(self, call: Ready) -> Deed:
        deed = call.tool.deed(call.args, call.preview)
        if deed.command and not self._recovery.reversible:
            # Without undo a run of the tests is a command like any other.
            return deed._replace(command=deed.command._replace(tools=()))
        return deed

    async def _assess(self, call: Ready, deed: Deed, mode: Mode) -> Assessment:
        assessment = assess(deed, Path(self._session.state.folder))
        if mode is not Mode.AUTO or assessment.level == "low":
            return assessment
        return await self._recovery.weighed(call.tool, call.args, deed, assessment)

    async def _put(self, risky: Sequence[RiskyAction], decision: Decision, doubtful: bool, actor: Actor) -> Clearance:
        paths = [impact.path for risky_action in risky for impact in risky_action.preview.impacts]
        tracked_paths = await asyncio.to_thread(tracked_files, Path(self._session.state.folder), paths)
        question = gate_question(risky, decision, doubtful, tracked_paths, self._recovery.reversible)
        habitual_rule = habit_of(risky, question)
        if habitual_rule and (times := dict(self.permissions.usual()).get(habitual_rule)):
            question = question.model_copy(update={"details": (say("gate.usual", times=times),)})
        with self._phases.gate() if actor.follows_steps else nullcontext(None) as report_answer:
            answer = await actor.ask(question)
            clearance, earlier_limit = self._meaning(answer, question, risky), self.said.limit_for(actor)
            allowed_text = self._rules.told()
            self.said.hear(actor, clearance.allowed, answer)
            if habitual_rule and not clearance.nobody and (clearance.allowed or not clearance.reason):
                self.permissions.learn(habitual_rule, clearance.allowed)
            if report_answer:
                report_answer(clearance.allowed, clearance.why_not)
        language = self._session.state.language
        talk_text = "\n".join(filter(None, (_talk(answer, answer.said, language), allowed_text)))
        words = "" if clearance.nobody else _talk(answer, answer.said or clearance.reason, language)
        if words and actor.job_id:
            heading = note(language, "gate_of_job", job=question.job_name or actor.job_id)
            text = "\n".join(filter(None, (heading, words, allowed_text)))
            turn = self._session.state.turn
            self._session.emit(MessageAdded(message=Message(role="system", text=text, turn=turn, operation=AT_GATE)))
        revealed = frozenset(risky_action.action.action_id for risky_action in risky if risky_action.assessment.reveals)
        # A first limit that comes with this yes is about what is done later.
        begins_limit = bool(answer.limit) and earlier_limit is None
        unlimited_actions = [risky_action.action for risky_action in risky if begins_limit or risky_action.asks_beyond]
        unlimited = frozenset(action.action_id for action in unlimited_actions)
        if clearance.nobody and doubtful:
            clearance = clearance._replace(reason=note(self._session.state.language, "repaired"))
        clearance = clearance._replace(revealed=revealed, unlimited=unlimited)
        return clearance._replace(talk={risky[0].action.action_id: talk_text} if talk_text else {})

    def _meaning(self, answer: Answer, question: Question, risky: Sequence[RiskyAction]) -> Clearance:
        offered_keys = {choice.key for choice in question.choices}
        match answer.choice:
            case "yes":
                actions = [
                    risky_action
                    for risky_action in risky
                    if not answer.paths or risky_action.only_touches(answer.paths)
                ]
                ids = frozenset(risky_action.action.action_id for risky_action in actions if len(actions) < len(risky))
                names_all = len(actions) == len(risky)
                if answer.kept_scope and (rules := self._meant(answer.about, risky, "session")):
                    self._rules.allow(rules, "session", answer.about)
                return Clearance(names_all, asked=True, reason=answer.text, wish=not names_all, only=ids)
            case "edit" if "edit" in offered_keys:
                return Clearance(True, asked=True, edited=answer.text)
            case "session" | "always" as scope:
                rules = self._meant(answer.about, risky, scope)
                is_partial = answer.bounded and not all(covered(risky_action, rules) for risky_action in risky)
                if rules or not is_partial:
                    self._rules.allow(rules, scope, answer.about)
                return Clearance(not is_partial, asked=True, reason=answer.text if is_partial else "", wish=is_partial)
            case "wish":
                if answer.kept_scope and (rules := self._meant(answer.about, risky, "session")):
                    self._rules.allow(rules, "session", answer.about)
                return Clearance(False, asked=True, reason=answer.text, wish=True)
            case _:
                return Clearance(False, asked=True, reason=answer.text, nobody=answer.choice == NOBODY)

    def _meant(self, about: str, risky: Sequence[RiskyAction], scope: Scope) -> list[Permission]:
        """Returns the rules to set up after a yes that holds for more than one action: the offered ones that fit the
        subject that the user named. If the subject is the plan, they cover the plan's files, and end with the plan."""
        state = self._session.state
        plan, extent = state.plan, about_plan(about, state.language)
        if not extent or plan is None or not plan.under_way:
            return rules_meant(risky, scope, about, state.language)
        rules = plan_rules(plan)
        offers = [
            rule for rule in rules_offered(risky, scope) if (not rules if rule.operation == EDITS else extent == "all")
        ]
        return [*rules, *(rule.model_copy(update={"plan": plan.plan_id}) for rule in offers)]

    def allow_plan(self, plan: Plan, answer: WholeAnswer) -> str:
        """Notes the user's yes to the plan. If it also allows edits, adds the rules: the plan's files may then be
        edited while the plan is carried out. Actions on anything else that the user named still need a question of
        their own. Returns the rules in words for the model."""
        self._plans.approved(plan.plan_id)
        if answer.scope not in ("session", "always"):
            return ""
        language, about = self._session.state.language, answer.about
        rules = plan_rules(plan)
        shown_rules = " ".join(rule.shown() for rule in rules).casefold()
        is_about_plan = all(name in shown_rules for name in named_in(about, language)) or about_plan(about, language)
        self._rules.allow(rules if is_about_plan else [], "session", "")
        return self._rules.told()
