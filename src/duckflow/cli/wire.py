"""The only place where objects are built."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies, ProcedureCalls
from duckflow.agent.choices import Choices
from duckflow.agent.connection import Connected, ModelConnection
from duckflow.agent.conversation import ChatLoop
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.duck_answer import DuckCallAnswers
from duckflow.agent.gatekeeper import Gatekeeper
from duckflow.agent.jobs import JobRunner
from duckflow.agent.memory import ConversationMemory
from duckflow.agent.phases import Phases
from duckflow.agent.planned_work import PlannedWork
from duckflow.agent.policies.answered import AnswerEnds
from duckflow.agent.policies.asked_summary import AskedSummary
from duckflow.agent.policies.material import BringMaterial
from duckflow.agent.policies.named_files import ReadNamedFiles
from duckflow.agent.policies.owed_files import OwedFiles
from duckflow.agent.policies.plan_answer import PlanAnswer, PlanApproval
from duckflow.agent.policies.review import ReviewByRecord
from duckflow.agent.policies.tryout import TryOut
from duckflow.agent.policies.wanted_plan import HoldToPlan
from duckflow.agent.project import Project
from duckflow.agent.questions import Questions
from duckflow.agent.session import Session
from duckflow.agent.summaries import Summarizer
from duckflow.agent.thinker import Thinker
from duckflow.agent.turn import Turn
from duckflow.agent.turn_pacemaker import TurnPacemaker
from duckflow.agent.turns import Turns
from duckflow.agent.undo import UndoKeeper
from duckflow.agent.user_commands import UserCommands
from duckflow.config.load import transition_table
from duckflow.config.settings import Settings
from duckflow.events.ports import Ask, Emit
from duckflow.events.types import Noticed
from duckflow.i18n.words import Words
from duckflow.memory.castle import Castle
from duckflow.memory.facts import ProjectFacts
from duckflow.memory.gravel import Gravel
from duckflow.memory.tokens import count
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.prompts.compile import Compiler
from duckflow.prompts.layers import Layers
from duckflow.safety.permissions import Permissions
from duckflow.safety.workspace import Workspace
from duckflow.state.phrase import say
from duckflow.store.paths import Paths
from duckflow.tools.plan.drafting import Drafter
from duckflow.tools.plan.folder import WorkFolder
from duckflow.tools.plan.task_check import usable_in_tasks
from duckflow.tools.tool import AnyTool
from duckflow.tools.toolbox import Toolbox, packaged_operations

if TYPE_CHECKING:
    from duckflow.commands.sessions import Pick
    from duckflow.commands.table import Commands
    from duckflow.llm.choice import ModelChoice
    from duckflow.safety.commands.verdict import CommandVerdict
    from duckflow.safety.sandbox.sandbox import Sandbox
    from duckflow.safety.undo.undo import Undo
    from duckflow.tools.shell.background import Background

Connector = Callable[[bool], Awaitable[Connected]]
"""Finds a model; the second one, for another opinion, when it is told so."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a conversation is built from."""

    settings: Settings
    paths: Paths
    folder: Path
    words: Words
    model_flag: str = ""


class Wired(NamedTuple):
    """A conversation, the thinker (to be warmed), and what ends everything that was started for it."""

    conversation: ChatLoop
    thinker: Thinker
    close: Callable[[], Awaitable[None]]
    toolbox: Toolbox


