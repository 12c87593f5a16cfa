"""What rules read out of texts is put into an event before it is journaled, so that applying it needs no rules."""

from duckflow.events.types import ActionFinished, DecisionMade, Event, MessageAdded
from duckflow.state.action import EXIT, ActionResult, Decision
from duckflow.state.agent import AgentState
from duckflow.state.asking import ends_asking
from duckflow.state.noun import shorten
from duckflow.state.one_question import last_question
from duckflow.state.phase import Phase

TELLING = 12
"""A shorter message ("yes, go on") may say nothing of a goal: then it is what it goes on with."""
RECENT = 20
MAY_FORBID = ("not", "NOT", "n't", "n’t", "ever", "ithout", "nly", "no ", "No ", "ない", "ず", "なし", "禁止", "だけ")
"""Without any of these a message forbids nothing, and the rules that say so need not be loaded."""


def annotate(event: Event, state: AgentState) -> Event:
    """The event with what its texts say; the same event when they say nothing. Texts of jobs are not the user's."""
    match event:
        case MessageAdded() if not event.message.job:
            found = _read_message(event, state)
        case DecisionMade():
            found = {"goal": _goal_of(event.decision, state)}
        case ActionFinished() if not event.job:
            found = {"asked": _question_in(event.result)}
        case _:
            return event
    return event.model_copy(update=found) if any(found.values()) else event


def _read_message(event: MessageAdded, state: AgentState) -> dict[str, str | tuple[str, ...]]:
    message = event.message
    if message.role != "user":
        mentioned = message.operation.startswith("@")
        return {"file": message.operation.removeprefix("@") if mentioned else ""}
    return {
        "constraints": _constraints_in(message.text),
        "title": "" if state.title else shorten(message.text, 100),
    }


def _constraints_in(text: str) -> tuple[str, ...]:
    if not any(word in text for word in MAY_FORBID):
        return ()
    from duckflow.agent.request_rules import constraints_in

    return tuple(constraints_in(text))


def _goal_of(decision: Decision, state: AgentState) -> str:
    """Work begins: without a goal in other words it is what the user said."""
    if decision.step is not Phase.EXECUTION or state.five.goal:
        return ""
    said: list[str] = []
    for message in reversed(state.messages[-RECENT:]):
        if message.role == "user":
            said.append(message.text)
        answered = message.decision is not None and message.decision.next_step == "done"
        if said and (answered or len(said[-1]) >= TELLING):
            break
    return shorten(next((text for text in said if len(text) >= TELLING), said[0] if said else ""), 200)


def _question_in(result: ActionResult) -> str:
    """The question to the user that what was said ends with."""
    text = (result.said or "").rstrip()
    return shorten(last_question(text), 100) if result.operation != EXIT and ends_asking(text) else ""
