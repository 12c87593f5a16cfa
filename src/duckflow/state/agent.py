"""The whole state of a session. Only the session changes it, by applying events."""

from pydantic import Field

from duckflow import DEFAULT_LANGUAGE
from duckflow.state.action import Evidence, is_checked
from duckflow.state.changes import Hunk, LineComment
from duckflow.state.checks import CheckRun, Proof
from duckflow.state.context import Context
from duckflow.state.data import FrozenData, Line100, Line200, MutableData, holds
from duckflow.state.finding import ReviewFinding
from duckflow.state.five import FiveItems
from duckflow.state.job import Job, SubAgent
from duckflow.state.message import Message, Usage
from duckflow.state.phase import Phase, Review, Status, Transition
from duckflow.state.phrase import Phrase
from duckflow.state.plan import Plan
from duckflow.state.question import Question
from duckflow.state.vitals import Vitals, VitalsChange

HISTORY_LIMIT = 50
MARKS_LIMIT = 1000
A_WHILE = 3600
"""Seconds after the last message from which on a new request counts as a new subject."""
CAUSES_LIMIT = 8
REFS_LIMIT = 8
CONVERSATION, PLAN = "conversation:", "plan:"


def kind_of_ref(ref: str) -> str:
    """Returns the kind of thing that a reference points at: an earlier conversation, a plan, or (nothing) a file."""
    return next((kind for kind in (CONVERSATION, PLAN) if ref.startswith(kind)), "")


