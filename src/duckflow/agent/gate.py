"""The Gate: one question for the risky part of an ActionList."""

from collections.abc import Sequence
from typing import NamedTuple

from duckflow.agent.permissions import Permission
from duckflow.safety.risk import Assessment, highest
from duckflow.state.action import Action, Decision
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Choice, GateRequest, Preview, Question


class RiskyAction(NamedTuple):
    """One action that needs a yes."""

    action: Action
    preview: Preview
    assessment: Assessment
    rule: Permission | None = None
    editable: str = ""
    """The text that a person may edit before it is done, or nothing."""
    command: str = ""
    lasting: tuple[Phrase, ...] = ()
    """What of it cannot be undone."""


def gate_question(
    risky: Sequence[RiskyAction], decision: Decision, doubtful: bool, tracked: frozenset[str], reversible: bool
) -> Question:
    """Intent, rationale and alternatives come from the model; impact, risk and diff are computed."""
    impacts = [impact for one in risky for impact in one.preview.impacts]
    commands = tuple(one.preview.diff for one in risky if one.command)
    diffs = [one.preview.diff for one in risky if one.preview.diff and not one.command]
    lasting = tuple(dict.fromkeys(reason for one in risky for reason in one.lasting))
    alone = risky[0] if len(risky) == 1 else None
    request = GateRequest(
        action_ids=tuple(one.action.action_id for one in risky),
        operations=tuple(one.action.operation for one in risky),
        intent=tuple(one.action.reasoning for one in risky),
        rationale=decision.rationale,
        alternatives=(decision.alternative,) if decision.alternative else (),
        impacts=tuple(impact.model_copy(update={"tracked": impact.path in tracked}) for impact in impacts),
        commands=commands,
        diff="\n".join([*commands, *diffs]),
        risk=highest([one.assessment.level for one in risky]),
        reasons=tuple(dict.fromkeys(reason for one in risky for reason in one.assessment.reasons)),
        doubtful=doubtful,
        reversible=reversible and not lasting,
        lasting=lasting if reversible else (say("lasting.off"),),
        editable=alone.editable if alone else "",
    )
    return Question(kind="gate", title=say("gate.title"), gate=request, choices=_choices(risky, request))


def _choices(risky: Sequence[RiskyAction], request: GateRequest) -> tuple[Choice, ...]:
    """What always asks cannot be allowed beyond once."""
    choices = [Choice(key="yes", label=say("gate.yes")), Choice(key="no", label=say("gate.no"))]
    if request.editable:
        choices.append(Choice(key="edit", label=say("gate.edit_it")))
    rule = risky[0].rule
    alike = all(one.rule == rule and not one.assessment.always_ask for one in risky)
    if rule and alike:
        values = {"operation": rule.operation, "pattern": rule.pattern}
        choices.append(Choice(key="session", label=say("gate.session", **values)))
        choices.append(Choice(key="always", label=say("gate.always", **values)))
    return tuple(choices)
