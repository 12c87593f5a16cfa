"""How events change the five items and the context."""

from collections.abc import Sequence

from duckflow.events import types as happened
from duckflow.state.agent import AgentState
from duckflow.state.context import RECEIPTS_LIMIT
from duckflow.state.five import FiveItems
from duckflow.state.fold import holds
from duckflow.state.plan import Plan


def begin_anew(state: AgentState) -> None:
    """A new request after one that is done: its goal is reached. What the user forbade stays forbidden."""
    state.last_delta = ""
    if state.plan is None or not state.plan.under_way:
        _change(state, goal="", why_now="", plan_brief=[], open_questions=[])


def hear(state: AgentState, constraints: Sequence[str]) -> None:
    """The user has spoken: what was asked is answered, and what is forbidden now counts."""
    state.heard = True
    state.five.open_questions = [one for one in state.five.open_questions if one != state.asked]
    state.asked = ""
    if constraints:
        _change(state, constraints=[*constraints, *(one for one in state.five.constraints if one not in constraints)])


def decided(state: AgentState, event: happened.DecisionMade) -> None:
    state.heard = False
    state.prompt_pattern = event.decision.prompt_pattern
    if event.goal:
        _change(state, goal=event.goal)


def asked(state: AgentState, question: str) -> None:
    """A question to the user is open until they speak."""
    state.asked = question
    _change(state, open_questions=[question, *(one for one in state.five.open_questions if one != question)])


def follow_plan(state: AgentState, plan: Plan | None) -> None:
    """The goal of an approved plan, and the steps that come next."""
    if plan is None or plan.plan_id != state.active_plan:
        if plan is not None and state.plan is None:
            state.five.plan_brief = []
        return
    if plan.under_way:
        current = plan.current()
        left = [step for step in plan.steps if step.status != "completed" and step is not current]
        steps = [*([current] if current else []), *left]
        _change(state, goal=plan.goal, plan_brief=[step.name for step in steps])
    elif plan.status in ("completed", "failed"):
        state.five.plan_brief = []


def _change(state: AgentState, **items: str | list[str]) -> None:
    state.five = FiveItems.model_validate(state.five.model_dump() | items)


def apply_memory(
    state: AgentState, event: happened.ContextPruned | happened.PastSummarised | happened.PastForgotten
) -> None:
    match event:
        case happened.ContextPruned():
            state.context.kept, state.context.cut, state.context.upto = list(event.kept), dict(event.cut), event.upto
            state.context.receipts = [*state.context.receipts, event.receipt][-RECEIPTS_LIMIT:]
        case happened.PastSummarised():
            state.context.add_summary(event.summary)
        case happened.PastForgotten():
            state.context.forget(event.numbers, event.words)
            if event.words:
                _strike_out(state, event.words)


def _strike_out(state: AgentState, words: str) -> None:
    """Everything in the state that would say the words to a model again."""
    five = state.five
    kept = {
        name: [line for line in getattr(five, name) if not holds(line, words)]
        for name in ("constraints", "plan_brief", "open_questions")
    }
    lines = {name: "" if holds(getattr(five, name), words) else getattr(five, name) for name in ("goal", "why_now")}
    state.five = FiveItems.model_validate(kept | lines)
    state.decision_log = [line for line in state.decision_log if not holds(line, words)]
    state.last_delta = "" if holds(state.last_delta, words) else state.last_delta
    state.title = "" if holds(state.title, words) else state.title
    for job in state.jobs.values():
        job.messages = [message for message in job.messages if not holds(message.whole, words)]
    for agent in state.agents.values():
        if agent.report and holds(f"{agent.task}\n{agent.report.found}", words):
            agent.task, agent.report = "", agent.report.model_copy(update={"asked": "", "found": ""})
