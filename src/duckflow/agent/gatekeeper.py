"""Stands between a decision and its deeds: grades them, and asks where the mode says so."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.gate import RiskyAction, gate_question
from duckflow.agent.lasting import what_lasts
from duckflow.agent.permissions import Permission, Permissions, rule_for
from duckflow.agent.phases import Phases
from duckflow.agent.session import Session
from duckflow.events.types import GateAnswered, GateOpened, Noticed, PermissionGiven
from duckflow.safety.policy import Mode, judge
from duckflow.safety.repository import tracked_files
from duckflow.safety.risk import Assessment, assess
from duckflow.state.action import Action, Decision
from duckflow.state.phrase import Phrase
from duckflow.state.question import Answer, Preview, Question
from duckflow.tools.tool import AnyTool, Args


class Ready(NamedTuple):
    """An action whose tool, arguments and preview are at hand."""

    action: Action
    tool: AnyTool
    args: Args
    preview: Preview


class Clearance(NamedTuple):
    """Whether the deeds may be done. `asked`: a person said so. `edited`: their text in place of the proposed one."""

    allowed: bool
    asked: bool = False
    reason: str = ""
    edited: str | None = None
    asked_about: frozenset[str] = frozenset()
    """The actions the question was about."""
    revealed: frozenset[str] = frozenset()
    """The actions whose secrets the model may see: the user was asked for just that."""


class Gatekeeper:
    """One question for everything in a list that needs one; never for what was allowed before."""

    def __init__(
        self, session: Session, phases: Phases, mode: Mode, permissions: Permissions, reversible: bool = False
    ) -> None:
        self._phases = phases
        self.mode = mode
        self._reversible = reversible
        self.permissions = permissions
        self._session = session
        for rule in session.state.allowed:
            permissions.add(Permission.model_validate(rule.values), for_good=False)

    async def clear(self, deeds: Sequence[Ready], decision: Decision, doubtful: bool, actor: Actor) -> Clearance:
        risky: list[RiskyAction] = []
        told: list[Phrase] = []
        for one in deeds:
            changes = not one.tool.reads_only(one.args)
            assessment = self._assess(one)
            verdict = judge(self.mode, assessment, changes, doubtful)
            if verdict == "refuse":
                return Clearance(False, reason=f"mode {self.mode} is read-only: nothing may be changed")
            command = one.tool.command(one.args)
            by_name = bool(assessment.runs_later)
            known = self.permissions.allows(one.action.operation, one.preview.impacts, command, by_name)
            if verdict == "ask" and (assessment.always_ask or doubtful or not known):
                rule = rule_for(one.action.operation, one.preview.impacts, command, by_name)
                lasts = await asyncio.to_thread(self._what_lasts, one)
                editable = one.tool.proposed(one.args) if one.tool.editable(one.args) else ""
                risky.append(RiskyAction(one.action, one.preview, assessment, rule, editable, command, lasts))
            else:
                told += assessment.runs_later
        for reason in dict.fromkeys(told):
            actor.emit(Noticed(what=reason))
        if not risky:
            return Clearance(True)
        return await self._put(risky, decision, doubtful, actor)

    def lets_pass(self, one: Ready) -> bool:
        return judge(self.mode, self._assess(one), changes=not one.tool.reads_only(one.args), doubtful=False) == "pass"

    def _assess(self, one: Ready) -> Assessment:
        return assess(one.tool.deed(one.args, one.preview), Path(self._session.state.folder))

    def _what_lasts(self, one: Ready) -> tuple[Phrase, ...]:
        tool, deed = one.tool, one.tool.deed(one.args, one.preview)
        folder = Path(self._session.state.folder)
        return tuple(what_lasts(deed, tool.command(one.args), tool.goes_on(one.args), folder))

    async def _put(self, risky: Sequence[RiskyAction], decision: Decision, doubtful: bool, actor: Actor) -> Clearance:
        paths = [impact.path for one in risky for impact in one.preview.impacts]
        tracked = await asyncio.to_thread(tracked_files, Path(self._session.state.folder), paths)
        question = gate_question(risky, decision, doubtful, tracked, self._reversible)
        # A background job that waits does not change what the conversation is doing.
        with self._phases.gate() if not actor.job_id else nullcontext(None) as answered:
            actor.emit(GateOpened(question=question))
            answer = await actor.ask(question)
            actor.emit(GateAnswered(question_id=question.question_id, answer=answer))
            clearance = self._meaning(answer, question, risky[0].rule)
            if answered:
                answered(clearance.allowed, clearance.reason)
        revealed = frozenset(one.action.action_id for one in risky if one.assessment.reveals)
        return clearance._replace(asked_about=frozenset(one.action.action_id for one in risky), revealed=revealed)

    def _meaning(self, answer: Answer, question: Question, rule: Permission | None) -> Clearance:
        offered = {choice.key for choice in question.choices}
        match answer.choice:
            case "yes":
                return Clearance(True, asked=True)
            case "edit" if "edit" in offered:
                return Clearance(True, asked=True, edited=answer.text)
            case "session" | "always" as scope if scope in offered and rule:
                self.permissions.add(rule, for_good=scope == "always")
                self._session.emit(PermissionGiven(rule=rule.describe(), scope=scope))
                return Clearance(True, asked=True)
            case _:
                return Clearance(False, asked=True, reason=answer.text)
