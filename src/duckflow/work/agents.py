"""An agent runs the conversation's loop on a fresh context, in the name of an actor, and reports at its end.

Its actions are in the journal of the session it works for, and pass that session's Gate and undo. Its messages, phase,
vitals and history stay in its own context."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from duckflow.agent.actor import Actor
from duckflow.agent.connection import AgentConnection, ModelConnection
from duckflow.agent.dispatcher import Acting
from duckflow.agent.duck_answer import DuckCallAnswers
from duckflow.agent.memory import AgentHistory
from duckflow.agent.phases import Phases, TransitionTable
from duckflow.agent.policies.policy import Policies, Policy
from duckflow.agent.session import StateOwner
from duckflow.agent.settings import AgentSettings
from duckflow.agent.thinker import Thinker
from duckflow.agent.turn import Turn
from duckflow.agent.turn_pacemaker import TurnPacemaker
from duckflow.errors import Outcome
from duckflow.events.types import (
    ActionFinished,
    ActionStarted,
    DecisionMade,
    Event,
    Intervened,
    MessageAdded,
    Noticed,
    OutputStreamed,
    QuestionClosed,
    TurnEnded,
    UsageReported,
)
from duckflow.llm.provider import Provider
from duckflow.memory.settings import MemorySettings
from duckflow.pacemaker.limits import LoopAllowance
from duckflow.pacemaker.pacemaker import Pacemaker
from duckflow.pacemaker.settings import PacemakerSettings
from duckflow.prompts.compile import Compiler
from duckflow.state.action import EXIT, RESPOND, Operation
from duckflow.state.agent import AgentReport, AgentState
from duckflow.state.data import Phrase, say, shorten
from duckflow.state.message import Message
from duckflow.state.phase import FiveItems, Phase
from duckflow.state.question import Answer, Choice, Question

THOUGHT, THOUGHTS = 200, 6
FOR_SESSION = (
    MessageAdded, ActionStarted, ActionFinished, OutputStreamed, Intervened, Noticed, UsageReported,
)  # fmt: skip
"""The kinds of an agent's events that are passed on to the session."""


