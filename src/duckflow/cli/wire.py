"""The only place where objects are built."""

import os
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.admission import Admission
from duckflow.agent.bodies import Bodies, ProcedureCalls
from duckflow.agent.choices import Choices
from duckflow.agent.connection import Connected, ModelConnection
from duckflow.agent.conversation import ChatLoop
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.duck_answer import DuckCallAnswers
from duckflow.agent.extensions import Extensions, GatedShell
from duckflow.agent.gatekeeper import Gatekeeper
from duckflow.agent.hooks import Hooks, TrustedHooks
from duckflow.agent.jobs import JobRunner
from duckflow.agent.memory import ConversationMemory
from duckflow.agent.permissions import Permissions
from duckflow.agent.phases import Phases
from duckflow.agent.pictures import ConversationPictures
from duckflow.agent.planned_work import PlannedWork
from duckflow.agent.policies.hooked import Hooked
from duckflow.agent.policies.material import BringMaterial
from duckflow.agent.policies.plan_answer import PlanAnswer, PlanApproval
from duckflow.agent.policies.policy import Policies, Policy
from duckflow.agent.policies.review import ReviewByRecord
from duckflow.agent.project import Project
from duckflow.agent.questions import Questions
from duckflow.agent.session import Session
from duckflow.agent.step_checks import StepChecks
from duckflow.agent.summaries import Summarizer
from duckflow.agent.thinker import Thinker
from duckflow.agent.tool_hooks import ToolHooks
from duckflow.agent.trust import SERVERS
from duckflow.agent.turn import Turn
from duckflow.agent.turn_pacemaker import TurnPacemaker
from duckflow.agent.turns import Turns
from duckflow.agent.undo import UndoKeeper
from duckflow.agent.user_commands import UserCommands
from duckflow.cli.connect import find_model, find_named_model
from duckflow.cli.sandboxes import Sandboxes
from duckflow.cli.wiring import Wiring, facts_of, folder_trust, open_workspace
from duckflow.config.load import transition_table
from duckflow.extensions.places import ExtensionPlaces
from duckflow.forms.offer import told_so_far
from duckflow.memory.castle import Castle
from duckflow.memory.facts import ProjectFacts
from duckflow.memory.gravel import Gravel
from duckflow.memory.tokens import count
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.prompts.compile import Compiler
from duckflow.prompts.layers import Layers
from duckflow.safety.workspace import Workspace
from duckflow.state.action import Operation
from duckflow.tools.plan.drafting import Drafter, usable_in_tasks
from duckflow.tools.plan.folder import WorkFolder
from duckflow.tools.tool import AnyTool
from duckflow.tools.toolbox import Toolbox, packaged_operations
from duckflow.tools.web.settings import FETCH, SEARCH

if TYPE_CHECKING:
    from duckflow.agent.agents import Agents
    from duckflow.agent.sub_agents import SubAgents
    from duckflow.cli.outside import Outside
    from duckflow.commands.extensions import ExtensionCommands
    from duckflow.commands.sessions import Pick
    from duckflow.commands.table import Commands
    from duckflow.safety.undo.undo import Undo

Connector = Callable[[bool], Awaitable[Connected]]
"""Finds a model; the second one, for another opinion, when it is told so."""


class Wired(NamedTuple):
    """A conversation, the thinker (to be warmed), and what ends everything that was started for it."""

    conversation: ChatLoop
    thinker: Thinker
    close: Callable[[], Awaitable[None]]
    toolbox: Toolbox
    outside: "Outside | None" = None
    """The servers of others, where there are any."""


