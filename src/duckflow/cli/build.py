"""Builds the objects of a conversation. No other module builds them."""

import os
from collections.abc import Awaitable, Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.bodies import Bodies, ProcedureCalls
from duckflow.agent.brought_programs import BroughtPrograms, HookConsent, TrustedHooks
from duckflow.agent.connection import Connected, ModelConnection
from duckflow.agent.conversation import ChatLoop, Moves
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.duck_answer import Choices, DuckCallAnswers
from duckflow.agent.extensions import AllowedTools, Extensions, GatedShell, UserCommands
from duckflow.agent.file_index import FileIndex
from duckflow.agent.gatekeeper import Gatekeeper
from duckflow.agent.hooks import Hooks, ToolHooks
from duckflow.agent.memory import ConversationMemory, PruningHooks
from duckflow.agent.phases import Phases, transition_table
from duckflow.agent.pictures import ConversationPictures
from duckflow.agent.plan_permissions import plan_question
from duckflow.agent.policies.code import DiagnoseChanges
from duckflow.agent.policies.hooked import Hooked
from duckflow.agent.policies.material import BringMaterial
from duckflow.agent.policies.policy import Policies, Policy
from duckflow.agent.policies.proven import ProveByTrial, ReviewByRecord
from duckflow.agent.policies.ruled import ProjectRules
from duckflow.agent.project import Project
from duckflow.agent.proof_runner import CheckDoubts, ProofRunner
from duckflow.agent.questions_back import QuestionsBack
from duckflow.agent.request_filter import RequestFilter
from duckflow.agent.session import Session
from duckflow.agent.summaries import Summarizer
from duckflow.agent.thinker import Thinker
from duckflow.agent.trust import SERVERS
from duckflow.agent.turn import Turn
from duckflow.agent.turn_pacemaker import TurnPacemaker
from duckflow.agent.turns import Turns
from duckflow.agent.undo import UndoKeeper
from duckflow.allowance import ADDRESS
from duckflow.cli.connect import find_model, find_named_model
from duckflow.cli.ground import Ground, make_ground
from duckflow.cli.plugged import Plugged
from duckflow.cli.setup import Setup, facts_of, traced
from duckflow.code.settings import OPERATIONS
from duckflow.memory.castle import Castle, ProjectFacts
from duckflow.memory.gravel import Gravel
from duckflow.memory.tokens import count
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.prompts.compile import Compiler
from duckflow.prompts.layers import Layers
from duckflow.safety.workspace import Workspace
from duckflow.state.action import Operation
from duckflow.tools.plan.drafting import Drafter, usable_in_tasks
from duckflow.tools.plan.folder import WorkFolder
from duckflow.tools.settings import FETCH, SEARCH
from duckflow.tools.tool import AnyTool
from duckflow.tools.toolbox import Toolbox, packaged_operations
from duckflow.work.approval import PlanAnswer, PlanApproval
from duckflow.work.file_locks import FileLocks
from duckflow.work.jobs import JobRunner
from duckflow.work.plans import PlannedWork
from duckflow.work.step_checks import StepChecks

if TYPE_CHECKING:
    from duckflow.cli.outside import Outside
    from duckflow.commands.extensions import ExtensionCommands
    from duckflow.commands.sessions import Pick
    from duckflow.commands.table import Commands
    from duckflow.pacemaker.limits import LoopAllowance
    from duckflow.safety.undo.undo import Undo
    from duckflow.work.agents import Agents
    from duckflow.work.sub_agents import SubAgents

Connector = Callable[[bool], Awaitable[Connected]]
"""A function that finds a model: with False the conversation's own model, with True the model for second opinions."""


class BuiltConversation(NamedTuple):
    """A conversation, its parts, and the function `close`, which ends everything that was started for it."""

    conversation: ChatLoop
    thinker: Thinker
    close: Callable[[], Awaitable[None]]
    toolbox: Toolbox
    dispatcher: Dispatcher
    reviewers: "Callable[[], SubAgents]"
    outside: "Outside | None" = None
    """The MCP servers, if the settings or the folder name any."""


