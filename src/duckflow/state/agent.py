"""The whole state of a session. Only the session changes it, by applying events."""

import time
from collections.abc import Collection, Iterable
from typing import Literal

from pydantic import Field

from duckflow import DEFAULT_LANGUAGE
from duckflow.errors import Outcome
from duckflow.state.action import Evidence, is_checked
from duckflow.state.changes import Hunk, LineComment, ReviewFinding
from duckflow.state.checks import CheckRun, Proof
from duckflow.state.data import FrozenData, Line100, Line200, MutableData, Phrase, holds, new_id, shorten
from duckflow.state.message import Message, Usage
from duckflow.state.phase import FiveItems, Phase, Review, Status, Transition, Vitals, VitalsChange
from duckflow.state.plan import Plan
from duckflow.state.question import Question

SubAgentStatus = Literal["running", "done", "capped", "stopped", "failed", "interrupted"]
"""The states of an agent. `capped`: it reached a limit of its own. `stopped`: a person stopped it. `interrupted`: the
program ended while it ran."""
AGENTS_KEPT = 20


class AgentReport(FrozenData):
    """The result of an agent's work. `found` is the agent's own last message; the other fields are computed."""

    asked: str
    outcome: Outcome
    found: str = ""
    changed: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    open: Phrase | None = None
    """The reason why the agent ended before its work was done; empty if it was done."""


class SubAgent(MutableData):
    """One agent, running or ended. Its id is its name, such as `explore-1`. Its thoughts are only in the journal."""

    agent_id: str
    kind: str
    task: str
    files: tuple[str, ...] = ()
    only_reads: bool = False
    status: SubAgentStatus = "running"
    began: float = 0.0
    seconds: float = 0.0
    """Seconds of all the agent's earlier runs, without the present one."""
    usage: Usage = Field(default_factory=Usage)
    """The tokens that the agent used. They are also counted in the session's usage."""
    doing: str = ""
    question: Question | None = None
    asked_at: float = 0.0
    """The time at which the open question was asked; 0 if no question is open. Waiting for the user does not count as
    work."""
    report: AgentReport | None = None

    def took(self) -> float:
        end_time = self.asked_at or time.time()
        return self.seconds + (max(0.0, end_time - self.began) if self.status == "running" else 0.0)


def next_agent_id(kind: str, known: Collection[str]) -> str:
    """Returns the id of a new agent. Agents of all kinds are numbered in one sequence."""
    last_number = max((int(agent_id.rpartition("-")[2]) for agent_id in known), default=0)
    return f"{kind}-{last_number + 1}"


JobStatus = Literal["running", "paused", "completed", "failed", "cancelled", "interrupted"]
OPEN: tuple[JobStatus, ...] = ("running", "paused", "interrupted")
"""Statuses of a job that runs, or can be resumed."""
ENDED: frozenset[JobStatus] = frozenset({"completed", "failed", "cancelled"})


class JobReport(FrozenData):
    """The report of a job. The counts are computed. The words are the model's, or computed if the model wrote none."""

    done: int = 0
    failed: int = 0
    left: int = 0
    summary: str = ""
    causes: tuple[str, ...] = ()
    next_action: str = ""
    shown: tuple[str, ...] = ()
    """For each completed step, the recorded result that shows that it is done."""
    unverified: tuple[str, ...] = ()
    """Completed steps without a recorded result that shows that they are done."""
    lesson: str = ""
    """A lesson for later sessions; empty when nothing was learned."""
    computed: bool = False


class Job(MutableData):
    """A background job: the steps of a plan that it carries out, its status, and the question it waits for."""

    job_id: str = Field(default_factory=new_id("job"))
    name: str
    plan_id: str
    step_ids: list[str] = Field(default_factory=list[str])
    status: JobStatus = "running"
    began: float = 0.0
    messages_before: int | None = None
    """The number of messages that the conversation had when the job began; None in a session recorded earlier."""
    was_running: bool = False
    """True if the job was running when the program ended. A job that was paused then stays paused."""
    question: Question | None = None
    asked_at: float = 0.0
    """The time at which the open question was asked; 0 if no question is open. Waiting for the user does not count as
    work."""
    messages: list[Message] = Field(default_factory=list[Message])
    """The results of the job's tasks, which later tasks need. They are removed when the job ends."""
    report: JobReport | None = None
    ended_at: float = 0.0

    def took(self) -> float:
        return max(0.0, (self.asked_at or time.time()) - self.began) if self.began else 0.0


