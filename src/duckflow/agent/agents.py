"""An agent of its own: the same loop on a fresh context, in somebody's name, with a report at its end.

What it does is on the record of the session it works for, and passes the same Gate and undo; what it thinks stays in
its context: messages, phase, vitals, history."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.connection import ModelConnection
from duckflow.agent.dispatcher import Acting
from duckflow.agent.duck_answer import DuckCallAnswers
from duckflow.agent.history import AgentHistory
from duckflow.agent.phases import Phases
from duckflow.agent.policies.policy import Policy
from duckflow.agent.session import StateOwner
from duckflow.agent.settings import AgentSettings
from duckflow.agent.thinker import Thinker
from duckflow.agent.turn import Turn
from duckflow.agent.turn_pacemaker import TurnPacemaker
from duckflow.events.pacing import Intervened
from duckflow.events.types import (
    ActionFinished,
    ActionStarted,
    DuckAnswered,
    DuckCalled,
    Event,
    GateAnswered,
    GateOpened,
    MessageAdded,
    Noticed,
    Outcome,
    OutputStreamed,
    TurnEnded,
)
from duckflow.memory.settings import MemorySettings
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.pacemaker.settings import DetectorSettings
from duckflow.prompts.compile import Compiler
from duckflow.state.action import EXIT, RESPOND, Operation
from duckflow.state.agent import AgentState
from duckflow.state.five import FiveItems
from duckflow.state.phase import Phase, TransitionTable
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Choice, Question

TOLD = (
    MessageAdded, ActionStarted, ActionFinished, OutputStreamed, GateOpened, GateAnswered, DuckCalled, DuckAnswered,
    Intervened, Noticed,
)  # fmt: skip
"""What the session hears of an agent."""


def usable_by_agents(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """An agent does things and tells what came of it; it makes no plans and no further agents."""
    return tuple(one for one in operations if one.in_tasks or one.name == RESPOND)


class AgentTask(NamedTuple):
    """What an agent is asked to do, by whom its calls are carried out, and what watches over its turn."""

    asked: str
    goal: str
    acting: Acting
    policies: tuple[Policy, ...] = ()
    constraints: tuple[str, ...] = ()


class AgentReport(NamedTuple):
    """What came of it. `found` is its own last word; the rest is computed."""

    asked: str
    outcome: Outcome
    found: str = ""
    changed: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    open: Phrase | None = None
    """Why it ended before its end."""


class AgentContext(StateOwner):
    """The state of an agent. What others have to know goes on to the session, signed by its actor."""

    def __init__(self, actor: Actor, state: AgentState) -> None:
        super().__init__(state)
        self._actor = actor
        self.found = ""
        self.open: Phrase | None = None

    def emit(self, event: Event) -> None:
        match event:
            case ActionFinished() if event.result.effect == "talk":
                self.found = event.result.said or self.found
            case ActionStarted() if event.action.operation in (RESPOND, EXIT):
                pass
            case TurnEnded():
                self.open = event.why if event.outcome != "done" else None
            case _ if isinstance(event, TOLD):
                self._actor.emit(event)
            case _:
                pass
        super().emit(event)


class Agents:
    """Makes agents and runs them; each call is one agent, and any number may run at once."""

    def __init__(
        self,
        outer: AgentState,
        connection: ModelConnection,
        compiler: Compiler,
        make_pacemaker: Callable[[], Pacemaker],
        table: TransitionTable,
        settings: AgentSettings,
        memory: MemorySettings,
        detectors: DetectorSettings,
    ) -> None:
        """`compiler`: for the operations that agents may use."""
        self._outer = outer
        self._connection = connection
        self._compiler = compiler
        self._make_pacemaker = make_pacemaker
        self._table = table
        self._settings = settings
        self._memory = memory
        self._detectors = detectors

    async def usable(self) -> bool:
        """Whether the model can be left alone with a task: one that calls tools."""
        return (await self._connection.ready_profile()).native_tools

    async def run(self, task: AgentTask, actor: Actor) -> AgentReport:
        """Until it is done or cannot go on. What it asks is put to the user with its name, and it goes on with the
        answer."""
        context = AgentContext(actor, self._state(task))
        inner = replace(actor, emit_event=context.emit, put_question=actor.ask, inner=True)
        turn = self._turn(context, inner, task)
        asked = task.asked
        while (outcome := await turn.run(asked, (), lambda: "", None)) == "pending_user":
            asked = await _answer(context, inner)
            if not asked:
                break
        state = context.state
        evidence = tuple(one.text for one in state.evidence)
        return AgentReport(task.asked, outcome, context.found, tuple(state.files_changed), evidence, context.open)

    def _state(self, task: AgentTask) -> AgentState:
        outer = self._outer
        return AgentState(
            session_id=outer.session_id,
            folder=outer.folder,
            language=outer.language,
            model=outer.model,
            mode=outer.mode,
            phase=Phase.EXECUTION,
            five=FiveItems(goal=task.goal, constraints=list(task.constraints)),
        )

    def _turn(self, context: AgentContext, actor: Actor, task: AgentTask) -> Turn:
        history = AgentHistory(context.state, self._memory)
        thinker = Thinker(
            self._connection,
            self._compiler,
            context.emit,
            self._settings,
            self._memory,
            self._detectors,
            history,
            streams=False,
        )
        phases = Phases(context, self._table)
        pacing = TurnPacemaker(context, self._make_pacemaker(), actor.ask)
        duck = DuckCallAnswers(context, phases, lambda: None)
        return Turn(context, actor, pacing, thinker, task.acting, phases, duck, task.policies)


async def _answer(context: AgentContext, actor: Actor) -> str:
    """What the user says to an agent's question; nothing when it is to stop."""
    stop = Choice(key="stop", label=say("agent.stop"))
    question = Question(kind="duck_call", title=say("agent.asks", text=context.found), choices=(stop,))
    context.emit(DuckCalled(question=question, reason="asks"))
    answer = await actor.ask(question)
    context.emit(DuckAnswered(question_id=question.question_id, answer=answer, effect=answer.choice))
    return "" if answer.choice == "stop" else answer.text
