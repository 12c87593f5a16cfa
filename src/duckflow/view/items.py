"""Items: everything that people see of a session, as typed data made of phrases and values, not yet in any language.

Every item has an id that is unique in the session, even if another process continues the session. An event brings items
that are new or have changed: an action that has finished, a question that was answered, a text that became whole.
`number` is the number of the stored event that began the item; it is 0 for an item that is shown only while it happens.
`at` is the time when the item began."""

import re
from typing import Literal, NamedTuple

from duckflow.errors import Outcome
from duckflow.i18n.words import Words
from duckflow.state.action import Action, ActionResult, Effect, StepKind, TaskProfile
from duckflow.state.agent import AgentReport, JobReport, JobStatus, SubAgentStatus
from duckflow.state.checks import Proof
from duckflow.state.data import Phrase
from duckflow.state.message import Usage
from duckflow.state.phase import Review, Severity, Vitals
from duckflow.state.picture import Picture
from duckflow.state.plan import Plan
from duckflow.state.question import Answer, Question

About = Literal[
    "noticed", "retry", "rejected", "again", "model", "mode", "intervened", "reviewed", "pruned", "undone", "allowed",
    "forgotten", "ended", "proof", "job", "step", "typed", "offered", "left",
]  # fmt: skip
"""The subject of a notice; `NoticeItem` explains the names."""


class TextItem(NamedTuple):
    """Words of the user or of the model, its thoughts, the text of a file that it writes, or pictures of a tool.

    The state `streaming` means that more will come; `reset`, that the text is void and will be written again; `passed`,
    that the text was not an answer, but the reason for an action."""

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
    """True if the model itself calls for the user."""
    meanwhile: bool = False
    """True if the user said this while a turn was at work."""
    pictures: tuple[Picture, ...] = ()


class ReasonItem(NamedTuple):
    """The model's reason for its next actions. The rationale is empty if it says no more than the answer or the
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
    """The rationale; empty if it has been streamed."""
    thoughts: str = ""
    """The model's thoughts before the reason; empty if there were none."""


class ActionItem(NamedTuple):
    """A tool call. The state `asked` means that the call waits for a yes; `left`, that the turn or job was over before
    the call ended."""

    kind = "action"
    id: str
    number: int
    at: float
    operation: str
    state: Literal["asked", "running", "done", "failed", "left"]
    action: Action | None = None
    """The action; None if the view did not hear the event that began it."""
    doing: Phrase | None = None
    effect: Effect | Literal[""] = ""
    step_kind: StepKind = "other"
    job: str = ""
    job_name: str = ""
    by_agent: bool = False
    """True if the job is an agent that the conversation has handed a task to."""
    gate: str = ""
    """The id of the question (the Gate) that asks about this action."""
    answer: Answer | None = None
    diff: str = ""
    """The changes that the action would make to files, if the question about it (the Gate) is about this action
    alone."""
    result: ActionResult | None = None
    turn: int = 0

    @property
    def talks(self) -> bool:
        """Says whether the action only talks; its words are then shown as a text."""
        if self.result and not self.result.ok:
            return False
        return self.effect == "talk" or (self.result is not None and self.result.said is not None)


class QuestionItem(NamedTuple):
    """A question to a person. It is closed without an answer if its asker was interrupted."""

    kind = "question"
    id: str
    number: int
    at: float
    question: Question | None
    """The question; None if the view heard only the event that closed it."""
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

    - model and mode: the name (`what` says why a model was chosen); job: its status; step: its id
    - intervened: how the Pacemaker has stepped in (`details` say why, with their severity)
    - forgotten: the words that were forgotten; undone: `back`, or empty for a turn that was done again
    - typed: a line that is no message; offered: a line for the user to change; left: where the user goes
    - ended, allowed, reviewed, proof: empty, because `outcome`, `what` (the rule), `review` or `proof` says it
    - again (a reply is written again), noticed, retry, rejected, pruned: empty"""

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
    """True if the work cannot go on without the user's answer."""


class OutputItem(NamedTuple):
    """The output of a command; `over` is True when the action that ran the command has ended."""

    kind = "output"
    id: str
    number: int
    at: float
    job: str
    job_name: str = ""
    by_agent: bool = False
    action: str = ""
    """The id of the action that runs the command; empty for the user's own command."""
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
    """The user's choices for the session. A choice is empty if no event has told of it yet."""

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
"""The kinds of notices that every front end shows as a line."""
LOUD = frozenset(("checks.failing", "checks.failing_before", "review.unverified", "checks.nothing"))
"""Keys of lines that contradict the model's words about its work: they must be shown beside these words."""
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
            proof_phrases = item.proof.parts() if item.proof else ()
            return words("proof.line", parts=" · ".join(map(words.phrase, proof_phrases))) if proof_phrases else ""
        case "reviewed":
            return review_line(item.review, words) if item.review and item.review.by == "model" else ""
        case "allowed":
            return words("notice.allowed", rule=notice_text)
        case _:
            return told_evidence(notice_text, words)


def review_line(review: Review, words: Words) -> str:
    rating_text, verdict_text = words(f"review.rating.{review.rating}"), words(f"review.verdict.{review.verdict}")
    return words("review.line", rating=rating_text, verdict=verdict_text)


def is_streaming(item: Item) -> bool:
    """Says whether the item is likely to change again in a moment."""
    return (isinstance(item, TextItem) and item.state == "streaming") or (
        isinstance(item, OutputItem) and not item.over
    )


def told_evidence(text: str, words: Words) -> str:
    """Translates evidence (such as an exit code), which was written for the model, into the user's language."""

    def files(match: re.Match[str]) -> str:
        return match["before"] + words(f"evidence.{match['how'] or 'within'}", file=match["file"] or "")

    return re.sub(FILES, files, re.sub(EXIT_CODE, lambda match: words("evidence.exit_code", code=match[1]), text))
