"""What people see of a session, as typed data: phrases and values, no words.

Every item has an id that no other of the session has, also where another process goes on with it. An event brings items
that are new or have changed: an action that has finished, a question that was answered, a text that became whole.
`number` is that of the event on record which began the item; what is shown only while it happens has 0. `at` is when it
began.
"""

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
"""What a notice is about; the names are explained at `NoticeItem`."""


class TextItem(NamedTuple):
    """Words of the user or of the model, what it thinks, the text of a file that it writes, or pictures of a tool.

    `streaming`: more will come. `reset`: it does not count, and is written again. `passed`: it was no answer, but said
    why something is done."""

    kind = "text"
    id: str
    number: int
    at: float
    by: Literal["user", "model", "thought", "body", "tool"]
    text: str
    state: Literal["streaming", "whole", "reset", "passed"] = "whole"
    piece: str = ""
    """The words that are new with this change: what was streamed before comes only once."""
    duck: bool = False
    """The model calls for the user itself."""
    meanwhile: bool = False
    """Said while a turn was at work."""
    pictures: tuple[Picture, ...] = ()


class ReasonItem(NamedTuple):
    """Why the model does what follows. The rationale is empty where it says no more than the answer or the calls."""

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
    """What it has thought before, where that was streamed."""


class ActionItem(NamedTuple):
    """A call of a tool. `asked`: it waits for a yes. `left`: the turn or job was over before its end."""

    kind = "action"
    id: str
    number: int
    at: float
    operation: str
    state: Literal["asked", "running", "done", "failed", "left"]
    action: Action | None = None
    """Nothing where its beginning was not heard."""
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
    """What it would do to files, where the Gate asks about it alone."""
    result: ActionResult | None = None
    turn: int = 0

    @property
    def talks(self) -> bool:
        """Whether it only says something: what it says is a text."""
        if self.result and not self.result.ok:
            return False
        return self.effect == "talk" or (self.result is not None and self.result.said is not None)


class QuestionItem(NamedTuple):
    """Something that a person is asked. Closed without an answer, whatever asked it was interrupted."""

    kind = "question"
    id: str
    number: int
    at: float
    question: Question | None
    """Nothing where only its end was heard."""
    closed: bool = False
    answer: Answer | None = None
    turn: int = 0


class PlanItem(NamedTuple):
    """A plan as it was made, approved or changed; the steps move on in the state."""

    kind = "plan"
    id: str
    number: int
    at: float
    plan: Plan
    active: bool


class ReportItem(NamedTuple):
    """A job has ended."""

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
    """A request to the model that was answered; `at` is when it was asked."""

    kind = "request"
    id: str
    number: int
    at: float
    model: str
    usage: Usage
    job: str


class NoticeItem(NamedTuple):
    """One line in passing. What the subject is depends on what the notice is about:

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
    """Of what was undone or done again: the files."""


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
    """The work cannot go on without an answer of the user."""


class OutputItem(NamedTuple):
    """What a command prints; `over` when the action that ran it has ended."""

    kind = "output"
    id: str
    number: int
    at: float
    job: str
    job_name: str = ""
    by_agent: bool = False
    action: str = ""
    """The id of the action that runs it; nothing for a command of the user's own."""
    tail: str = ""
    """The end of all that came."""
    piece: str = ""
    """What came with this change."""
    left_out: int = 0
    """Lines before the piece that were not handed on."""
    over: bool = False


class CommandItem(NamedTuple):
    """A command that the user has typed, and what it shows when it has ended."""

    kind = "command"
    id: str
    number: int
    at: float
    line: str
    text: str = ""
    problem: Phrase | None = None
    over: bool = False


class VitalsItem(NamedTuple):
    """How it is."""

    kind = "vitals"
    id: str
    number: int
    at: float
    vitals: Vitals
    turn: int


class NowItem(NamedTuple):
    """What goes on."""

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
    """What was chosen for the session; nothing for what has not been heard."""

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
"""Notices that are a line for everybody who watches."""
LOUD = frozenset(("checks.failing", "checks.failing_before", "review.unverified", "review.nothing_done"))
"""Lines that speak against what the model says of its work: they must be seen beside it."""
EXIT_CODE = r": exit code (-?\d+)"
FILES = r"(?P<before>^|[;:(] ?)(?:(?P<how>there|gone): |in (?P<file>[^\s:;]+): )"


def notice_line(item: NoticeItem, words: Words) -> str:
    """One line; nothing for what needs no words."""
    what = words.phrase(item.what) if item.what else ""
    match item.about:
        case "model":
            return f"{item.subject}: {what}"
        case "intervened":
            causes, severity = " ".join(map(words.phrase, item.details)), words(f"severity.{item.severity}")
            return words(f"pacemaker.told.{item.subject}", found=causes, severity=severity)
        case "proof":
            parts = item.proof.parts() if item.proof else ()
            return words("proof.line", parts=" · ".join(map(words.phrase, parts))) if parts else ""
        case "reviewed":
            return review_line(item.review, words) if item.review and item.review.by == "model" else ""
        case "allowed":
            return words("notice.allowed", rule=what)
        case _:
            return told_evidence(what, words)


def review_line(review: Review, words: Words) -> str:
    rating, verdict = words(f"review.rating.{review.rating}"), words(f"review.verdict.{review.verdict}")
    return words("review.line", rating=rating, verdict=verdict)


def told_evidence(text: str, words: Words) -> str:
    """What is on record for the model, in the user's language."""

    def files(match: re.Match[str]) -> str:
        return match["before"] + words(f"evidence.{match['how'] or 'within'}", file=match["file"] or "")

    return re.sub(FILES, files, re.sub(EXIT_CODE, lambda match: words("evidence.exit_code", code=match[1]), text))
