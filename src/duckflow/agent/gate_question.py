"""The question at a Gate: what would be done, and what may be answered."""

from collections.abc import Sequence
from typing import NamedTuple

from duckflow.agent.permissions import Permission
from duckflow.safety.risk import Assessment, highest
from duckflow.state.action import RESPOND, Action, Decision
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import Choice, GateRequest, Preview, Question, gate_choice


class RiskyAction(NamedTuple):
    """One action that needs a yes."""

    action: Action
    preview: Preview
    assessment: Assessment
    rule: Permission | None = None
    editable: str = ""
    """The text that the user may edit before it is done, or nothing."""
    command: str = ""
    lasting: tuple[Phrase, ...] = ()
    """Effects of the action that cannot be undone."""
    only_reads: bool = False

    def only_touches(self, paths: Sequence[str]) -> bool:
        """Says whether the action does nothing but change some of these files."""
        changed = [impact.path for impact in self.preview.impacts]
        return bool(changed) and not self.command and set(changed) <= set(paths)


def gate_question(
    risky: Sequence[RiskyAction], decision: Decision, doubtful: bool, tracked: frozenset[str], reversible: bool
) -> Question:
    """Returns the question. Intent, rationale and alternatives come from the model; impact, risk and diff are
    computed."""
    impacts = [impact for risky_action in risky for impact in risky_action.preview.impacts]
    commands = tuple(risky_action.preview.diff for risky_action in risky if risky_action.command)
    diffs = [
        risky_action.preview.diff for risky_action in risky if risky_action.preview.diff and not risky_action.command
    ]
    lasting = tuple(dict.fromkeys(reason for risky_action in risky for reason in risky_action.lasting))
    reasons = dict.fromkeys(risky_action.action.reasoning for risky_action in risky)
    asked_about = {risky_action.action.action_id for risky_action in risky}
    others = [
        action for action in decision.actions if action.action_id not in asked_about and action.operation != RESPOND
    ]
    # The rationale is for the whole reply. It is shown if the reply is about these actions alone, and if it says more
    # than their own reasons.
    repeated = decision.rationale in reasons or reasons.keys() >= set(decision.rationale.split("; "))
    alone = risky[0] if len(risky) == 1 else None
    changes = not all(risky_action.only_reads for risky_action in risky)
    request = GateRequest(
        action_ids=tuple(risky_action.action.action_id for risky_action in risky),
        operations=tuple(risky_action.action.operation for risky_action in risky),
        intent=tuple(dict.fromkeys(why for risky_action in risky if (why := risky_action.action.why))),
        rationale=decision.rationale if not (repeated or others) else "",
        alternatives=(decision.alternative,) if decision.alternative else (),
        impacts=tuple(impact.model_copy(update={"tracked": impact.path in tracked}) for impact in impacts),
        commands=commands,
        diff="\n".join([*commands, *diffs]),
        risk=highest([risky_action.assessment.level for risky_action in risky]),
        reasons=tuple(dict.fromkeys(reason for risky_action in risky for reason in risky_action.assessment.reasons)),
        doubtful=doubtful,
        always=any(
            risky_action.assessment.always_ask or risky_action.assessment.level == "forbidden" for risky_action in risky
        ),
        reversible=reversible and changes and not lasting,
        lasting=lasting if reversible or not changes else (say("lasting.off"),),
        editable=alone.editable if alone else "",
    )
    choices = _choices(risky, request)
    return Question(kind="gate", title=say("gate.title"), gate=request, choices=choices, on_record=True)


def _choices(risky: Sequence[RiskyAction], request: GateRequest) -> tuple[Choice, ...]:
    """Returns the possible answers. An action that must always be asked about can only be allowed once."""
    choices = [gate_choice("yes", say("gate.yes")), gate_choice("no", say("gate.no"))]
    rules = rules_offered(risky)
    if rules and all(risky_action.rule in rules for risky_action in risky):
        choices += [gate_choice(scope, _scope_label(scope, rules)) for scope in ("session", "always")]
    if request.editable:
        choices.append(gate_choice("edit", say("gate.edit_it")))
    return tuple(choices)


def rules_offered(risky: Sequence[RiskyAction]) -> list[Permission]:
    """Returns the rules that a yes for the session or for good may set up, each once."""
    return list(
        dict.fromkeys(
            risky_action.rule for risky_action in risky if risky_action.rule and not risky_action.assessment.always_ask
        )
    )


def covered(risky_action: RiskyAction, rules: Sequence[Permission]) -> bool:
    """Says whether a yes that set up these rules is a yes to this action too."""
    operation, impacts = risky_action.action.operation, risky_action.preview.impacts
    return risky_action.rule in rules or any(rule.covers(operation, impacts, risky_action.command) for rule in rules)


def _scope_label(scope: str, rules: Sequence[Permission]) -> Phrase:
    if len(rules) > 1:
        return say(f"gate.{scope}_several", rules="; ".join(rule.shown() for rule in rules))
    [rule] = rules
    ending = f"_{rule.sort}" if rule.sort else ""
    return say(f"gate.{scope}{ending}", operation=rule.operation, pattern=rule.told)


def habit_of(risky: Sequence[RiskyAction], question: Question) -> Permission | None:
    """Returns the rule that repeated answers to this question point to, if it is offered anyway and of medium risk at
    most."""
    rules = rules_offered(risky) if any(choice.key == "always" for choice in question.choices) else []
    return rules[0] if len(rules) == 1 and question.gate and question.gate.risk in ("low", "medium") else None