def wire(wiring: Wiring, session: Session, connect: Connector | None = None, pick: "Pick | None" = None) -> Wired:
    """A conversation on `session`; without a `connect` of its own it looks for a model. `pick` lets the user choose a
    session from a list."""
    settings = wiring.settings
    questions = Questions(session.emit)
    admission = Admission(partial(folder_trust, wiring), session.emit, questions.ask, wiring.trust)
    sandboxes = Sandboxes(wiring, session.emit, lambda: admission.trusted)
    opened = ExitStack()

    def open_folder() -> Workspace:
        return opened.enter_context(closing(open_workspace(wiring)))

    workspace = open_folder()
    memory = _memory(wiring, session, workspace)

    def make() -> list[AnyTool]:
        from duckflow.cli.toolset import make_tools

        heading = wiring.words("lessons.heading")
        # Opened when the first tool is needed: a folder that is gone by then is noticed.
        here, shell = open_folder(), sandboxes.runner()
        return make_tools(session, here, settings, shell, drafter, jobs, memory, heading, sub_agents)

    missing = settings.web.not_offered(os.environ)
    operations = [one for one in packaged_operations() if one.name not in missing]
    toolbox = Toolbox(operations, make, later=(FETCH,) if SEARCH in missing else ())
    places = ExtensionPlaces(
        wiring.folder, wiring.home_folder, wiring.paths.skill_copies, lambda: folder_trust(wiring).trusted
    )
    extensions = Extensions(places, admission, toolbox, session.emit)
    project = Project(workspace, memory.known, memory.lessons, extensions.catalogue)
    layers = Layers(project, settings.prompts, count)
    compiler = Compiler(lambda: told_so_far(toolbox.operations(), session.state), layers)
    ask = questions.ask
    connector = connect or partial(find_model, wiring, session, ask=ask)
    pictures = ConversationPictures(session)
    named, limits = partial(find_named_model, wiring, session), settings.agent
    connection = ModelConnection(
        session, lambda: connector(False), named, settings.prompts, pictures, limits.max_budget_usd, limits.max_tokens
    )
    think = ProcedureCalls(session.state, connection, compiler, settings.agent).think
    folder = WorkFolder(workspace)
    StepChecks(session, folder)
    drafter = Drafter(
        session.state,
        think,
        folder,
        lambda: usable_in_tasks(toolbox.operations()),
        partial(_offered_in_tasks, toolbox, connection),
    )
    thinker = Thinker(
        connection,
        compiler,
        session.emit,
        settings.agent,
        settings.memory,
        settings.pacemaker.detectors,
        memory,
    )
    summarizer = Summarizer(session, connection, compiler, settings.memory)
    memory.on_dropped = summarizer.dropped
    permissions = Permissions(wiring.paths.permissions_of(wiring.folder), settings.agent.safe_extensions)
    table, fresh_pacemaker = transition_table(settings), partial(Pacemaker, settings.pacemaker)
    phases = Phases(session, table)

    @cache
    def agents() -> "Agents":
        from duckflow.agent.agents import Agents, usable_by_agents

        usable = Compiler(lambda: usable_by_agents(toolbox.operations()), layers)
        pacing = settings.pacemaker
        return Agents(session.state, connection, usable, pacing, table, settings.agent, settings.memory)

    gatekeeper = Gatekeeper(session, phases, settings.safety.mode, permissions, settings.undo.enabled)
    bodies = Bodies(session, connection, compiler, thinker, settings.agent.body_tokens)
    undo = UndoKeeper(session, partial(_undo, wiring, session, open_folder))
    trusted_hooks = TrustedHooks(wiring.paths.trusted_hooks)
    hooks = Hooks(session, settings.hooks, places, admission, trusted_hooks, ask, lambda: gatekeeper.mode)
    tool_hooks = ToolHooks(hooks, lambda: session.state.language)
    dispatcher = Dispatcher(session, toolbox, gatekeeper, bodies, undo, tool_hooks)
    pacemaker = Pacemaker(settings.pacemaker, session.state.vitals)
    turn_pacemaker = TurnPacemaker(session, pacemaker, ask, other_model=bool(settings.llm.second_model))
    duck = DuckCallAnswers(session, phases, lambda: connection.switch(lambda: connector(True)))

    @cache
    def sub_agents() -> "SubAgents":
        from duckflow.agent.sub_agents import Conduct, SubAgents

        conduct = Conduct(dispatcher, toolbox, ask, undo)
        return SubAgents(session, agents(), conduct, lambda: extensions.found().kinds, settings.agent)

    jobs = JobRunner(session, ask, dispatcher, drafter, phases, fresh_pacemaker, settings.agent, agents)
    approval, actor = PlanApproval(session, phases, jobs, connection), Actor(session.emit, ask)
    material = BringMaterial(session, toolbox, workspace, pictures)
    policies: tuple[Policy, ...] = (Hooked(session, hooks), material, PlanAnswer(approval))
    outside = None
    # Nothing of it is loaded where no server is named.
    if settings.mcp.servers or (wiring.folder / SERVERS).exists():
        from duckflow.cli.outside import Outside

        outside = Outside(wiring, session, ask, lambda: admission.trusted, pictures.take)
        policies = (outside.policy(toolbox), *policies)
    leading = partial(_leading, dispatcher, bodies, actor, phases)
    watched_by = Policies(policies, last=(ReviewByRecord(phases),), leading=leading)
    turn = Turn(session, actor, turn_pacemaker, thinker, dispatcher, phases, duck, watched_by)
    work = PlannedWork(session, Turns(turn, jobs), approval)
    work.turns.admit = partial(_admit, extensions, hooks)
    shell = GatedShell(dispatcher, session.emit, ask)
    brought = partial(_brought, extensions, shell, hooks)
    commands = UserCommands(session, partial(_commands, wiring, pick, brought, outside))
    choices = Choices(session, gatekeeper, connection)
    conversation = ChatLoop(session, work, questions, commands, choices, turn_pacemaker, memory, undo)

    end_tracing = _traced(conversation)

    async def close() -> None:
        await conversation.aclose()
        await hooks.aclose()
        if outside:
            await outside.aclose()
        await summarizer.aclose()
        await connection.aclose()
        await sandboxes.aclose()
        await undo.close()
        await memory.aclose()
        opened.close()
        end_tracing()

    return Wired(conversation, thinker, close, toolbox, outside)


