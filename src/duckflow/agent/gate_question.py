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
    """The text that a person may edit before it is done, or nothing."""
    command: str = ""
    lasting: tuple[Phrase, ...] = ()
    """What of it cannot be undone."""
    only_reads: bool = False

    def only_touches(self, paths: Sequence[str]) -> bool:
        """Whether it does nothing but change some of these files."""
        changed = [impact.path for impact in self.preview.impacts]
        return bool(changed) and not self.command and set(changed) <= set(paths)


def gate_question(
    risky: Sequence[RiskyAction], decision: Decision, doubtful: bool, tracked: frozenset[str], reversible: bool
) -> Question:
    """Intent, rationale and alternatives come from the model; impact, risk and diff are computed."""
    impacts = [impact for one in risky for impact in one.preview.impacts]
    commands = tuple(one.preview.diff for one in risky if one.command)
    diffs = [one.preview.diff for one in risky if one.preview.diff and not one.command]
    lasting = tuple(dict.fromkeys(reason for one in risky for reason in one.lasting))
    reasons = dict.fromkeys(one.action.reasoning for one in risky)
    asked_about = {one.action.action_id for one in risky}
    others = [one for one in decision.actions if one.action_id not in asked_about and one.operation != RESPOND]
    # The rationale is the whole reply's: it is shown where that is about these actions alone, and says more than they.
    repeated = decision.rationale in reasons or reasons.keys() >= set(decision.rationale.split("; "))
    alone = risky[0] if len(risky) == 1 else None
    changes = not all(one.only_reads for one in risky)
    request = GateRequest(
        action_ids=tuple(one.action.action_id for one in risky),
        operations=tuple(one.action.operation for one in risky),
        intent=tuple(dict.fromkeys(why for one in risky if (why := one.action.why))),
        rationale=decision.rationale if not (repeated or others) else "",
        alternatives=(decision.alternative,) if decision.alternative else (),
        impacts=tuple(impact.model_copy(update={"tracked": impact.path in tracked}) for impact in impacts),
        commands=commands,
        diff="\n".join([*commands, *diffs]),
        risk=highest([one.assessment.level for one in risky]),
        reasons=tuple(dict.fromkeys(reason for one in risky for reason in one.assessment.reasons)),
        doubtful=doubtful,
        always=any(one.assessment.always_ask or one.assessment.level == "forbidden" for one in risky),
        reversible=reversible and changes and not lasting,
        lasting=lasting if reversible or not changes else (say("lasting.off"),),
        editable=alone.editable if alone else "",
    )
    choices = _choices(risky, request)
    return Question(kind="gate", title=say("gate.title"), gate=request, choices=choices, on_record=True)


def _choices(risky: Sequence[RiskyAction], request: GateRequest) -> tuple[Choice, ...]:
    """What always asks cannot be allowed beyond once."""
    choices = [gate_choice("yes", say("gate.yes")), gate_choice("no", say("gate.no"))]
    rules = rules_offered(risky)
    if rules and all(one.rule in rules for one in risky):
        choices += [gate_choice(scope, _scope_label(scope, rules)) for scope in ("session", "always")]
    if request.editable:
        choices.append(gate_choice("edit", say("gate.edit_it")))
    return tuple(choices)


def rules_offered(risky: Sequence[RiskyAction]) -> list[Permission]:
    """The rules that a yes which goes further may set up, each once."""
    return list(dict.fromkeys(one.rule for one in risky if one.rule and not one.assessment.always_ask))


def covered(one: RiskyAction, rules: Sequence[Permission]) -> bool:
    """Says whether a yes that set up these rules is a yes to this action too."""
    operation, impacts = one.action.operation, one.preview.impacts
    return one.rule in rules or any(rule.covers(operation, impacts, one.command) for rule in rules)


def _scope_label(scope: str, rules: Sequence[Permission]) -> Phrase:
    if len(rules) > 1:
        return say(f"gate.{scope}_several", rules="; ".join(rule.shown() for rule in rules))
    [rule] = rules
    ending = f"_{rule.sort}" if rule.sort else ""
    return say(f"gate.{scope}{ending}", operation=rule.operation, pattern=rule.told)


def habit_of(risky: Sequence[RiskyAction], question: Question) -> Permission | None:
    """The rule that answers to this add up to: one that is offered anyway, of medium risk at most."""
    rules = rules_offered(risky) if any(choice.key == "always" for choice in question.choices) else []
    return rules[0] if len(rules) == 1 and question.gate and question.gate.risk in ("low", "medium") else None
