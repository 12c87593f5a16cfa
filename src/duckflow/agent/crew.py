"""What background jobs work with: the same dispatcher as the conversation, and the plan tools' table."""

from collections.abc import Callable
from dataclasses import dataclass

from duckflow.agent.dispatcher import Dispatcher
from duckflow.agent.phases import Phases
from duckflow.agent.session import Session
from duckflow.agent.settings import AgentSettings
from duckflow.events.ports import Ask
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.tools.plan.ports import Table


@dataclass(frozen=True, slots=True)
class Crew:
    """Every job gets a Pacemaker of its own."""

    session: Session
    dispatcher: Dispatcher
    table: Table
    phases: Phases
    ask: Ask
    pacemaker: Callable[[], Pacemaker]
    settings: AgentSettings
