"""Every event, frozen. The order they come in:

SessionOpened, then turns. A turn is TurnBegan … TurnEnded. Inside it loops: LoopBegan, then DecisionMade or
ReplyRejected, then for every action that runs ActionStarted … ActionFinished, with QuestionAsked … QuestionClosed
before the ones that needed a yes. MessageAdded, PhaseMoved, FiveChanged, VitalsChanged, UsageReported stand anywhere
inside a turn. Work in the background (events/work.py) goes on inside and between turns; what carries a `job` belongs to
it.
Live events (`journaled` is false) are for the screen only: they change no state and are not kept.
"""

from typing import Literal

from pydantic import Field

from duckflow.events.event import (
    Event,
    JournalSalvaged,
    LanguageChosen,
    ModeChosen,
    ModelChosen,
    SessionOpened,
    SessionTitled,
)
from duckflow.events.talking import (
    CommentsLeft,
    FindingMade,
    FindingWithdrawn,
    HunkMarked,
    HunkMoved,
    LineCommented,
)
from duckflow.events.work import (
    AgentEnded,
    AgentStarted,
    JobChanged,
    JobEnded,
    JobStarted,
    StepChanged,
    StepTold,
    TaskChanged,
    TasksPlanned,
)
from duckflow.outcome import Outcome
from duckflow.state.action import Action, ActionResult, Decision, Effect, StepKind
from duckflow.state.checks import Proof
from duckflow.state.context import PastSummary, Receipt
from duckflow.state.five import StateDelta
from duckflow.state.message import Message, Usage
from duckflow.state.phase import Phase, Review, Status
from duckflow.state.phrase import Phrase
from duckflow.state.plan import Plan
from duckflow.state.question import Answer, Question
from duckflow.state.vitals import Severity, Vitals, VitalsChange


class TurnBegan(Event):
    """Opens a turn; the user's message follows as MessageAdded."""

    kind = "turn_began"
    turn: int


class LoopBegan(Event):
    """`profile`: the kind of work, as far as it is known."""

    kind = "loop_began"
    turn: int
    loop: int
    limit: int
    profile: str = ""


class VitalsChanged(Event):
    kind = "vitals_changed"
    vitals: Vitals
    causes: tuple[VitalsChange, ...] = ()


class Intervened(Event):
    """The Pacemaker has stepped in without asking: with a hint for the model, or by having it plan anew."""

    kind = "intervened"
    how: Literal["hint", "replan"]
    severity: Severity
    what: tuple[Phrase, ...]


class MessageAdded(Event):
    """Something was said. What rules have read out of it comes with it."""

    kind = "message_added"
    message: Message
    constraints: tuple[str, ...] = ()
    """What the user forbids in it."""
    title: str = ""
    """What the session is called from now on."""
    file: str = ""
    """The file whose text it brings."""


class DecisionMade(Event):
    """A readable reply. `doubtful`: it had to be repaired or was cut off."""

    kind = "decision_made"
    decision: Decision
    doubtful: bool = False
    goal: str = ""
    """What the work that begins is for, where no goal was set."""


class ReplyRejected(Event):
    """A reply that could not be used; the reason went back to the model."""

    kind = "reply_rejected"
    reason: str
    attempt: int


class ActionStarted(Event):
    kind = "action_started"
    action: Action
    doing: Phrase | None = None
    """How it is told to people while it runs; nothing for what only talks."""
    effect: Effect | Literal[""] = ""
    step_kind: StepKind = "other"
    job: str = ""


class ActionFinished(Event):
    """Follows its ActionStarted."""

    kind = "action_finished"
    result: ActionResult
    job: str = ""
    asked: str = ""
    """The question to the user that it ends with."""


class QuestionAsked(Event):
    """A question is open; nothing that it asks about has been done. Only questions that say so are kept."""

    kind = "question_asked"
    question: Question

    @property
    def journaled(self) -> bool:
        return self.question.on_record


class QuestionClosed(Event):
    """Follows its QuestionAsked. Without an answer, whatever asked it was interrupted: then it is not kept, so that the
    record shows what was waiting."""

    kind = "question_closed"
    question_id: str
    answer: Answer | None = None
    on_record: bool = False

    @property
    def journaled(self) -> bool:
        return self.on_record


class PermissionGiven(Event):
    """The user allowed more than once: for this session, or always. Follows its QuestionClosed."""

    kind = "permission_given"
    rule: Phrase
    scope: Literal["session", "always"]


class PermissionTaken(Event):
    """A rule for this session holds no more."""

    kind = "permission_taken"
    rule: Phrase


class MessagesSetAside(Event):
    """Messages that leave the context, from the first to before the last number; they stay in the journal."""

    kind = "messages_set_aside"
    first: int
    last: int