def build_conversation(
    setup: Setup, session: Session, connect: Connector | None = None, pick: "Pick | None" = None
) -> BuiltConversation:
    """Builds a conversation on `session`. Without `connect`, the conversation looks for a model itself. `pick` lets the
    user choose a session from a list."""
    ground = make_ground(setup, session)
    memory = _memory(setup, session, ground.workspace, lambda: guard.hooks.before_pruning)

    def make(group: str) -> list[AnyTool]:
        from duckflow.cli.toolset import ToolParts, make_tools

        folder, ask, undo, code = ground.workspace, ground.questions.ask, guard.undo, ground.code
        drafter, jobs, agents, approval = model.drafter, work.jobs, work.sub_agents, work.approval
        parts = (session, folder, setup, ground.sandboxes, drafter, jobs, memory, agents, approval, undo, ask, code)
        return make_tools(group, ToolParts(*parts, ground.secrets))

    toolbox, session_plugins = _toolbox(setup, make), Plugged(setup, session.emit)
    session_plugins.add_tools(toolbox)
    allowed_tools = AllowedTools(session, ground.permissions, ground.questions.ask, lambda: guard.gatekeeper.mode)
    extensions = Extensions(ground.places, ground.admission, toolbox, session.emit, allowed_tools)
    model = _model(setup, session, ground, memory, toolbox, extensions, connect)
    guard = _guard(setup, session, ground, toolbox, model)
    work = _work(setup, session, ground, toolbox, extensions, model, guard)
    front = _front(setup, session, ground, memory, toolbox, extensions, model, guard, work, session_plugins, pick)
    end_tracing = traced(front.conversation, session.emit)

    async def close() -> None:
        await front.conversation.aclose()
        await guard.hooks.aclose()
        if front.outside:
            await front.outside.aclose()
        await model.summarizer.aclose()
        await model.connection.aclose()
        await ground.sandboxes.aclose()
        await ground.code.aclose()
        await guard.undo.close()
        await memory.aclose()
        ground.workspace.close()
        end_tracing()

    parts = (front.conversation, model.thinker, close, toolbox, guard.dispatcher, work.reviewers, front.outside)
    return BuiltConversation(*parts)


def _memory(
    setup: Setup, session: Session, workspace: Workspace, hooks: Callable[[], PruningHooks]
) -> ConversationMemory:
    facts, archive = ProjectFacts(facts_of(setup)), Gravel(setup.paths.archive_of(setup.folder))
    return ConversationMemory(session, setup.settings.memory, archive, Castle(workspace), facts, hooks)


def _toolbox(setup: Setup, make: Callable[[str], list[AnyTool]]) -> Toolbox:
    missing_names = setup.settings.web.not_offered(os.environ)
    operations = [operation for operation in packaged_operations() if operation.name not in missing_names]
    return Toolbox(operations, make, later=(*OPERATIONS, *((FETCH,) if SEARCH in missing_names else ())))


class ModelSide(NamedTuple):
    """The connection to the model, and the objects that write requests to it."""

    connector: Connector
    connection: ModelConnection
    layers: Layers
    compiler: Compiler
    thinker: Thinker
    bodies: Bodies
    drafter: Drafter
    summarizer: Summarizer
    pictures: ConversationPictures


def _model(
    setup: Setup,
    session: Session,
    ground: Ground,
    memory: ConversationMemory,
    toolbox: Toolbox,
    extensions: Extensions,
    connect: Connector | None,
) -> ModelSide:
    settings, schema = setup.settings, setup.answer_schema
    limits_of_sandbox = partial(ground.sandboxes.limits, session.state)
    project = Project(ground.workspace, memory.known, memory.lessons, extensions.catalogue, limits_of_sandbox)
    prompt_layers = Layers(project, settings.prompts, count)
    compiler = Compiler(toolbox.operations, prompt_layers)
    connector = connect or partial(find_model, setup, session, ask=ground.questions.ask)
    pictures, limits, detectors = ConversationPictures(session), settings.agent, settings.pacemaker.detectors
    connection = ModelConnection(
        session,
        lambda: connector(False),
        partial(find_named_model, setup, session),
        settings.prompts,
        pictures,
        RequestFilter(session.state, ground.secrets),
        limits.max_budget_usd,
        limits.max_tokens,
        os.environ.get(ADDRESS, ""),
    )
    thinker = Thinker(connection, compiler, session.emit, limits, settings.memory, detectors, memory, True, schema)
    folder = WorkFolder(ground.workspace)
    StepChecks(session, folder)
    think = ProcedureCalls(session.state, connection, compiler, limits).think
    QuestionsBack(session, ground.questions, think)
    plan_drafter = Drafter(
        session.state,
        think,
        folder,
        lambda: usable_in_tasks(toolbox.operations()),
        partial(_offered_in_tasks, toolbox, connection),
        limits.step_characters,
    )
    body_requests = Bodies(session, connection, compiler, thinker, limits.body_tokens)
    summarizer = Summarizer(session, connection, compiler, settings.memory)
    return ModelSide(
        connector, connection, prompt_layers, compiler, thinker, body_requests, plan_drafter, summarizer, pictures
    )


