"""The Gate: one question for the risky part of an ActionList."""

from collections.abc import Sequence

from duckflow.safety.risk import highest
from duckflow.state.action import Action
from duckflow.state.phrase import say
from duckflow.state.question import Choice, GateRequest, Preview, Question, Risk

YES = Choice(key="yes", label=say("gate.yes"))
NO = Choice(key="no", label=say("gate.no"))


def gate_question(
    actions: Sequence[Action], previews: Sequence[Preview], risks: list[Risk], rationale: str, doubtful: bool
) -> Question:
    """Intent and rationale come from the model; impact and diff are computed."""
    request = GateRequest(
        action_ids=tuple(action.action_id for action in actions),
        operations=tuple(action.operation for action in actions),
        intent=tuple(action.reasoning for action in actions),
        rationale=rationale,
        impacts=tuple(impact for preview in previews for impact in preview.impacts),
        diff="\n".join(preview.diff for preview in previews if preview.diff),
        risk=highest(risks),
        doubtful=doubtful,
    )
    return Question(kind="gate", title=say("gate.title"), gate=request, choices=(YES, NO))
