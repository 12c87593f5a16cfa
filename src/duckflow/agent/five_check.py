"""Whether the five items may change as a Decision wants: what the user wants is the user's to change."""

from dataclasses import dataclass

from duckflow.state.agent import AgentState
from duckflow.state.five import StateDelta


@dataclass(frozen=True, slots=True)
class Checked:
    """What of a change is accepted, and what the model is told of the rest."""

    delta: StateDelta
    goal_refused: str = ""
    told: str = ""


def checked(delta: StateDelta, state: AgentState) -> Checked:
    """A goal and constraints may change right after the user has spoken; under an approved plan its goal stands."""
    kept, told, refused = delta, list[str](), ""
    five, plan = state.five, state.plan
    if delta.goal is not None and delta.goal != five.goal:
        if plan is not None and plan.under_way:
            refused = delta.goal
            told.append(
                f"the goal stays {five.goal!r}: it is the approved plan's. Use plan_tool.revise to change the plan"
            )
        elif five.goal and not state.heard:
            refused = delta.goal
            told.append(f"the goal stays {five.goal!r}: the user has not changed it. Ask if it should change")
    if refused:
        kept = kept.model_copy(update={"goal": None})
    lost = [one for one in five.constraints if one not in (delta.constraints or ())]
    if delta.constraints is not None and lost and not state.heard:
        kept = kept.model_copy(update={"constraints": None})
        told.append(f"the constraints stay: the user has not lifted {'; '.join(lost)!r}")
    if delta.plan_brief is not None and plan is not None and plan.under_way:
        # It follows the plan itself.
        kept = kept.model_copy(update={"plan_brief": None})
    return Checked(kept, refused, ". ".join(told))
