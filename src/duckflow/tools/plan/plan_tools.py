"""The tools that draft, show and change plans."""

from typing import Annotated, Any

from pydantic import AliasChoices, Field, WithJsonSchema

from duckflow.errors import ToolError
from duckflow.events.ports import Emit
from duckflow.events.types import PlanChanged
from duckflow.events.work import StepChanged
from duckflow.state.action import APPROVE_PLAN
from duckflow.state.agent import AgentState
from duckflow.state.data import say
from duckflow.state.plan import Plan, Step, StepStatus
from duckflow.tools.plan.criterion import named_in, with_checks
from duckflow.tools.plan.drafting import Drafter, Revision, as_listed
from duckflow.tools.plan.folder import WorkFolder
from duckflow.tools.plan.ports import Approval
from duckflow.tools.plan.proof import lacking, proof, unchecked
from duckflow.tools.plan.steering import tell_changed_steps, words_of_user
from duckflow.tools.tool import A, Args, Done, Tool


class PlanTool(Tool[A]):
    """A tool that changes or shows the plan."""

    effect = "plan"


class DraftingTool(PlanTool[A]):
    """A tool that has the model draft something."""

    led = True

    def __init__(self, state: AgentState, emit: Emit, drafter: Drafter) -> None:
        self._state = state
        self._emit = emit
        self._drafter = drafter


def steps_schema(**more: str) -> WithJsonSchema:
    """Returns the schema of steps as in drafts.py. It is written out here, because computing it would take time in
    every session."""
    kinds = {"name": "string", "description": "string", "success": "string", **more}
    properties: dict[str, Any] = {name: {"type": kind} for name, kind in kinds.items()}
    properties["files"] = {"type": "array", "items": {"type": "string"}}
    properties["depends_on"] = {"type": "array", "items": {"type": "integer"}}
    return WithJsonSchema(
        {"type": "array", "items": {"type": "object", "properties": properties, "required": ["name"]}}
    )


class ProposeArgs(Args):
    """A goal, the plan for it if the model sends one, and whether the user's yes starts it in the background."""

    text: str = Field(min_length=1, validation_alias=AliasChoices("text", "goal", "changes"))
    name: str = ""
    steps: Annotated[Any, steps_schema()] = None
    risks: Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "string"}})] = None
    background: bool = False


class ReviseArgs(Args):
    """The changes in words, and those parts of the changed plan (goal, name, steps) that the model has drafted
    already."""

    text: str = Field(min_length=1, validation_alias=AliasChoices("text", "changes"))
    goal: str = ""
    name: str = ""
    steps: Annotated[Any, steps_schema(was="integer", redo="boolean")] = None


class IdArgs(Args):
    """The id of a plan, step or job. Without one, the current one is meant."""

    id: str | None = Field(default=None, validation_alias=AliasChoices("id", "step_id", "plan_id", "job_id"))


class ApproveArgs(Args):
    """The user's newest message, whole, and whether the work runs in the background."""

    words: str = Field(min_length=1)
    background: bool = False


class StepArgs(Args):
    id: str = Field(validation_alias=AliasChoices("id", "step_id"))
    status: StepStatus


LESSON_WANTED = (
    "The plan is completed. If it taught something that later sessions should know (a recipe, a failure and its fix, "
    "a decision), say so in a line of your answer; memory.remember keeps it, if the user wants that"
)


class Propose(DraftingTool[ProposeArgs]):
    """Drafts a plan, unless the call contains it. The user must say yes to it."""

    operation = "plan_tool.propose"
    subject = ("goal",)
    when = ("none",)
    args = ProposeArgs

    async def run(self, args: ProposeArgs) -> Done:
        state = self._state
        if state.live_jobs():
            raise ToolError(
                "a job of the present plan is still running: use plan_tool.revise, or cancel it first",
                "plan.job_running",
            )
        draft = {"name": args.name or args.text, "steps": args.steps, "risks": args.risks} if args.steps else None
        plan = with_checks(await self._drafter.plan(args.text, draft))
        plan.background = args.background
        self._emit(PlanChanged(plan=plan))
        return Done(
            f"Draft, shown to the user, who must say yes:\n{as_listed(plan, known=bool(draft))}",
            say(f"plan.proposed{'_background' if plan.background else ''}", name=plan.name, steps=len(plan.steps)),
        )

    def asks(self, args: ProposeArgs, language: str) -> bool:
        """Returns True, because the user is asked for a yes to the draft."""
        return True