class Sandboxes:
    """The sandbox of a conversation, looked for when the first command comes; then the user is told which it is."""

    def __init__(self, wiring: Wiring, emit: Emit) -> None:
        self._wiring = wiring
        self._emit = emit
        self._found: Sandbox | None = None
        self._looking = asyncio.Lock()
        self._background: Background | None = None

    async def find(self) -> "Sandbox":
        async with self._looking:
            if self._found is None:
                # Each kind is tried with a real process, which may take long; keys are still answered.
                self._found = await asyncio.to_thread(self._choose)
                self._emit(Noticed(what=self._found.says))
            return self._found

    def _choose(self) -> "Sandbox":
        from duckflow.safety.sandbox.choose import choose

        paths, settings = self._wiring.paths, self._wiring.settings
        return choose(settings.sandbox, self._wiring.folder, private=[paths.data, paths.config])

    def runner(self) -> AnyTool:
        from duckflow.tools.shell.background import Background
        from duckflow.tools.shell.run import ShellRun

        self._background = Background()
        settings = self._wiring.settings.shell
        return ShellRun(self.find, settings, self.judge, self._background)

    async def aclose(self) -> None:
        if self._background:
            await self._background.close()
        if self._found:
            self._found.close()

    def judge(self, command: str) -> "CommandVerdict":
        from duckflow.safety.commands.facts import CommandFacts
        from duckflow.safety.commands.judge import judge_command
        from duckflow.safety.repository import git_runs_programs

        folder = self._wiring.folder
        # Looked at anew each time: a command may have changed the repository's settings.
        runs_programs = "git" in command and git_runs_programs(folder)
        return judge_command(command, CommandFacts(str(folder), str(Path.home()), runs_programs))


def wire(wiring: Wiring, session: Session, connect: Connector | None = None, pick: "Pick | None" = None) -> Wired:
    """A conversation on `session`; without a `connect` of its own it looks for a model. `pick` lets the user choose a
    session from a list."""
    settings = wiring.settings
    questions = Questions(session.emit)
    sandboxes = Sandboxes(wiring, session.emit)
    workspace = Workspace(wiring.folder)
    remembering = _memory(wiring, session, workspace)
    project = Project(workspace, remembering.known, remembering.lessons)

    def make() -> list[AnyTool]:
        from duckflow.cli.toolset import make_tools

        files, heading = settings.files, wiring.words("lessons.heading")
        # Opened when the first tool is needed: a folder that is gone by then is noticed.
        return make_tools(
            session, Workspace(wiring.folder), files, sandboxes.runner(), drafter, jobs, remembering, heading
        )

    toolbox = Toolbox(packaged_operations(), make)
    compiler = Compiler(toolbox.operations, Layers(project, settings.prompts, count))
    ask = questions.ask
    connector = connect or partial(find_model, wiring, session, ask=ask)
    named, budget = partial(_named, wiring, session), settings.agent.max_budget_usd
    connection = ModelConnection(session, lambda: connector(False), named, settings.prompts, budget)
    think = ProcedureCalls(session.state, connection, compiler, settings.agent.plan_tokens).think
    folder = WorkFolder(workspace)
    drafter = Drafter(
        session.state,
        think,
        folder,
        lambda: usable_in_tasks(toolbox.operations(), few=connection.profile.local),
    )
    thinker = Thinker(
        connection,
        compiler,
        toolbox.operations,
        session.emit,
        settings.agent,
        settings.memory,
        settings.pacemaker.detectors,
        remembering,
    )
    summarising = Summarizer(session, connection, compiler, settings.memory)
    remembering.on_dropped = summarising.dropped
    permissions = Permissions(wiring.paths.permissions_of(wiring.folder))
    gatekeeper = Gatekeeper(session, settings.safety.mode, permissions, settings.undo.enabled)
    bodies = Bodies(session, connection, compiler, thinker, settings.agent.body_tokens)
    safekeeping = UndoKeeper(session, partial(_undo, wiring, session))
    dispatcher = Dispatcher(session, toolbox, gatekeeper, bodies, safekeeping)
    phases = Phases(session, transition_table(settings))
    pacemaker = Pacemaker(settings.pacemaker, session.state.vitals)
    pacing = TurnPacemaker(session, pacemaker, ask, other_model=bool(settings.llm.second_model))
    duck = DuckCallAnswers(session, phases, lambda: connection.switch(lambda: connector(True)))
    jobs = JobRunner(session, ask, dispatcher, drafter, phases, lambda: Pacemaker(settings.pacemaker), settings.agent)
    approval, actor = PlanApproval(session, phases, jobs, connection), Actor(session.emit, ask)
    policies = (
        BringMaterial(session, toolbox, workspace),
        PlanAnswer(approval),
        HoldToPlan(),
        ReadNamedFiles(dispatcher, actor),
        TryOut(dispatcher, bodies, actor),
        OwedFiles(phases),
        AskedSummary(),
        AnswerEnds(phases),
        ReviewByRecord(phases),
    )
    turn = Turn(session, actor, pacing, thinker, dispatcher, phases, duck, policies)
    work = PlannedWork(session, Turns(turn, jobs), approval)
    commands = UserCommands(session, partial(_commands, wiring, pick))
    choices = Choices(session, gatekeeper, connection)
    conversation = ChatLoop(session, work, questions, commands, choices, pacing, remembering, safekeeping)

    async def close() -> None:
        await conversation.aclose()
        await summarising.aclose()
        await connection.aclose()
        await sandboxes.aclose()
        await safekeeping.close()
        await remembering.aclose()

    return Wired(conversation, thinker, close, toolbox)