async def _offered_in_tasks(toolbox: Toolbox, connection: ModelConnection) -> tuple[Operation, ...]:
    form = (await connection.ready()).form
    return form.for_tasks(usable_in_tasks(toolbox.operations()))


class Guard(NamedTuple):
    """The parts that check, run, prove and undo the actions of a Decision (one reply of the model)."""

    phases: Phases
    gatekeeper: Gatekeeper
    programs: BroughtPrograms
    hooks: Hooks
    undo: UndoKeeper
    dispatcher: Dispatcher
    proof: ProofRunner
    rules: ProjectRules


def _guard(setup: Setup, session: Session, ground: Ground, toolbox: Toolbox, model: ModelSide) -> Guard:
    settings, phases = setup.settings, Phases(session, transition_table(setup.settings.transitions))
    has_undo = settings.undo.enabled
    undo = UndoKeeper(session, partial(_undo, setup, session, ground.workspace, setup.paths.undo_of(setup.folder)))
    gatekeeper = Gatekeeper(
        session, phases, settings.safety.mode, ground.permissions, has_undo, ground.sandboxes.confines, undo.unkept
    )
    admission, ask, trusted_hooks = ground.admission, ground.questions.ask, TrustedHooks(setup.paths.trusted_hooks)
    programs = BroughtPrograms(setup.folder, setup.paths.data, ground.sandboxes.find, lambda: gatekeeper.mode, ask)
    consent = HookConsent(admission, trusted_hooks, programs, session.emit, ask)
    hooks = Hooks(session, settings.hooks, ground.places, admission, consent)
    tool_hooks = ToolHooks(hooks, lambda: session.state.language)
    find, launch = ground.sandboxes.find, ground.sandboxes.launch
    rules = ProjectRules(ground.workspace, undo, lambda: admission.trusted, find, launch)
    proof = ProofRunner(settings.proof, undo, find, launch)
    check_doubts = CheckDoubts(session, proof)
    dispatcher = Dispatcher(session, toolbox, gatekeeper, model.bodies, undo, tool_hooks, check_doubts, ground.secrets)
    return Guard(phases, gatekeeper, programs, hooks, undo, dispatcher, proof, rules)


def _undo(setup: Setup, session: Session, folder: Workspace, kept_in: Path) -> "Undo":
    from duckflow.safety.undo.undo import Undo

    return Undo(folder, kept_in, setup.settings.undo, session.state.session_id)


class Work(NamedTuple):
    """The work that goes on beside the conversation: background jobs, and agents with a task of their own."""

    jobs: JobRunner
    sub_agents: "Callable[[], SubAgents]"
    reviewers: "Callable[[], SubAgents]"
    pacemaker: Pacemaker
    approval: PlanApproval


def _work(
    setup: Setup,
    session: Session,
    ground: Ground,
    toolbox: Toolbox,
    extensions: Extensions,
    model: ModelSide,
    guard: Guard,
) -> Work:
    settings, ask, locks = setup.settings, ground.questions.ask, FileLocks(session)
    pacemaker = Pacemaker(settings.pacemaker, session.state.vitals)

    @cache
    def agents() -> "Agents":
        from duckflow.work.agents import Agents, usable_by_agents

        usable_compiler = Compiler(lambda: usable_by_agents(toolbox.operations()), model.layers)
        table, pace, memory = transition_table(settings.transitions), settings.pacemaker, settings.memory
        limits, rules = settings.agent, guard.rules.of_agent
        return Agents(session.state, model.connection, usable_compiler, pace, table, limits, memory, rules)

    def sub_agents(allowance: "LoopAllowance") -> "SubAgents":
        from duckflow.cli.reviewing import current_review
        from duckflow.work.sub_agents import SharedAgentParts, SubAgents

        review = current_review(session, toolbox, ground.workspace, ground.sandboxes, settings.proof, ground.code)
        parts = SharedAgentParts(guard.dispatcher, toolbox, ask, guard.undo, review)
        return SubAgents(session, agents(), parts, lambda: extensions.found().kinds, settings.agent, locks, allowance)

    make_pacemaker = partial(Pacemaker, settings.pacemaker)
    limits, phases, undo = settings.agent, guard.phases, guard.undo
    jobs = JobRunner(session, ask, guard.dispatcher, model.drafter, phases, undo, make_pacemaker, limits, agents, locks)
    approval = PlanApproval(session, phases, jobs, model.connection, ask, guard.gatekeeper)
    helpers = cache(lambda: sub_agents(pacemaker.allowance))
    # A review that the user starts uses up no loops of a turn.
    return Work(jobs, helpers, lambda: sub_agents(make_pacemaker().allowance), pacemaker, approval)