class AgentState(MutableData):
    """The state of one session. It survives a crash, since it is rebuilt from the journal."""

    session_id: str = ""
    folder: str = ""
    language: str = DEFAULT_LANGUAGE
    model: str = ""
    mode: str = ""
    """The mode that was last chosen: how much may be done without asking. Empty when it was never changed."""
    title: Line100 = ""
    named: Line100 = ""
    """The title that the user gave the session."""
    forked_from: str = ""

    turn: int = 0
    loop: int = 0
    limit: int = 0
    """The number of loops that the present turn may take."""
    profile: str = ""
    """The kind of work in the present turn, as far as it is known."""
    turn_open: bool = False
    messages: list[Message] = Field(default_factory=list[Message])
    aside: list[tuple[int, int]] = Field(default_factory=list[tuple[int, int]])
    """Ranges of messages that were taken out of the context and never return to it."""
    context: Context = Field(default_factory=Context)

    phase: Phase = Phase.PLANNING
    status: Status = Status.IN_PROGRESS
    transitions: list[Transition] = Field(default_factory=list[Transition])
    review: Review | None = None
    """The review of this turn's work."""
    proof: Proof | None = None
    """The result of trying the turn's claim that the work is done."""
    prompt_pattern: str = "base_main"

    five: FiveItems = Field(default_factory=FiveItems)
    heard: bool = False
    """True if the user has spoken since the model's last Decision."""
    asked: Line100 = ""
    """The question that waits for the user's next words."""
    context_refs: list[str] = Field(default_factory=list[str])
    """The things being worked on, the latest last: files by their paths, `conversation:3`, `plan:plan_1a2b3c4d`."""
    decision_log: list[Line100] = Field(default_factory=list[str])
    pending_gate: Question | None = None
    last_delta: Line200 = ""
    allowed: list[Phrase] = Field(default_factory=list[Phrase])
    """Permissions that the user has given for this session; a branch of the session begins without them."""

    plans: dict[str, Plan] = Field(default_factory=dict[str, Plan])
    active_plan: str = ""
    jobs: dict[str, Job] = Field(default_factory=dict[str, Job])
    agents: dict[str, SubAgent] = Field(default_factory=dict[str, SubAgent])
    """The agents that the conversation has handed a task to, the latest last."""
    evidence: list[Evidence] = Field(default_factory=list[Evidence])
    """Commands with their exit codes since the last change."""
    check_runs: list[CheckRun] = Field(default_factory=list[CheckRun])
    """The last run of each check, the latest last."""
    vitals: Vitals = Field(default_factory=Vitals)
    vitals_causes: list[VitalsChange] = Field(default_factory=list[VitalsChange])
    files_changed: list[str] = Field(default_factory=list[str])
    changed_in: dict[str, set[int]] = Field(default_factory=dict[str, set[int]])
    """For each changed file, the turns that changed it."""
    undone_last: bool = False
    """True if the last change of files was an undo, so that `/redo` can reverse it."""
    comments: list[LineComment] = Field(default_factory=list[LineComment])
    """The user's comments on changed lines that were not sent yet."""
    reviewed: list[str] = Field(default_factory=list[str])
    """Hunks that the user has marked as read, by their ids."""
    taken_back: list[Hunk] = Field(default_factory=list[Hunk])
    """Hunks that the user took back one by one; they can be put in again."""
    findings: list[ReviewFinding] = Field(default_factory=list[ReviewFinding])
    """Findings of review agents, the latest last."""
    usage: Usage = Field(default_factory=Usage)
    turn_usage: Usage = Field(default_factory=Usage)
    usage_by_model: dict[str, Usage] = Field(default_factory=dict[str, Usage])
    event_count: int = 0

    @property
    def plan(self) -> Plan | None:
        """Returns the plan that is being made or carried out."""
        return self.plans.get(self.active_plan)

    @property
    def heading(self) -> str:
        """Returns a title for the session: the user's own, else the name of its latest plan that was not dropped, else
        its first words."""
        plan = next((plan.name for plan in reversed(self.plans.values()) if plan.status != "failed"), "")
        return self.named or plan or self.title

    @property
    def at_work(self) -> bool:
        """Says whether a job runs."""
        return any(job.status == "running" for job in self.jobs.values())

    @property
    def changed_in_turn(self) -> bool:
        """Says whether this turn has changed anything that a check could look at."""
        return any(self.turn in turns and is_checked(path) for path, turns in self.changed_in.items())

    @property
    def changed_before(self) -> bool:
        """Says whether an earlier turn has changed files, even if that change was undone since."""
        return any(not turns or min(turns) < self.turn for turns in self.changed_in.values())

    def live_jobs(self) -> list[Job]:
        """Returns the jobs that run or are paused."""
        return [job for job in self.jobs.values() if job.status in ("running", "paused")]

    def forget(self, words: str) -> None:
        """Removes everything that would tell a model these words again."""
        five = self.five
        lists = {
            name: [line for line in getattr(five, name) if not holds(line, words)]
            for name in ("constraints", "plan_brief", "open_questions")
        }
        lines = {name: "" if holds(getattr(five, name), words) else getattr(five, name) for name in ("goal", "why_now")}
        self.five = FiveItems.model_validate(lists | lines)
        self.decision_log = [line for line in self.decision_log if not holds(line, words)]
        self.last_delta = "" if holds(self.last_delta, words) else self.last_delta
        self.title = "" if holds(self.title, words) else self.title
        for job in self.jobs.values():
            job.messages = [message for message in job.messages if not holds(message.whole, words)]
        for agent in self.agents.values():
            if agent.report and holds(f"{agent.task}\n{agent.report.found}", words):
                agent.task, agent.report = "", agent.report.model_copy(update={"asked": "", "found": ""})


class Headline(FrozenData):
    """One session in a line. `asked` is its first request, `title` what it turned out to be about."""

    title: Line100 = ""
    asked: Line100 = ""
    folder: str = ""
    turns: int = 0
    cost_usd: float = 0.0
    tokens: int = 0
    archived: bool = False
    """The user has archived it. Continuing the session brings it back."""

    @classmethod
    def of(cls, state: AgentState) -> "Headline":
        return cls(
            title=state.heading,
            asked=state.title,
            folder=state.folder,
            turns=state.turn,
            cost_usd=state.usage.cost_usd,
            tokens=state.usage.prompt_tokens + state.usage.completion_tokens,
        )