def _commands(wiring: Wiring, pick: "Pick | None") -> "Commands":
    from duckflow.cli.slash import command_table

    return command_table(wiring.words, wiring.paths, wiring.folder, wiring.model_flag, pick)


def _undo(wiring: Wiring, session: Session) -> "Undo":
    from duckflow.safety.undo.undo import Undo

    data = wiring.paths.undo_of(wiring.folder)
    return Undo(Workspace(wiring.folder), data, wiring.settings.undo, session.state.session_id)


def _memory(wiring: Wiring, session: Session, workspace: Workspace) -> ConversationMemory:
    settings = wiring.settings.memory
    facts = ProjectFacts(facts_of(wiring))
    return ConversationMemory(
        session, settings, Gravel(wiring.paths.archive_of(wiring.folder)), Castle(workspace), facts
    )


def facts_of(wiring: Wiring) -> Path:
    return wiring.paths.archive_of(wiring.folder).with_suffix(".facts.json")


async def find_model(wiring: Wiring, session: Session, second: bool, ask: Ask | None = None) -> Connected:
    """The model for this conversation, or for a second opinion; nothing is asked of it yet. Where there is somebody to
    ask, a local model that is not here yet is fetched."""
    from duckflow.cli.first_run import find_with_weights
    from duckflow.llm.discover import discover

    settings = wiring.settings.llm
    search = partial(discover, settings.second_model if second else wiring.model_flag, settings, os.environ)
    choice = await (find_with_weights(search, wiring.paths, session, ask) if ask else search())
    return await _reached(wiring, session, choice)


async def _named(wiring: Wiring, session: Session, name: str) -> Connected:
    """The model that the user asks for in the chat; one that its endpoint does not know is refused at once."""
    from duckflow.cli.first_run import require_weights
    from duckflow.llm.discover import Discovery, check_listed

    choice = await Discovery(wiring.settings.llm, os.environ).named(name, say("model.chosen.chat"))
    if choice.kind == "openai" and choice.endpoint:
        await check_listed(choice.endpoint, choice.model, choice.key)
    if choice.kind == "embedded":
        require_weights(choice.model, wiring.paths)
    return await _reached(wiring, session, choice)


async def _reached(wiring: Wiring, session: Session, choice: "ModelChoice") -> Connected:
    from duckflow.llm.connect import Places, connect

    settings, paths = wiring.settings, wiring.paths
    for note in choice.notes:
        session.emit(Noticed(what=note))
    places = Places(paths.models, paths.abilities, paths.local_log)
    # In a thread: what a model's client needs is slow to load, and somebody may be typing.
    provider = await asyncio.to_thread(connect, choice, settings.llm, settings.local, places, os.environ)
    return Connected(provider, choice.why)
