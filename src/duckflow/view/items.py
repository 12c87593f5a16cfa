"""Items: everything that people see of a session, as typed data made of phrases and values, without words.

Every item has an id that is unique in the session, even where another process goes on with it. An event brings items
that are new or have changed: an action that has finished, a question that was answered, a text that became whole.
`number` is the number of the stored event that began the item; an item that is shown only while it happens has 0. `at`
is the time when it began."""

import re
from typing import Literal, NamedTuple

from duckflow.i18n.words import Words
from duckflow.outcome import Outcome
from duckflow.state.action import Action, ActionResult, Effect, StepKind, TaskProfile
from duckflow.state.checks import Proof
from duckflow.state.job import AgentReport, JobReport, JobStatus, SubAgentStatus
from duckflow.state.message import Usage
from duckflow.state.phase import Review
from duckflow.state.phrase import Phrase
from duckflow.state.picture import Picture
from duckflow.state.plan import Plan
from duckflow.state.question import Answer, Question
from duckflow.state.vitals import Severity, Vitals

About = Literal[
    "noticed", "retry", "rejected", "again", "model", "mode", "intervened", "reviewed", "pruned", "undone", "allowed",
    "forgotten", "ended", "proof", "job", "step", "typed", "offered", "left",
]  # fmt: skip
"""The subject of a notice; `NoticeItem` explains the names."""


class TextItem(NamedTuple):
    """Words of the user or of the model, its thoughts, the text of a file that it writes, or pictures of a tool.

    `streaming`: more will come. `reset`: it is void, and will be written again. `passed`: it was not an answer, but the
    reason for an action."""

    kind = "text"
    id: str
    number: int
    at: float
    by: Literal["user", "model", "thought", "body", "tool"]
    text: str
    state: Literal["streaming", "whole", "reset", "passed"] = "whole"
    piece: str = ""
    """The words that are new with this change."""
    duck: bool = False
    """The model itself calls for the user."""
    meanwhile: bool = False
    """The user said it while a turn was at work."""
    pictures: tuple[Picture, ...] = ()


class ReasonItem(NamedTuple):
    """The model's reason for what follows. The rationale is empty where it says no more than the answer or the
    calls."""

    kind = "reason"
    id: str
    number: int
    at: float
    rationale: str
    confidence: float
    profile: TaskProfile
    alternative: str
    piece: str = ""
    """The rationale, where it has not been streamed."""
    thoughts: str = ""
    """The model's thoughts before it, where they were streamed."""


class ActionItem(NamedTuple):
    """A tool call. `asked`: it waits for a yes. `left`: the turn or job was over before the call ended."""

    kind = "action"
    id: str
    number: int
    at: float
    operation: str
    state: Literal["asked", "running", "done", "failed", "left"]
    action: Action | None = None
    """The action; nothing where its beginning was not heard."""
    doing: Phrase | None = None
    effect: Effect | Literal[""] = ""
    step_kind: StepKind = "other"
    job: str = ""
    job_name: str = ""
    by_agent: bool = False
    """The job is an agent that the conversation has handed a task to."""
    gate: str = ""
    """The id of the question that asks about it."""
    answer: Answer | None = None
    diff: str = ""
    """The changes that it would make to files, where the Gate asks about this action alone."""
    result: ActionResult | None = None
    turn: int = 0

    @property
    def talks(self) -> bool:
        """Says whether it only talks; its words are then shown as a text."""
        if self.result and not self.result.ok:
            return False
        return self.effect == "talk" or (self.result is not None and self.result.said is not None)


class QuestionItem(NamedTuple):
    """A question to a person. If it is closed without an answer, its asker was interrupted."""

    kind = "question"
    id: str
    number: int
    at: float
    question: Question | None
    """The question; nothing where only its end was heard."""
    closed: bool = False
    answer: Answer | None = None
    turn: int = 0


class PlanItem(NamedTuple):
    """A plan as it was made, approved or changed. The progress of its steps is in the state."""

    kind = "plan"
    id: str
    number: int
    at: float
    plan: Plan
    active: bool


class ReportItem(NamedTuple):
    """The report of a job that has ended."""

    kind = "report"
    id: str
    number: int
    at: float
    job: str
    job_name: str
    status: JobStatus
    report: JobReport


class AgentItem(NamedTuple):
    """An agent that the conversation has handed a task to, with its report once it has ended."""

    kind = "agent"
    id: str
    number: int
    at: float
    agent_id: str
    agent_kind: str
    status: SubAgentStatus = "running"
    report: AgentReport | None = None


class RequestItem(NamedTuple):
    """A request to the model that was answered; `at` is the time when it was sent."""

    kind = "request"
    id: str
    number: int
    at: float
    model: str
    usage: Usage
    job: str