def _traced(conversation: ChatLoop) -> Callable[[], None]:
    """Tell the collector that the environment names, if it does, of what happens; what is given back ends that."""
    if not any(name.startswith("OTEL_EXPORTER_OTLP") for name in os.environ):
        return lambda: None
    from duckflow.telemetry.export import Exporter, collector_of
    from duckflow.telemetry.spans import Tracer

    if (collector := collector_of(os.environ)) is None:
        return lambda: None
    exporter = Exporter(collector)
    conversation.hear(Tracer(conversation.state.session_id, exporter.take, collector.contents).hear)
    return exporter.close


def _leading(dispatcher: Dispatcher, bodies: Bodies, actor: Actor, phases: Phases) -> tuple[Policy, ...]:
    from duckflow.agent.led.policies import leading_policies

    return leading_policies(dispatcher, bodies, actor, phases)


async def _offered_in_tasks(toolbox: Toolbox, connection: ModelConnection) -> tuple[Operation, ...]:
    form = (await connection.ready()).form
    return form.for_tasks(usable_in_tasks(toolbox.operations()))


async def _admit(extensions: Extensions, hooks: Hooks) -> bool:
    if not await extensions.admit():
        return False
    await hooks.get_ready()
    return True


def _brought(extensions: Extensions, shell: GatedShell, hooks: Hooks) -> "ExtensionCommands":
    from duckflow.commands.extensions import ExtensionCommands

    return ExtensionCommands(extensions, shell, hooks)


def _commands(
    wiring: Wiring, pick: "Pick | None", make: "Callable[[], ExtensionCommands]", outside: "Outside | None"
) -> "Commands":
    from duckflow.cli.slash import command_table
    from duckflow.commands.outside import OutsideCommands

    sources = (make(), OutsideCommands(outside and (lambda: outside.servers)))
    return command_table(wiring.words, wiring.paths, wiring.folder, wiring.model_flag, pick, sources)


def _undo(wiring: Wiring, session: Session, open_folder: Callable[[], Workspace]) -> "Undo":
    from duckflow.safety.undo.undo import Undo

    data = wiring.paths.undo_of(wiring.folder)
    return Undo(open_folder(), data, wiring.settings.undo, session.state.session_id)


def _memory(wiring: Wiring, session: Session, workspace: Workspace) -> ConversationMemory:
    settings = wiring.settings.memory
    facts = ProjectFacts(facts_of(wiring))
    return ConversationMemory(
        session, settings, Gravel(wiring.paths.archive_of(wiring.folder)), Castle(workspace), facts
    )
