"""Every event, frozen, and the order they come in:

A journal begins with SessionOpened, then come turns. A turn is TurnBegan … TurnEnded. Inside it are loops: LoopBegan,
then DecisionMade or ReplyRejected, then for every action that runs ActionStarted … ActionFinished, with QuestionAsked …
QuestionClosed before the ones that needed a yes. MessageAdded, PhaseMoved, FiveChanged, VitalsChanged, UsageReported
may come anywhere inside a turn. Work in the background (events/work.py) goes on inside and between turns; events with a
`job` belong to it. Live events (`journaled` is false) are only for the screen: they change no state and are not
stored."""

from typing import Literal

from pydantic import Field

from duckflow.errors import Outcome
from duckflow.events.event import (
    Event,
    JournalSalvaged,
    LanguageChosen,
    ModeChosen,
    ModelChosen,
    QuestionAsked,
    QuestionClosed,
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
from duckflow.state.action import Action, ActionResult, Decision, Effect, StepKind
from duckflow.state.agent import PastSummary, Receipt
from duckflow.state.checks import Proof
from duckflow.state.data import Phrase
from duckflow.state.message import Message, Usage
from duckflow.state.phase import Phase, Review, Severity, StateDelta, Status, Vitals, VitalsChange
from duckflow.state.plan import Plan


class TurnBegan(Event):
    """Opens a turn; the user's message follows as MessageAdded."""

    kind = "turn_began"
    turn: int


class LoopBegan(Event):
    """A loop of the turn begins. `profile` is the kind of work, as far as it is known."""

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
    """The Pacemaker, which limits the work, has intervened without asking the user: it gave the model a hint, or made
    it plan again."""

    kind = "intervened"
    how: Literal["hint", "replan"]
    severity: Severity
    what: tuple[Phrase, ...]


class MessageAdded(Event):
    """A message was added. The other fields hold facts that rules have found in its text."""

    kind = "message_added"
    message: Message
    constraints: tuple[str, ...] = ()
    """Things that the user forbids in this message."""
    title: str = ""
    """The session's title from now on."""
    file: str = ""
    """The file whose text the message contains."""


class DecisionMade(Event):
    """A readable reply of the model. `doubtful`: it had to be repaired or was cut off."""

    kind = "decision_made"
    decision: Decision
    doubtful: bool = False
    goal: str = ""
    """The goal of the work that begins, if no goal was set before; else empty."""


class ReplyRejected(Event):
    """A reply of the model that could not be used; the model was told the reason."""

    kind = "reply_rejected"
    reason: str
    attempt: int


class ActionStarted(Event):
    kind = "action_started"
    action: Action
    doing: Phrase | None = None
    """The line that people see while the action runs; None for an action that only talks."""
    effect: Effect | Literal[""] = ""
    step_kind: StepKind = "other"
    job: str = ""


class ActionFinished(Event):
    """An action has ended; this follows its ActionStarted."""

    kind = "action_finished"
    result: ActionResult
    job: str = ""
    asked: str = ""
    """The question to the user at the end of the result's text; empty if the text ends with none."""


class PermissionGiven(Event):
    """The user gave a permission that holds longer than for one action: for this session, or always. This follows its
    QuestionClosed."""

    kind = "permission_given"
    rule: Phrase
    scope: Literal["session", "always"]


class PermissionTaken(Event):
    """A permission for this session was withdrawn."""

    kind = "permission_taken"
    rule: Phrase


class ChangesLimited(Event):
    """The user limited changes to some files and folders, or took the limit away (no names)."""

    kind = "changes_limited"
    names: tuple[str, ...] = ()


class MessagesSetAside(Event):
    """Messages are no longer shown to the model: those from `first` up to but not including `last`. They stay in the
    journal."""

    kind = "messages_set_aside"
    first: int
    last: int


class TurnUndone(Event):
    """A turn, a job, a step of a job, or some files were undone. If `back` is false, such an undo was itself undone."""

    kind = "turn_undone"
    turn: int
    name: str = ""
    """The name of the job or step; empty for a turn."""
    back: bool
    changed: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    """The files that are back as they were, because all changes of this session to them are undone."""
    steps: tuple[str, ...] = ()
    """The steps of jobs some of whose changes were undone or done again."""
    turns: tuple[int, ...] = ()
    """The turns of whose changes an undo has left nothing."""
    steps_left: tuple[str, ...] = ()
    """The steps of jobs whose changes an undo has left, at least in part."""
    turns_left: tuple[int, ...] = ()
    """The turns whose changes an undo has left, at least in part."""


class ContextPruned(Event):
    """Messages left the context because it was nearly full. `kept` says which of the first `upto` messages stayed."""

    kind = "context_pruned"
    kept: tuple[int, ...]
    cut: dict[int, int] = Field(default_factory=dict[int, int])
    """The number of tokens that each shortened message was cut to."""
    upto: int
    receipt: Receipt
    dropped: tuple[int, ...] = ()
    """The numbers of the messages that left the context in this pruning."""


class PastSummarised(Event):
    """The model has summarised messages that left the context. It comes some time after its ContextPruned, or never."""

    kind = "past_summarised"
    summary: PastSummary


class PastForgotten(Event):
    """The user wants something forgotten: messages by their numbers, and whatever else contains the words. The journal
    keeps them."""

    kind = "past_forgotten"
    numbers: tuple[int, ...]
    words: str = ""
    """The words to be forgotten; empty when another session of the project has forgotten these messages."""


class PhaseMoved(Event):
    kind = "phase_moved"
    source: Phase
    target: Phase
    status: Status = Status.IN_PROGRESS
    why: str = ""
    by: Literal["model", "system"] = "system"


class PhaseRefused(Event):
    """The model asked for a move to a phase of the work that may not follow the present one. The model is told so."""

    kind = "phase_refused"
    source: Phase
    target: Phase
    why: str


class StatusChanged(Event):
    kind = "status_changed"
    status: Status


class ContextReferred(Event):
    """Parts of earlier conversations were quoted again. Each is named by the number of a turn of this session, or by
    another session's name."""

    kind = "context_referred"
    conversations: tuple[str, ...]


class Reviewed(Event):
    """The work was judged: by the model in a review, or by rules from the recorded results."""

    kind = "reviewed"
    review: Review


class FiveChanged(Event):
    """The decision log has changed, or one of the five items that every prompt contains, such as the goal."""

    kind = "five_changed"
    delta: StateDelta


class PlanChanged(Event):
    """A plan was drafted, approved, or changed. The event holds the whole plan, so that a replay needs nothing else."""

    kind = "plan_changed"
    plan: Plan
    active: bool = True


class ProofTried(Event):
    """The model said that the turn's work is done, and Duckflow has tested that claim. This event comes before
    TurnEnded. If the turn goes on, another ProofTried may follow; the last one counts."""

    kind = "proof_tried"
    proof: Proof


class UsageReported(Event):
    kind = "usage_reported"
    model: str
    usage: Usage
    job: str = ""


class TurnEnded(Event):
    """A turn has ended, and the user has control again."""

    kind = "turn_ended"
    turn: int
    outcome: Outcome
    why: Phrase | None = None
    waits: bool = False
    """True if the work cannot go on without the user's answer; False if a question only offers more."""


class ThoughtKept(Event):
    """All of the model's thoughts before its reply, stored for later readers. It comes before DecisionMade."""

    kind = "thought_kept"
    text: str


class TextStreamed(Event):
    """Live: a piece of the reply that is streaming in. It comes between LoopBegan and DecisionMade."""

    live = True
    kind = "text_streamed"
    text: str
    channel: Literal["say", "body", "think"] = "say"


class OutputStreamed(Event):
    """Live: output of a running command. `left_out` is the number of lines before the text that were left out."""

    live = True
    kind = "output_streamed"
    text: str
    left_out: int = 0
    job: str = ""


class StreamReset(Event):
    """Live: everything streamed since the last LoopBegan is void (a retry, an unreadable reply)."""

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
    PermissionGiven, PermissionTaken, ChangesLimited, MessagesSetAside, TurnUndone, ContextPruned, PastSummarised,
    PastForgotten,
    PhaseMoved, PhaseRefused, StatusChanged, FiveChanged, PlanChanged, VitalsChanged, UsageReported, Intervened,
    Reviewed, ContextReferred, ThoughtKept, ProofTried, TurnEnded, TasksPlanned, StepChanged, StepTold, TaskChanged,
    JobStarted, JobChanged, JobEnded, AgentStarted, AgentEnded, LineCommented, CommentsLeft, HunkMarked, HunkMoved,
    FindingMade, FindingWithdrawn,
)  # fmt: skip
BY_KIND: dict[str, type[Event]] = {cls.kind: cls for cls in JOURNALED}
