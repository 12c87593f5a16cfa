"""Takes a Decision in: puts it as the user should get it, records it, and checks what it wants of state and phase."""

from collections.abc import Collection
from typing import Any, NamedTuple, cast

from duckflow.agent.phases import Phases
from duckflow.agent.session import StateOwner
from duckflow.events.types import DecisionMade, FiveChanged, MessageAdded, Noticed, Reviewed
from duckflow.forms.form import Reading
from duckflow.i18n.template import note
from duckflow.state.action import RESPOND, Action, Decision
from duckflow.state.agent import AgentState
from duckflow.state.five import StateDelta
from duckflow.state.message import Message
from duckflow.state.one_question import one_question
from duckflow.state.phase import Phase, Review
from duckflow.state.phrase import say
from duckflow.tools.toolbox import talk_operations

TALK_ARGUMENTS = ("text", "question")


def accept(reading: Reading, session: StateOwner, phases: Phases, said: Collection[str] = ()) -> Reading:
    """The Decision as it counts from now on. What of it is refused is told to the model; an answer that was given in
    this turn, word for word, is not given again."""
    decision = _polite(reading.decision, said)
    wanted = _checked(decision.state_delta, session.state) if decision.state_delta else None
    session.emit(DecisionMade(decision=decision, doubtful=reading.doubtful))
    turn = session.state.turn
    text = reading.text if reading.wire else "\n\n".join(decision.said())
    message = Message(role="assistant", text=text, turn=turn, decision=decision, wire=reading.wire)
    session.emit(MessageAdded(message=message))
    if wanted and (wanted.delta.items() or wanted.delta.decision):
        session.emit(FiveChanged(delta=wanted.delta))
    if wanted and wanted.told:
        session.emit(MessageAdded(message=Message(role="system", text=wanted.told, turn=turn)))
    if wanted and wanted.goal_refused:
        session.emit(Noticed(what=say("five.refused", goal=wanted.goal_refused)))
    if decision.rating and decision.verdict and session.state.phase is Phase.REVIEW:
        session.emit(Reviewed(review=Review(rating=decision.rating, verdict=decision.verdict, by="model")))
    phases.follow(decision)
    return reading._replace(decision=decision)


def _polite(decision: Decision, said: Collection[str]) -> Decision:
    """The Decision as the user gets it: at most one question, choices only where there are two, nothing twice."""
    actions = [_polite_action(action) for action in decision.actions]
    if decision.next_step == "done":
        actions = [one for one in actions if one.operation != RESPOND or one.args.get("text") not in said]
    return decision if actions == decision.actions else decision.model_copy(update={"actions": actions})


def _polite_action(action: Action) -> Action:
    args: dict[str, Any] = {}
    for name in TALK_ARGUMENTS if action.operation in talk_operations() else ():
        if isinstance(text := action.args.get(name), str):
            args[name] = one_question(text)
    if isinstance(choices := action.args.get("choices"), list):
        args["choices"] = _real(cast("list[Any]", choices))
    changed = any(action.args[name] != value for name, value in args.items())
    return action.model_copy(update={"args": {**action.args, **args}}) if changed else action


def _real(choices: list[Any]) -> list[Any]:
    """Choices that differ; a single one is none."""
    different = {str(choice).strip().casefold(): choice for choice in reversed(choices)}
    kept = [choice for choice in choices if different[str(choice).strip().casefold()] is choice]
    return kept if len(kept) > 1 else []


class CheckedDelta(NamedTuple):
    """What of a change is accepted, and what the model is told of the rest."""

    delta: StateDelta
    goal_refused: str = ""
    told: str = ""


def _checked(delta: StateDelta, state: AgentState) -> CheckedDelta:
    """A goal and constraints may change right after the user has spoken; under an approved plan its goal stands."""
    kept, told, refused = delta, list[str](), ""
    five, plan = state.five, state.plan
    if delta.goal is not None and delta.goal != five.goal:
        if plan is not None and plan.under_way:
            refused = delta.goal
            told.append(note(state.language, "goal_stays_plans", goal=five.goal))
        elif five.goal and not state.heard:
            refused = delta.goal
            told.append(note(state.language, "goal_stays", goal=five.goal))
    if refused:
        kept = kept.model_copy(update={"goal": None})
    lost = [one for one in five.constraints if one not in (delta.constraints or ())]
    if delta.constraints is not None and lost and not state.heard:
        kept = kept.model_copy(update={"constraints": None})
        told.append(note(state.language, "constraints_stay", constraints="; ".join(lost)))
    if delta.plan_brief is not None and plan is not None and plan.under_way:
        # It follows the plan itself.
        kept = kept.model_copy(update={"plan_brief": None})
    return CheckedDelta(kept, refused, "\n".join(told))