SUMMARIES_LIMIT = 6
RECEIPTS_LIMIT = 10
SUMMARY_LENGTH = 500


class PastSummary(FrozenData):
    """The model's summary of messages that were left out, and the range of messages it stands for (counted from 1)."""

    first: int
    last: int
    text: str

    def cited(self) -> str:
        """Returns the summary as it stands in the prompt: with the range of messages it stands for."""
        return f"messages {self.first}–{self.last}: {self.text}"

    def tells_of(self, numbers: Iterable[int]) -> bool:
        return any(self.first <= number + 1 <= self.last for number in numbers)


class Receipt(FrozenData):
    """A record of one pruning of the context: when it was, and what it saved."""

    dropped: int
    kept: int
    cut: int = 0
    """The number of messages that stayed but are shown only in part."""
    tokens_before: int
    tokens_after: int
    turn: int = 0


class Context(MutableData):
    """The context (the messages that the model is shown) as the last pruning left it."""

    kept: list[int] = Field(default_factory=list[int])
    cut: dict[int, int] = Field(default_factory=dict[int, int])
    """For each shortened message, the number of tokens that it was cut to."""
    upto: int = 0
    forgotten: list[int] = Field(default_factory=list[int])
    """Numbers of messages that the user wanted forgotten: they appear in no prompt and no search any more."""
    summaries: list[PastSummary] = Field(default_factory=list[PastSummary])
    receipts: list[Receipt] = Field(default_factory=list[Receipt])

    def add_summary(self, summary: PastSummary) -> None:
        """Adds a summary. When there are too many, the two oldest become one."""
        self.summaries.append(summary)
        while len(self.summaries) > SUMMARIES_LIMIT:
            oldest, second_oldest = self.summaries[:2]
            half_length = SUMMARY_LENGTH // 2
            text = f"{shorten(oldest.text, half_length)} {shorten(second_oldest.text, half_length)}"
            self.summaries[:2] = [PastSummary(first=oldest.first, last=second_oldest.last, text=text)]

    def forget(self, numbers: Iterable[int], words: str) -> None:
        """Forgets messages, and drops each summary that contains the words or stands for a forgotten message."""
        forgotten_numbers = sorted({*self.forgotten, *numbers})
        self.forgotten = forgotten_numbers
        self.summaries = [
            summary
            for summary in self.summaries
            if not summary.tells_of(forgotten_numbers) and not (words and holds(summary.text, words))
        ]


HISTORY_LIMIT = 50
MARKS_LIMIT = 1000
A_WHILE = 3600
"""Seconds after the last message from which on a new request counts as a new subject."""
CAUSES_LIMIT = 8
REFS_LIMIT = 8
CONVERSATION, PLAN = "conversation:", "plan:"