def usable_by_agents(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Returns the operations that agents may use. Plans and further agents are left out: an agent acts and reports."""
    return tuple(operation for operation in operations if operation.in_tasks or operation.name == RESPOND)


class AgentTask(NamedTuple):
    """The task of an agent: what it is asked to do, the object that carries out its calls, and the policies that watch
    over its turn."""

    asked: str
    goal: str
    acting: Acting
    policies: tuple[Policy, ...] = ()
    constraints: tuple[str, ...] = ()
    uses: Callable[[Operation], bool] = lambda _: True
    """Says whether this agent may use an operation."""
    model: Provider | None = None
    """The agent's own model, if it does not use the conversation's."""
    max_tokens: int = 0
    allowance: LoopAllowance | None = None
    """The loops that the conversation's turn may take, which the agent shares. None gives the agent its own loops."""
    earlier: tuple[Message, ...] = ()
    """The messages of an earlier agent whose work this agent goes on with."""
    meanwhile: Callable[[], str] = lambda: ""
    """A function that returns what the user has said to the agent since the last call."""
    adds: tuple[Operation, ...] = ()
    """Operations that are offered to this agent only."""


class AgentContext(StateOwner):
    """Owns the state of an agent. The agent's actor (in whose name it acts) passes on the events that the session
    needs."""

    def __init__(self, actor: Actor, state: AgentState) -> None:
        super().__init__(state)
        self._actor = actor
        self.last_word = ""
        self._why_ended: Phrase | None = None
        self._thoughts: list[str] = []

    def emit(self, event: Event) -> None:
        match event:
            case ActionFinished() if event.result.effect == "talk":
                self.last_word = event.result.said or self.last_word
            case ActionStarted() if event.action.operation in (RESPOND, EXIT):
                pass
            case DecisionMade():
                self._thoughts.append(shorten(event.decision.rationale.strip("-"), THOUGHT))
            case TurnEnded():
                self._why_ended = event.why if event.outcome != "done" else None
            case _ if isinstance(event, FOR_SESSION):
                self._actor.emit(event)
            case _:
                pass
        super().emit(event)

    async def ask(self, question: Question) -> Answer:
        """Puts a question to the user. The session journals it, and the agent's own state gets the answer, too."""
        answer = await self._actor.ask(question)
        super().emit(QuestionClosed(question_id=question.question_id, answer=answer, on_record=question.on_record))
        return answer

    def report(self, asked: str, outcome: Outcome, why: Phrase | None = None) -> AgentReport:
        """Returns the report. An agent that was cut off without a last message reports its latest thoughts instead."""
        thoughts = "\n".join(dict.fromkeys(filter(None, self._thoughts[-THOUGHTS:])))
        return AgentReport(
            asked=asked,
            outcome=outcome,
            found=self.last_word or ("" if outcome == "done" else thoughts),
            changed=tuple(self.state.files_changed),
            evidence=tuple(evidence.text for evidence in self.state.evidence),
            open=why or self._why_ended,
        )


class AgentWork:
    """One agent, from its beginning to its report."""

    def __init__(
        self, context: AgentContext, actor: Actor, make_turn: Callable[[AgentContext, Actor], Turn], task: AgentTask
    ) -> None:
        self._context = context
        self._actor = actor
        self._make_turn = make_turn
        self._asked = task.asked
        self._meanwhile = task.meanwhile

    async def run(self, seconds: float | None = None) -> AgentReport:
        """Runs the agent until it is done or cannot go on; raises a TimeoutError if it takes longer than `seconds`. Its
        questions are put to the user under the agent's name, and the agent goes on with the answer."""
        request = self._asked
        async with self._actor.at_most(seconds) as actor:
            turn = self._make_turn(self._context, actor)
            while (turn_outcome := await turn.run(request, (), self._meanwhile, None)) == "pending_user":
                request = await _answer(self._context, actor)
                if not request:
                    break
        return self.report(turn_outcome)

    def report(self, outcome: Outcome, why: Phrase | None = None) -> AgentReport:
        """Returns a report of how far the agent has come."""
        return self._context.report(self._asked, outcome, why)


class Agents:
    """Makes agents and runs them; each call is one agent, and any number may run at once."""

    def __init__(
        self,
        outer: AgentState,
        connection: ModelConnection,
        compiler: Compiler,
        pacemaker: PacemakerSettings,
        table: TransitionTable,
        settings: AgentSettings,
        memory: MemorySettings,
        watching: Callable[[StateOwner, Actor], Policy],
    ) -> None:
        """`compiler` knows only the operations that agents may use; `watching` makes the policy of every agent."""
        self._outer = outer
        self.connection = connection
        self._compiler = compiler
        self._pacemaker = pacemaker
        self._table = table
        self._settings = settings
        self._memory = memory
        self._watching = watching

    async def available(self) -> bool:
        """Says whether the model may hand tasks to agents. A small model may not, because it would lose track."""
        return not (await self.connection.ready()).profile.led

    async def usable(self) -> bool:
        """Says whether the model can be left alone with a step of a plan: it must call tools."""
        return (await self.connection.ready()).profile.native_tools

    async def run(self, task: AgentTask, actor: Actor) -> AgentReport:
        """Begins an agent and waits for its end."""
        return await self.begin(task, actor).run()

    def begin(self, task: AgentTask, actor: Actor) -> AgentWork:
        context = AgentContext(actor, self._state(task))
        inner_actor = replace(actor, emit_event=context.emit, put_question=context.ask, inner=True)
        return AgentWork(context, inner_actor, partial(self._turn, task), task)

    def _state(self, task: AgentTask) -> AgentState:
        outer_state = self._outer
        return AgentState(
            session_id=outer_state.session_id,
            folder=outer_state.folder,
            language=outer_state.language,
            model=task.model.model if task.model else outer_state.model,
            mode=outer_state.mode,
            turn=max(0, outer_state.turn - 1),
            phase=Phase.EXECUTION,
            messages=list(task.earlier),
            five=FiveItems(goal=task.goal, constraints=list(task.constraints)),
        )

    def _turn(self, task: AgentTask, context: AgentContext, actor: Actor) -> Turn:
        history = AgentHistory(context.state, self._memory)
        connection = AgentConnection(context, self.connection, task.model, task.max_tokens)
        thinker = Thinker(
            connection,
            self._compiler.narrowed(task.uses, task.adds),
            context.emit,
            self._settings,
            self._memory,
            self._pacemaker.detectors,
            history,
            streams=False,
        )
        phases = Phases(context, self._table)
        pacemaker = Pacemaker(self._pacemaker, allowance=task.allowance, in_agent=task.allowance is not None)
        pacing = TurnPacemaker(context, pacemaker, actor.ask)
        duck = DuckCallAnswers(context, phases, lambda: None)
        own_policies = (*task.policies, self._watching(context, actor))
        policies = Policies(lambda: own_policies)
        return Turn(context, actor, pacing, thinker, task.acting, phases, duck, policies, lambda: say("plan.ask"))


async def _answer(context: AgentContext, actor: Actor) -> str:
    """Puts the agent's question to the user. Returns the user's words; an empty text when the agent is to stop."""
    stop_choice = Choice(key="stop", label=say("agent.stop"))
    title = say("agent.asks", text=context.last_word)
    question = Question(
        kind="duck_call", title=title, choices=(stop_choice,), on_record=True, reason="asks", severity="medium"
    )
    answer = await actor.ask(question)
    return "" if answer.choice == "stop" else answer.text