class GetPlan(PlanTool[IdArgs]):
    """Shows a plan with the state of its steps."""

    operation = "plan_tool.get"
    counts_as = "read"
    when = ("draft", "approved")
    args = IdArgs

    def __init__(self, state: AgentState) -> None:
        self._state = state

    async def run(self, args: IdArgs) -> Done:
        plan = self._state.plans.get(args.id or "") or the_plan(self._state)
        return Done(as_listed(plan), say("plan.looked_up", name=plan.name))


class Revise(DraftingTool[ReviseArgs]):
    """Changes the plan as described in words. Steps that are being carried out are told before their next task."""

    operation = "plan_tool.revise"
    when = ("draft", "approved", "over")
    args = ReviseArgs

    async def run(self, args: ReviseArgs) -> Done:
        settled_ids = {step.step_id for step in the_plan(self._state).steps if step.status in ("completed", "failed")}
        revision = Revision(args.text, args.goal, args.name, args.steps)
        plan = await self._drafter.revise(the_plan(self._state), revision)
        reopened_ids = {step.step_id for step in plan.steps if step.step_id in settled_ids and step.status == "pending"}
        # Work went on in the meantime, so the states that steps have reached since the draft was requested count.
        plan = up_to_date(plan, the_plan(self._state), reopened_ids)
        plan_approved = plan.approved or (the_plan(self._state) if plan.status != "draft" else None)
        if plan_approved and (lost_demands := weakened(plan_approved, plan)):
            return self._ask_for_yes(plan, lost_demands, plan_approved)
        if plan.approved:
            approved_fields = {"status": plan.approved.status, "checks": plan.approved.checks, "approved": None}
            plan = plan.model_copy(update=approved_fields)
        plan_before = the_plan(self._state)
        self._emit(PlanChanged(plan=with_checks(plan)))
        tell_changed_steps(self._emit, self._state, plan_before, words_of_user(self._state, args.text))
        listing = as_listed(plan, known=bool(args.steps))
        return Done(f"Revised:\n{listing}", say("plan.revised", name=plan.name, steps=len(plan.steps)))

    def asks(self, args: ReviseArgs, language: str) -> bool:
        """Returns True if the plan is a draft, because the user is asked for a yes to a draft."""
        return self._state.plan is not None and self._state.plan.status == "draft"

    def _ask_for_yes(self, plan: Plan, weaker: str, approved: Plan) -> Done:
        """Turns an approved plan that now asks for less into a draft again. The draft remembers the plan that the user
        approved."""
        if self._state.live_jobs():
            raise ToolError(
                f"not changed: the user approved {weaker}, and a job works on it. Cancel the job first, or ask them",
                "plan.weakened_at_work",
                what=weaker,
            )
        self._emit(PlanChanged(plan=with_checks(plan.model_copy(update={"status": "draft", "approved": approved}))))
        return Done(
            f"The user approved {weaker}: they must say yes to the weaker plan:\n{as_listed(plan)}",
            say("plan.weakened", name=plan.name, what=weaker),
        )


class Approve(PlanTool[ApproveArgs]):
    """Passes on the user's yes to the draft. The user's own words are checked; in doubt the user is asked, and answers
    with one key."""

    operation = APPROVE_PLAN
    when = ("draft",)
    args = ApproveArgs

    def __init__(self, state: AgentState, approval: Approval) -> None:
        self._state = state
        self._approval = approval

    async def run(self, args: ApproveArgs) -> Done:
        name = the_plan(self._state).name
        return Done(await self._approval.pass_on(args.words, args.background), say("plan.passed_on", name=name))


