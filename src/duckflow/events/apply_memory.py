"""How events of memory change the state."""

from duckflow.events import types as happened
from duckflow.state.agent import AgentState
from duckflow.state.context import RECEIPTS_LIMIT
from duckflow.state.five import FiveItems
from duckflow.state.fold import holds


def apply_memory(
    state: AgentState, event: happened.ContextPruned | happened.PastSummarised | happened.PastForgotten
) -> None:
    match event:
        case happened.ContextPruned():
            state.context.kept, state.context.upto = list(event.kept), event.upto
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
        job.messages = [message for message in job.messages if not holds(message.text, words)]
