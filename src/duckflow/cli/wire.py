"""The only place where objects are built."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from duckflow.agent.bodies import Bodies
from duckflow.agent.calls import Caller, Connected
from duckflow.agent.chat_loop import ChatLoop
from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.duck_answer import DuckAnswers
from duckflow.agent.gatekeeper import Gatekeeper
from duckflow.agent.pacing import Pacing
from duckflow.agent.phases import Phases
from duckflow.agent.remembering import Remembering
from duckflow.agent.session import Session
from duckflow.agent.summarising import Summarising
from duckflow.agent.thinker import Thinker
from duckflow.agent.turn import Turn
from duckflow.config.load import transition_table
from duckflow.config.settings import Settings
from duckflow.events.ports import Ask
from duckflow.events.types import Noticed
from duckflow.memory.castle import Castle
from duckflow.memory.facts import Facts
from duckflow.memory.gravel import Gravel
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.prompts.compile import Compiler
from duckflow.safety.workspace import Workspace
from duckflow.store.paths import Paths
from duckflow.tools.files.toolset import file_tools
from duckflow.tools.memory.recall import Recall
from duckflow.tools.memory.remember import Remember
from duckflow.tools.talk import DuckCall, Exit, Response
from duckflow.tools.toolbox import Toolbox
from duckflow.ui.i18n.words import Words

AGENTS_FILE = "AGENTS.md"
AGENTS_LIMIT = 8000
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
    """A conversation, the way to its model (to be closed at the end), and the thinker (to be warmed)."""

    chat: ChatLoop
    caller: Caller
    thinker: Thinker


def wire(wiring: Wiring, session: Session, ask: Ask, connect: Connector | None = None) -> Wired:
    """A conversation on `session`; without a `connect` of its own it looks for a model."""
    settings = wiring.settings
    workspace = Workspace(wiring.folder)
    remembering, known = _memory(wiring, session)
    own = [Recall(remembering.find), Remember(remembering.remember)]
    toolbox = Toolbox([Response(), DuckCall(), Exit(), *file_tools(workspace, settings.files), *own])
    compiler = Compiler(toolbox.operations, _project_rules(workspace), known)
    connector = connect or partial(_connect, wiring, session)
    caller = Caller(session, lambda: connector(False), settings.agent.max_budget_usd)
    thinker = Thinker(
        caller,
        compiler,
        toolbox.operations,
        session.emit,
        (settings.agent, settings.memory, settings.pacemaker.detectors),
        remembering,
    )
    summarising = Summarising(session, caller, compiler, settings.memory)
    remembering.on_dropped = summarising.dropped
    caller.closing += [summarising.aclose, remembering.aclose]
    gatekeeper = Gatekeeper(session, ask, settings.safety.mode)
    bodies = Bodies(session, caller, compiler, thinker, settings.agent.body_tokens)
    dispatcher = Dispatcher(session, toolbox, gatekeeper, bodies)
    phases = Phases(session, transition_table(settings))
    pacemaker = Pacemaker(settings.pacemaker, session.state.vitals)
    pacing = Pacing(session, pacemaker, ask, other_model=bool(settings.llm.second_model))
    duck = DuckAnswers(session, phases, lambda: caller.switch(lambda: connector(True)))
    turn = Turn(session, pacing, thinker, dispatcher, phases, duck)
    return Wired(ChatLoop(session, turn, gatekeeper, pacing, remembering), caller, thinker)


def _memory(wiring: Wiring, session: Session) -> tuple[Remembering, str]:
    """The conversation's memory, and what is known of the project from earlier ones."""
    archive = wiring.paths.archive_of(wiring.folder)
    facts = Facts(archive.with_suffix(".facts.json"))
    remembering = Remembering(session, wiring.settings.memory, Gravel(archive), Castle(wiring.folder), facts)
    return remembering, facts.text(session.state.session_id)


async def _connect(wiring: Wiring, session: Session, second: bool) -> Connected:
    from duckflow.llm.connect import Places, connect
    from duckflow.llm.discover import discover

    settings, paths = wiring.settings, wiring.paths
    wanted = settings.llm.second_model if second else wiring.model_flag
    choice = await discover(wanted, settings.llm, os.environ)
    for note in choice.notes:
        session.emit(Noticed(what=note))
    places = Places(paths.models, paths.abilities, paths.local_log)
    return Connected(connect(choice, settings.llm, settings.local, places, os.environ), choice.why)


def _project_rules(workspace: Workspace) -> str:
    """AGENTS.md of the work folder, head only when it is very long."""
    try:
        return workspace.read_bytes(AGENTS_FILE, AGENTS_LIMIT).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
