"""Permissions that a plan's approval may bring: edits of the files that its steps change. They hold only for the plan's
own work, and end with the plan or with its job."""

from collections.abc import Mapping, Sequence

from duckflow.agent.actor import Actor
from duckflow.agent.gate_question import Scope
from duckflow.agent.permissions import EDITS, LISTED, Permission, Permissions
from duckflow.agent.session import Session
from duckflow.events.types import Event, Noticed, PermissionGiven, PermissionTaken, PlanChanged
from duckflow.events.work import JobEnded, JobStarted, StepChanged
from duckflow.i18n.answers import read_whole
from duckflow.i18n.template import note
from duckflow.i18n.words import Words
from duckflow.safety.path_names import escaped
from duckflow.state.data import Phrase, say
from duckflow.state.mode import Mode
from duckflow.state.plan import Plan
from duckflow.tools.plan.criterion import changed_files


def plan_rules(plan: Plan) -> list[Permission]:
    """Returns the rule for edits of exactly the files that the criteria of the plan's steps demand to be changed. Files
    that only occur in its texts are left out, because the plan may not change them."""
    patterns = [escaped(path) for path in changed_files(plan)]
    return [Permission(operation=EDITS, pattern=LISTED.join(patterns), plan=plan.plan_id)] if patterns else []


def plan_question(plan: Plan | None, mode: Mode) -> Phrase:
    """Returns the question whether a draft is to be carried out, or is to end where nothing of it is left. Where every
    edit is asked about, it names the answer that allows the edits of the plan's files, too."""
    if plan and plan.all_done:
        return say("plan.ask_end")
    rules = plan_rules(plan) if plan and mode is Mode.ASK else []
    return say("plan.ask_edits", files=rules[0].pattern) if rules else say("plan.ask")


class PlanPermissions:
    """Says for which plan somebody acts, and takes the rules of a plan back when the plan or its job has ended."""

    def __init__(self, session: Session, permissions: Permissions) -> None:
        self._session = session
        self._permissions = permissions
        self._given_in: dict[str, int] = {}
        """The turn of the conversation in which the user gave the rules of a plan, by the plan's id."""
        self._approved_in: dict[str, int] = {}
        """The turn of the conversation in which the user approved a plan, by the plan's id."""
        self._jobs_of_yes: set[str] = set()
        """The jobs that were started while the user only said to go on with their plan."""
        session.subscribe(self._follow, PlanChanged, StepChanged, JobStarted, JobEnded)
        self._take_back()

    def given(self, plan_id: str) -> None:
        """Notes the turn in which a rule was given. A rule of no plan has an empty id, which nobody asks for."""
        self._given_in[plan_id] = self._session.state.turn

    def approved(self, plan_id: str) -> None:
        """Notes the turn of the user's yes. Nothing else counts as one: the model, too, changes approved plans, and
        turns drafts back into them."""
        self._approved_in[plan_id] = self._session.state.turn

    def plan_of(self, actor: Actor) -> str:
        """Returns the id of the plan that the actor carries out, if rules were given for it."""
        return self._carried_out(actor, self._given_in)

    def carries_out(self, actor: Actor) -> bool:
        """Says whether the actor carries out an approved plan. The model can start jobs, too, so a job counts only if
        the user wanted nothing else when it was started."""
        is_wanted = not actor.job_id or actor.job_id in self._jobs_of_yes
        return is_wanted and bool(self._carried_out(actor, self._approved_in))

    def _carried_out(self, actor: Actor, begun_in: Mapping[str, int]) -> str:
        """Returns the id of the plan that the actor carries out. A job carries out the plan that it was started for.
        The conversation does so from a turn on (`begun_in`, by the plan's id), unless a job has taken over the plan,
        and as long as the user only says to go on: anything else may be about other work."""
        state = self._session.state
        if job := state.jobs.get(actor.job_id):
            plan = state.plans.get(job.plan_id)
        else:
            plan = state.plan if actor.follows_steps else None
            has_job = plan is not None and any(job.plan_id == plan.plan_id for job in state.jobs.values())
            plan = plan if plan and not has_job and self._only_goes_on(begun_in.get(plan.plan_id)) else None
        return plan.plan_id if plan and plan.under_way else ""

    def _only_goes_on(self, begun_in: int | None) -> bool:
        """Says whether the user has only told to go on in the turns after this one."""
        state = self._session.state
        if begun_in is None:
            return False
        later_messages = [message for message in state.messages if message.turn > begun_in and not message.job]
        later_texts = [message.text for message in later_messages if message.role == "user"]
        return all(read_whole(text, state.language).plain_yes for text in later_texts)

    def _follow(self, event: Event) -> None:
        """Takes back the rules of plans that have ended. A job's end counts like its plan's, unless it did all of its
        work and another job of the plan still runs."""
        if isinstance(event, PlanChanged) and event.plan.status == "draft":
            self._approved_in.pop(event.plan.plan_id, None)
        elif isinstance(event, JobStarted) and self._only_goes_on(self._approved_in.get(event.job.plan_id)):
            self._jobs_of_yes.add(event.job.job_id)
        job = self._session.state.jobs.get(event.job_id) if isinstance(event, JobEnded) else None
        live_plan_ids = {live_job.plan_id for live_job in self._session.state.live_jobs()}
        self._take_back(job.plan_id if job and (job.status != "completed" or job.plan_id not in live_plan_ids) else "")

    def _take_back(self, ended_id: str = "") -> None:
        """Takes back the rules of the plan with this id, and those of every plan that has ended or is not known."""
        for rule in [rule for rule in self._permissions.session if rule.plan]:
            plan = self._session.state.plans.get(rule.plan)
            if plan is None or plan.plan_id == ended_id or plan.is_over:
                self._permissions.session.remove(rule)
                self._session.emit(PermissionTaken(rule=rule.describe()))


class RulesOfYes:
    """Sets up the rules of a yes that holds for more than one action, and tells the user and the model of them."""

    def __init__(self, session: Session, permissions: Permissions, plans: PlanPermissions) -> None:
        self._session = session
        self._permissions = permissions
        self._plans = plans
        self._untold: list[str] = []

    def allow(self, rules: Sequence[Permission], scope: Scope, about: str) -> None:
        """Adds the rules. The user is told of each rule before it takes effect."""
        language = self._session.state.language
        if not rules:
            self._session.emit(Noticed(what=say("permission.only_once")))
        for rule in dict.fromkeys(rule.as_named(about, language) for rule in rules):
            self._session.emit(Noticed(what=rule.begins(scope)))
            self._permissions.add(rule, for_good=scope == "always")
            self._plans.given(rule.plan)
            self._session.emit(PermissionGiven(rule=rule.describe(), scope=scope))
            rule_text = Words(language).phrase(rule.describe())
            self._untold.append(note(language, f"allowed_{'plan' if rule.plan else scope}", rule=rule_text))

    def told(self) -> str:
        """Returns the rules that the model has not been told of, in words for it."""
        lines, self._untold = self._untold, []
        return "\n".join(lines)