class Front(NamedTuple):
    """The port that front ends use, and the MCP servers."""

    conversation: ChatLoop
    outside: "Outside | None"


def _front(
    setup: Setup,
    session: Session,
    ground: Ground,
    memory: ConversationMemory,
    toolbox: Toolbox,
    extensions: Extensions,
    model: ModelSide,
    guard: Guard,
    work: Work,
    plugged: Plugged,
    pick: "Pick | None",
) -> Front:
    settings, ask, connection = setup.settings, ground.questions.ask, model.connection
    turn_pacemaker = TurnPacemaker(session, work.pacemaker, ask, bool(settings.llm.second_model), ground.sandboxes.busy)
    duck_call_answers = DuckCallAnswers(session, guard.phases, lambda: connection.switch(lambda: model.connector(True)))
    actor = Actor(session.emit, ask)
    # The fleet and other programs say what models and checks have written.
    by_person = not setup.by_client and not setup.folder.is_relative_to(setup.paths.worktrees)
    material_policy = BringMaterial(session, toolbox, ground.workspace, model.pictures, by_person)
    hook_policy, plan_answer = Hooked(session, guard.hooks), PlanAnswer(work.approval)
    code_policy = ground.code.policy(toolbox)
    other_policies, servers, outside_servers = (code_policy, *plugged.policies(session)), tuple[Policy, ...](), None
    # The code for MCP servers is loaded only where one is named.
    if settings.mcp.servers or (setup.folder / SERVERS).exists():
        from duckflow.cli.outside import Outside

        outside_servers = Outside(setup, session, ask, ground.admission, model.pictures.take, guard.programs)
        servers = (outside_servers.policy(toolbox),)

    def first() -> tuple[Policy, ...]:
        hooks = (hook_policy,) if guard.hooks.are_any else ()
        plans = (plan_answer,) if session.state.plans else ()
        return (*servers, *hooks, material_policy, *plans, *other_policies)

    make_leading = partial(_leading, guard, model, actor, ground.workspace)
    diagnosis = DiagnoseChanges(session, ground.secrets, ground.code.diagnosis(guard.undo))
    trials = (guard.rules.of_turn(session, actor), ProveByTrial(session, actor, guard.proof))
    last_policies = (diagnosis, *trials, ReviewByRecord(guard.phases))
    policies = Policies(first, last=last_policies, leading=make_leading)
    parts_of_turn = (session, actor, turn_pacemaker, model.thinker, guard.dispatcher, guard.phases, duck_call_answers)
    turn = Turn(*parts_of_turn, policies, lambda: plan_question(session.state.plan, guard.gatekeeper.mode))
    brought_commands = partial(_brought, extensions, GatedShell(guard.dispatcher, session.emit, ask), guard.hooks)
    moves, admit = Moves(), partial(_admit, extensions, guard.hooks)

    def table() -> "Commands":
        from duckflow.cli.reviewing import ChatReviews
        from duckflow.cli.slash import conversation_commands

        reviews = ChatReviews(setup.folder, work.reviewers, admit)
        list_rules, overview, running = guard.rules.listed, ground.code.overview, ground.sandboxes.running
        return conversation_commands(
            setup, pick, brought_commands(), outside_servers, overview, reviews, plugged, list_rules, running
        )

    commands = UserCommands(session, table, moves.tell, guard.undo, ground.secrets)

    def before_turn() -> None:
        commands.tell()
        if session.state.live_jobs():
            work.jobs.hold()

    turns = Turns(turn, admit, before=before_turn, moved=moves.tell)
    planned_work = PlannedWork(session, turns, work.jobs, work.approval, work.sub_agents)
    choices = Choices(session, guard.gatekeeper, connection, setup.by_client)
    files, questions = FileIndex(setup.folder, ground.code.symbols), ground.questions
    conversation = ChatLoop(
        session, turns, planned_work, questions, commands, choices, turn_pacemaker, memory, guard.undo, moves, files
    )
    return Front(conversation, outside_servers)


def _leading(guard: Guard, model: ModelSide, actor: Actor, workspace: Workspace) -> tuple[Policy, ...]:
    from duckflow.agent.led.policies import leading_policies

    return leading_policies(guard.dispatcher, model.bodies, actor, guard.phases, workspace)


async def _admit(extensions: Extensions, hooks: Hooks) -> bool:
    if not await extensions.admit():
        return False
    await hooks.get_ready()
    return True


def _brought(extensions: Extensions, shell: GatedShell, hooks: Hooks) -> "ExtensionCommands":
    from duckflow.commands.extensions import ExtensionCommands

    return ExtensionCommands(extensions, shell, hooks)