class NoticeItem(NamedTuple):
    """A notice: one line in passing. The meaning of `subject` depends on `about`:

    - model: its name, and `what` says why it was chosen; mode: its name; job: its status; step: its id
    - intervened: how the Pacemaker has stepped in; `details` say why, with their severity
    - ended: nothing, `outcome` is that of the turn; forgotten: the words
    - undone: `back`, or nothing for a turn that was done again
    - typed: a line that is no message; offered: a line for the user to change; left: where the user goes
    - allowed: nothing, `what` is the rule; reviewed: nothing, `review` says it; proof: nothing, `proof` says it
    - again: nothing, a reply is written again; noticed, retry, rejected, pruned: nothing"""

    kind = "notice"
    id: str
    number: int
    at: float
    about: About
    what: Phrase | None = None
    subject: str = ""
    details: tuple[Phrase, ...] = ()
    severity: Severity | None = None
    review: Review | None = None
    proof: Proof | None = None
    outcome: Outcome | None = None
    job: str = ""
    job_name: str = ""
    turn: int = 0
    paths: tuple[str, ...] = ()
    """The files that were undone or done again."""


class TurnItem(NamedTuple):
    """A turn; it has an outcome once it has ended."""

    kind = "turn"
    id: str
    number: int
    at: float
    turn: int
    outcome: Outcome | None = None
    why: Phrase | None = None
    waits: bool = False
    """The work cannot go on without the user's answer."""


class OutputItem(NamedTuple):
    """The output of a command; `over` when the action that ran it has ended."""

    kind = "output"
    id: str
    number: int
    at: float
    job: str
    job_name: str = ""
    by_agent: bool = False
    action: str = ""
    """The id of the action that runs it; empty for the user's own command."""
    tail: str = ""
    """The end of the whole output."""
    piece: str = ""
    """The output that is new with this change."""
    left_out: int = 0
    """The number of lines before the piece that were left out."""
    over: bool = False


class CommandItem(NamedTuple):
    """A command that the user typed, and the text it shows when it has ended."""

    kind = "command"
    id: str
    number: int
    at: float
    line: str
    text: str = ""
    problem: Phrase | None = None
    over: bool = False


class VitalsItem(NamedTuple):
    """The vitals: how Duckflow is doing."""

    kind = "vitals"
    id: str
    number: int
    at: float
    vitals: Vitals
    turn: int


class NowItem(NamedTuple):
    """The present activity."""

    kind = "now"
    id: str
    number: int
    at: float
    doing: Phrase | None = None
    work: str = ""
    """The kind of work, by its name."""
    loop: int = 0
    turn_usage: Usage = Usage()


class ChosenItem(NamedTuple):
    """The user's choices for the session; empty for a choice that has not been heard."""

    kind = "chosen"
    id: str
    number: int
    at: float
    model: str = ""
    window: int = 0
    mode: str = ""
    language: str = ""
    title: str = ""


Item = (
    TextItem
    | ReasonItem
    | ActionItem
    | QuestionItem
    | PlanItem
    | ReportItem
    | AgentItem
    | RequestItem
    | NoticeItem
    | TurnItem
    | OutputItem
    | CommandItem
    | VitalsItem
    | NowItem
    | ChosenItem
)


PASSING: frozenset[About] = frozenset(("noticed", "retry", "rejected", "model", "intervened", "reviewed", "proof"))
"""Notices that every front end shows as a line."""
LOUD = frozenset(("checks.failing", "checks.failing_before", "review.unverified", "checks.nothing"))
"""Lines that contradict what the model says of its work: they must be shown beside it."""
EXIT_CODE = r": exit code (-?\d+)"
FILES = r"(?P<before>^|[;:(（] ?)(?:(?P<how>there|gone): |in (?P<file>[^\s:;]+): )"


def notice_line(item: NoticeItem, words: Words) -> str:
    """Returns the notice as one line; empty where it needs no words."""
    notice_text = words.phrase(item.what) if item.what else ""
    match item.about:
        case "model":
            return f"{item.subject}: {notice_text}"
        case "intervened":
            causes, severity = " ".join(map(words.phrase, item.details)), words(f"severity.{item.severity}")
            return words(f"pacemaker.told.{item.subject}", found=causes, severity=severity)
        case "proof":
            parts = item.proof.parts() if item.proof else ()
            return words("proof.line", parts=" · ".join(map(words.phrase, parts))) if parts else ""
        case "reviewed":
            return review_line(item.review, words) if item.review and item.review.by == "model" else ""
        case "allowed":
            return words("notice.allowed", rule=notice_text)
        case _:
            return told_evidence(notice_text, words)


def review_line(review: Review, words: Words) -> str:
    rating, verdict = words(f"review.rating.{review.rating}"), words(f"review.verdict.{review.verdict}")
    return words("review.line", rating=rating, verdict=verdict)


def told_evidence(text: str, words: Words) -> str:
    """Returns evidence that was written for the model in the user's language."""

    def files(match: re.Match[str]) -> str:
        return match["before"] + words(f"evidence.{match['how'] or 'within'}", file=match["file"] or "")

    return re.sub(FILES, files, re.sub(EXIT_CODE, lambda match: words("evidence.exit_code", code=match[1]), text))
