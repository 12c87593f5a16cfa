"""The drafts that the model writes (plans, tasks, reports), and how they are turned into the real data types."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from duckflow.errors import ReplyUnusable
from duckflow.forms.broken_json import read_json
from duckflow.i18n.words import joined
from duckflow.state.data import Line200, Sentences, shorten
from duckflow.state.plan import Plan, Step, dependency_problems

MOST_STEPS = 200


def _listed(value: Any) -> Any:
    """Makes a list of a single value where a list belongs, and an empty list of None or an empty text."""
    if value is None or value == "":
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


Needs = Annotated[list[int | str], BeforeValidator(_listed)]
Lines = Annotated[list[Line200], BeforeValidator(_listed)]


class Draft(BaseModel):
    """A reply of the model. Unknown fields are ignored; a null is the same as leaving a field out."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _given(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {name: value for name, value in cast("dict[str, Any]", data).items() if value is not None}


D = TypeVar("D", bound=Draft)


class StepDraft(Draft):
    name: str = Field(min_length=1)
    description: str = ""
    success: str = ""
    files: Lines = Field(default_factory=list[str])
    depends_on: Needs = Field(default_factory=list[int | str])


class RevisedStepDraft(StepDraft):
    was: int | None = None
    redo: bool = False


class PlanDraft(Draft):
    name: str = Field(min_length=1)
    steps: list[StepDraft] = Field(min_length=1, max_length=MOST_STEPS)
    risks: Lines = Field(default_factory=list[str])


class RevisedPlanDraft(Draft):
    name: str = ""
    goal: str = ""
    steps: list[RevisedStepDraft] = Field(min_length=1, max_length=MOST_STEPS)
    risks: Lines = Field(default_factory=list[str])


class TaskDraft(Draft):
    operation: str
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    reasoning: str = ""


class ExplanationDraft(Draft):
    """The model's answer when the user asks something about an open Gate (the question before risky actions)."""

    answer: str = Field(min_length=1)


class TasksDraft(Draft):
    tasks: list[TaskDraft] = Field(default_factory=list[TaskDraft])
    answer: str = ""


class ReportDraft(Draft):
    summary: Sentences
    causes: Annotated[list[Sentences], BeforeValidator(_listed)] = Field(default_factory=list[str])
    next_action: Sentences = ""
    lesson: Line200 = ""


def plan_from(reply: Any, goal: str) -> Plan:
    """Returns the drafted plan, or raises ReplyUnusable with the exact problem."""
    draft = read_draft(reply, PlanDraft)
    steps = [_step(step_draft, Step(name=step_draft.name)) for step_draft in draft.steps]
    return Plan(name=shorten(draft.name, 100), goal=goal, risks=draft.risks, steps=_linked(draft.steps, steps))


def revised_from(reply: Any, plan: Plan) -> Plan:
    """Returns the revised plan. Steps that go on keep their id, status, tasks, and the texts that the draft leaves out.
    Completed steps cannot be lost."""
    draft = read_draft(reply, RevisedPlanDraft)
    steps: list[Step] = []
    for step_draft in draft.steps:
        old_step = (
            plan.steps[step_draft.was - 1]
            if step_draft.was is not None and 1 <= step_draft.was <= len(plan.steps)
            else None
        )
        if old_step is None:
            old_step = next((step for step in plan.steps if step.name == step_draft.name), None)
        if old_step is not None and any(old_step.step_id == step.step_id for step in steps):
            raise ReplyUnusable(f"two steps of the new plan say they were step {step_draft.was}")
        step = _step(step_draft, old_step.copied() if old_step else Step(name=step_draft.name))
        if step_draft.redo and step.status in ("completed", "failed"):
            step.reopen()
        steps.append(step)
    kept_ids = {step.step_id for step in steps}
    if lost_names := [step.name for step in plan.steps if step.status != "pending" and step.step_id not in kept_ids]:
        raise ReplyUnusable(f"these steps are completed or begun and must stay: {', '.join(lost_names)}")
    risks, linked_steps = draft.risks or plan.risks, _linked(draft.steps, steps)
    headings = {"name": shorten(draft.name, 100) or plan.name, "goal": draft.goal.strip() or plan.goal}
    return plan.model_copy(update={**headings, "risks": risks, "steps": linked_steps})


def read_draft(reply: Any, kind: type[D]) -> D:
    """Reads a reply, or a value from a call, as the wanted draft. A bare list counts as the steps of a plan, or as the
    tasks of a step. A reply that was cut off is refused, because a text in it may be incomplete."""
    value: Any = reply
    if isinstance(reply, str):
        reply_json = read_json(reply)
        if reply_json.cut:
            raise ReplyUnusable("it was cut off; leave the long texts out, they are asked for one by one")
        value = reply_json.value
    if isinstance(value, list):
        value = {"tasks" if kind is TasksDraft else "steps": cast("list[Any]", value)}
    try:
        return kind.model_validate(value)
    except ValidationError as problem:
        mistakes = "; ".join(
            f"{'.'.join(map(str, error['loc'])) or 'reply'}: {error['msg']}" for error in problem.errors()[:6]
        )
        raise ReplyUnusable(f"the JSON does not fit: {mistakes}") from None


def _step(draft: StepDraft, step: Step) -> Step:
    step.name = shorten(draft.name, 100)
    for name, value in draft.model_dump(include={"description", "success", "files"}, exclude_unset=True).items():
        setattr(step, name, value)
    return step


def _linked(drafts: Sequence[StepDraft], steps: list[Step]) -> list[Step]:
    """Replaces dependencies by number or name with ids. Raises ReplyUnusable for unknown or circular dependencies."""
    ids = {str(number): step.step_id for number, step in enumerate(steps, 1)}
    ids |= {draft.name.casefold(): step.step_id for draft, step in zip(drafts, steps, strict=True)}
    for draft, step in zip(drafts, steps, strict=True):
        kept_needs = [need for need in step.depends_on if need in ids.values()]
        wanted_needs = draft.depends_on if "depends_on" in draft.model_fields_set else kept_needs
        needed_ids = dict.fromkeys(_need(need, ids) for need in wanted_needs)
        # Small models write that a step comes after itself. That means nothing, and they do not stop when told.
        step.depends_on = [need for need in needed_ids if need != step.step_id]
    if problems := dependency_problems(steps):
        raise ReplyUnusable("; ".join(problems))
    return steps


def _need(need: int | str, ids: dict[str, str]) -> str:
    text = str(need).strip()
    number_match = re.fullmatch(rf"(?i)\s*(?:{joined('plans.step', text)}\s*)?#?(\d+)\s*", text)
    return ids.get(text.casefold()) or ids.get(number_match[1] if number_match else "") or text