def kind_of_ref(ref: str) -> str:
    """Returns the kind of thing that a reference points at: `conversation`, `plan`, or an empty text for a file."""
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
    """The review of the work that was done in this turn."""
    proof: Proof | None = None
    """The result of testing the claim that this turn's work is done."""
    prompt_pattern: str = "base_main"

    five: FiveItems = Field(default_factory=FiveItems)
    heard: bool = False
    """True if the user has spoken since the model's last Decision."""
    said_last: Line200 = ""
    """The user's latest words, if they answered a question; empty if they are the user's latest message."""
    asked: Line100 = ""
    """The model's open question, which the user's next words may answer."""
    context_refs: list[str] = Field(default_factory=list[str])
    """The things being worked on, the latest last: files by their paths, `conversation:3`, `plan:plan_1a2b3c4d`."""
    decision_log: list[Line100] = Field(default_factory=list[str])
    pending_gate: Question | None = None
    last_delta: Line200 = ""
    allowed: list[Phrase] = Field(default_factory=list[Phrase])
    """Permissions that the user has given for this session; a branch of the session begins without them."""
    limited_to: tuple[str, ...] = ()
    """The files and folders that the user limited changes to; empty if there is no limit."""

    plans: dict[str, Plan] = Field(default_factory=dict[str, Plan])
    active_plan: str = ""
    jobs: dict[str, Job] = Field(default_factory=dict[str, Job])
    agents: dict[str, SubAgent] = Field(default_factory=dict[str, SubAgent])
    """The agents that the conversation has handed a task to, the latest last."""
    evidence: list[Evidence] = Field(default_factory=list[Evidence])
    """Commands that ran since the last change, with their exit codes."""
    check_runs: list[CheckRun] = Field(default_factory=list[CheckRun])
    """The last run of each check (such as the tests), the latest last."""
    vitals: Vitals = Field(default_factory=Vitals)
    vitals_causes: list[VitalsChange] = Field(default_factory=list[VitalsChange])
    files_changed: list[str] = Field(default_factory=list[str])
    changed_in: dict[str, set[int]] = Field(default_factory=dict[str, set[int]])
    """For each changed file, the turns that changed it."""
    goal_turn: int = 0
    """The turn that set the goal; 0 if a plan has set it."""
    undone_last: bool = False
    """True if the last change of files was an undo, so that `/redo` can reverse it."""
    comments: list[LineComment] = Field(default_factory=list[LineComment])
    """The user's comments on changed lines that have not been sent yet."""
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
        """Returns a title for the session: the user's own, else the name of its latest plan that was not given up, else
        its first words."""
        plan = next((plan.name for plan in reversed(self.plans.values()) if not plan.given_up), "")
        return self.named or plan or self.title

    @property
    def at_work(self) -> bool:
        """Says whether a background job is running."""
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
        """Returns the background jobs that run or are paused."""
        return [job for job in self.jobs.values() if job.status in ("running", "paused")]

    def just_ended(self) -> list[Job]:
        """Returns the jobs that have ended since the user's last message; none while a job still runs or is paused."""
        spoke_at = next((message.at for message in reversed(self.messages) if message.role == "user"), 0.0)
        return [] if self.live_jobs() else [job for job in self.jobs.values() if job.ended_at > spoke_at]

    def forget(self, words: str) -> None:
        """Removes every line and message that contains these words, so that no later prompt quotes them."""
        five = self.five
        remaining_lists = {
            name: [line for line in getattr(five, name) if not holds(line, words)]
            for name in ("constraints", "plan_brief", "open_questions")
        }
        lines = {name: "" if holds(getattr(five, name), words) else getattr(five, name) for name in ("goal", "why_now")}
        self.five = FiveItems.model_validate(remaining_lists | lines)
        self.decision_log = [line for line in self.decision_log if not holds(line, words)]
        self.last_delta = "" if holds(self.last_delta, words) else self.last_delta
        self.title = "" if holds(self.title, words) else self.title
        self.said_last = "" if holds(self.said_last, words) else self.said_last
        for plan in self.plans.values():
            plan.forget(words)
        for job in self.jobs.values():
            job.messages = [message for message in job.messages if not holds(message.whole, words)]
        for agent in self.agents.values():
            if agent.report and holds(f"{agent.task}\n{agent.report.found}", words):
                agent.task, agent.report = "", agent.report.model_copy(update={"asked": "", "found": ""})


class Headline(FrozenData):
    """A session as one line of a list. `asked` is its first request, `title` its subject as it turned out later."""

    title: Line100 = ""
    asked: Line100 = ""
    folder: str = ""
    turns: int = 0
    cost_usd: float = 0.0
    tokens: int = 0
    archived: bool = False
    """True if the user has archived the session. Continuing it makes it active again."""

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