class UpdateStep(PlanTool[StepArgs]):
    """Sets the status of a step. A completed step that no recorded result proves is marked unverified."""

    operation = "plan_tool.update_step"
    when = ("approved",)
    led = True
    args = StepArgs

    def __init__(self, state: AgentState, emit: Emit, folder: WorkFolder) -> None:
        self._state = state
        self._emit = emit
        self._folder = folder

    async def run(self, args: StepArgs) -> Done:
        state = self._state
        plan = approved_plan(state)
        step = the_step(plan, args.id)
        if args.status in ("in_progress", "completed"):
            needs_done(plan, step)
        completes_step = args.status == "completed"
        evidence = proof(state, step, self._folder) if completes_step else ""
        lacking_text = lacking(state, step, self._folder) if completes_step and not evidence else ""
        step_changed = StepChanged(plan_id=plan.plan_id, step_id=step.step_id, status=args.status)
        self._emit(step_changed.model_copy(update={"evidence": evidence, "lacking": lacking_text}))
        if completes_step and not evidence and not lacking_text and (prose := unchecked(step)):
            return Done(
                f"{step.name}: completed, but UNVERIFIED: nothing checks “{prose}”: only `quoted` words are.",
                say("plan.step_unchecked", step=step.name, what=prose),
            )
        if completes_step and not evidence:
            return Done(
                f"{step.name}: completed, but UNVERIFIED: nothing since the last change shows "
                f"{lacking_text or 'it'}. Do the check that its success names.",
                say("plan.step_unverified", step=step.name),
            )
        evidence_note = f" ({evidence})" if evidence else ""
        if plan.status == "completed":
            evidence_note += f". {LESSON_WANTED}"
        return Done(f"{step.name}: {args.status}{evidence_note}", say(f"plan.step_now.{args.status}", step=step.name))


def the_plan(state: AgentState) -> Plan:
    if state.plan is None:
        raise ToolError("there is no plan; plan_tool.propose drafts one", "plan.none")
    return state.plan


def approved_plan(state: AgentState) -> Plan:
    plan = the_plan(state)
    if plan.status == "draft":
        raise ToolError("the plan is a draft: the user must say yes to it first", "plan.not_approved", name=plan.name)
    if plan.status == "withdrawn":
        raise ToolError(
            "the user has undone the plan's work, so it is withdrawn: plan_tool.propose drafts a new one",
            "plan.is_withdrawn",
            name=plan.name,
        )
    return plan


def the_step(plan: Plan, wanted: str | None) -> Step:
    """Returns the wanted step, or the next one that may start."""
    step = plan.step(wanted) if wanted else plan.next_step()
    if step is None and wanted:
        known_steps = ", ".join(f"{other.step_id} ({other.name})" for other in plan.steps)
        raise ToolError(f"there is no step {wanted!r}. Steps: {known_steps}", "plan.no_step", step=wanted)
    if step is None:
        raise ToolError("every step of the plan is completed", "plan.all_done", name=plan.name)
    return step


def needs_done(plan: Plan, step: Step) -> None:
    open_needs = [other for other in plan.steps if other.step_id in step.depends_on and not other.settled]
    if not open_needs:
        return
    missing_needs = ", ".join(
        f"{other.name} (not shown: {other.lacking})" if other.lacking else other.name for other in open_needs
    )
    raise ToolError(
        f"{step.name!r} starts only when these are completed: {missing_needs}",
        "plan.needs",
        step=step.name,
        needs=", ".join(other.name for other in open_needs),
    )


def weakened(before: Plan, after: Plan) -> str:
    """Returns what a revision drops from an approved plan: steps, and things that the criterion of a step demands."""
    new_steps = {step.step_id: step for step in after.steps}
    lost_demands: list[str] = []
    for step in before.steps:
        if step.step_id not in new_steps:
            lost_demands.append(step.name)
            continue
        names = named_in(new_steps[step.step_id].success)
        lost_demands += [f"{step.name}: {thing.told()}" for thing in named_in(step.success) if thing not in names]
        if step.success.strip() and not new_steps[step.step_id].success.strip():
            lost_demands.append(f"{step.name}: {step.success}")
    return "; ".join(dict.fromkeys(lost_demands))


def up_to_date(revised: Plan, now: Plan, reopened: set[str]) -> Plan:
    """Returns the revised plan with the states that its steps have reached by now. Steps that are done again begin
    anew."""
    reached_steps = {step.step_id: step for step in now.steps if step.step_id not in reopened}
    for step in revised.steps:
        if old_step := reached_steps.get(step.step_id):
            step.status, step.evidence, step.task_list = old_step.status, old_step.evidence, old_step.copied().task_list
            step.said, step.answered = old_step.said, old_step.answered
    has_open_step = now.status == "completed" and any(step.status != "completed" for step in revised.steps)
    return revised.model_copy(update={"status": "in_progress" if has_open_step else now.status})