class TurnUndone(Event):
    """A turn was taken back, or (`back` false) that again; or a job, a step of it, or some files."""

    kind = "turn_undone"
    turn: int
    name: str = ""
    """The job's or step's name; a turn has none."""
    back: bool
    changed: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    """Of these, the files that no work of the session changes any more."""


class ContextPruned(Event):
    """Messages left the context because it was nearly full: which of the first `upto` stayed, and the receipt."""

    kind = "context_pruned"
    kept: tuple[int, ...]
    cut: dict[int, int] = Field(default_factory=dict[int, int])
    """The tokens to which some of these were cut."""
    upto: int
    receipt: Receipt
    dropped: tuple[int, ...] = ()
    """The numbers of those that left it now."""


class PastSummarised(Event):
    """Comes some time after its ContextPruned, from the background, or never."""

    kind = "past_summarised"
    summary: PastSummary


class PastForgotten(Event):
    """The user wants this gone: messages by their numbers, and whatever else says the words. The journal keeps it."""

    kind = "past_forgotten"
    numbers: tuple[int, ...]
    words: str = ""
    """Nothing, when another session of the project has forgotten these messages."""


class PhaseMoved(Event):
    kind = "phase_moved"
    source: Phase
    target: Phase
    status: Status = Status.IN_PROGRESS
    why: str = ""
    by: Literal["model", "system"] = "system"


class PhaseRefused(Event):
    """A move that the table does not allow; the model is told."""

    kind = "phase_refused"
    source: Phase
    target: Phase
    why: str


class StatusChanged(Event):
    kind = "status_changed"
    status: Status


class ContextReferred(Event):
    """Earlier conversations were brought back: the number of a turn of this session, or the name of another one."""

    kind = "context_referred"
    conversations: tuple[str, ...]


class Reviewed(Event):
    """What the work is worth: the model's word in a review, or what the record shows."""

    kind = "reviewed"
    review: Review


class FiveChanged(Event):
    """The five fixed items or the decision log changed."""

    kind = "five_changed"
    delta: StateDelta


class PlanChanged(Event):
    """A plan was drafted, approved, or moved on. The whole plan, so that replay needs nothing else."""

    kind = "plan_changed"
    plan: Plan
    active: bool = True


class ProofTried(Event):
    """The work of the turn is called done, and that was tried. Comes before TurnEnded; where the turn goes on after
    it, another one may follow, and the last one counts."""

    kind = "proof_tried"
    proof: Proof


class UsageReported(Event):
    kind = "usage_reported"
    model: str
    usage: Usage
    job: str = ""


class TurnEnded(Event):
    """Control is back with the user."""

    kind = "turn_ended"
    turn: int
    outcome: Outcome
    why: Phrase | None = None
    waits: bool = False
    """The work cannot go on without an answer of the user; false where a question only offers more."""


class ThoughtKept(Event):
    """All that the model has thought before its reply, for those who come later. Comes before DecisionMade."""

    kind = "thought_kept"
    text: str


class TextStreamed(Event):
    """Live: a piece of what is being said. Lies between LoopBegan and DecisionMade."""

    live = True
    kind = "text_streamed"
    text: str
    channel: Literal["say", "body", "think"] = "say"


class OutputStreamed(Event):
    """Live: what a running command prints. `left_out`: how many lines before the text were not handed on."""

    live = True
    kind = "output_streamed"
    text: str
    left_out: int = 0
    job: str = ""


class StreamReset(Event):
    """Live: what was streamed since the last LoopBegan does not count (a retry, an unreadable reply)."""

    live = True
    kind = "stream_reset"


class Waiting(Event):
    """Live: something takes time (the model, a retry, a download)."""

    live = True
    kind = "waiting"
    why: Phrase


class Noticed(Event):
    """Live: something worth a line on the screen."""

    live = True
    kind = "noticed"
    what: Phrase


JOURNALED: tuple[type[Event], ...] = (
    SessionOpened, JournalSalvaged, ModelChosen, LanguageChosen, ModeChosen, SessionTitled, TurnBegan, LoopBegan,
    MessageAdded, DecisionMade, ReplyRejected, ActionStarted, ActionFinished, QuestionAsked, QuestionClosed,
    PermissionGiven, PermissionTaken, MessagesSetAside, TurnUndone, ContextPruned, PastSummarised, PastForgotten,
    PhaseMoved, PhaseRefused, StatusChanged, FiveChanged, PlanChanged, VitalsChanged, UsageReported, Intervened,
    Reviewed, ContextReferred, ThoughtKept, ProofTried, TurnEnded, TasksPlanned, StepChanged, StepTold, TaskChanged,
    JobStarted, JobChanged, JobEnded, AgentStarted, AgentEnded, LineCommented, CommentsLeft, HunkMarked, HunkMoved,
    FindingMade, FindingWithdrawn,
)  # fmt: skip
BY_KIND: dict[str, type[Event]] = {cls.kind: cls for cls in JOURNALED}
