"""What Duckflow asks a person, and what comes back."""

from typing import Literal

from pydantic import Field

from duckflow.state.noun import Value, new_id
from duckflow.state.phrase import Phrase
from duckflow.state.vitals import Severity

Risk = Literal["low", "medium", "high", "forbidden"]


class FileImpact(Value):
    """What an action would do to one file; computed, never claimed."""

    path: str
    change: Literal["create", "edit", "move", "delete", "folder"]
    added: int = 0
    removed: int = 0
    inside: bool = True
    tracked: bool = False
    """Whether git knows the file."""


class Preview(Value):
    """What an action would do, worked out before it is done.

    `fingerprint` is the state it was computed from: the action is refused when that has changed."""

    impacts: tuple[FileImpact, ...] = ()
    diff: str = ""
    fingerprint: str = ""


class GateRequest(Value):
    """The five points of a Gate: intent, rationale, impact, alternatives, diff."""

    action_ids: tuple[str, ...]
    operations: tuple[str, ...]
    intent: tuple[str, ...]
    rationale: str
    alternatives: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """What would run, whole; in `diff` they come first."""
    impacts: tuple[FileImpact, ...] = ()
    diff: str = ""
    risk: Risk = "medium"
    reasons: tuple[Phrase, ...] = ()
    """Why it is risky, in words."""
    reversible: bool = False
    """Whether it can be undone afterwards; computed."""
    lasting: tuple[Phrase, ...] = ()
    """What of it cannot, and why."""
    editable: str = ""
    """What a person may edit before it is done."""
    doubtful: bool = False
    """The reply was repaired or cut off, so even what the mode lets through is asked for."""
    always: bool = False
    """It is asked for in every mode."""

    @property
    def file_diff(self) -> str:
        """The diff without the commands."""
        return self.diff[len("\n".join(self.commands)) :].removeprefix("\n")


class Choice(Value):
    """One numbered answer."""

    key: str
    label: Phrase
    wants_text: bool = False
    """It makes sense only with words of the user's own."""
    takes_text: bool = False
    """Whoever asked hears what was said in place of a choice, and does nothing until then."""
    number: int = 0
    """Of a choice at a Gate, where a number means the same everywhere; 0: its place among the choices."""


GATE_KEYS = ("yes", "no", "session", "always", "edit", "diff", "files", "all")
"""What may be chosen at a Gate, in the order of their numbers. One that is not offered leaves its number unused."""


def gate_choice(key: str, label: Phrase) -> Choice:
    return Choice(key=key, label=label, number=GATE_KEYS.index(key) + 1)


HIDDEN = "••••••••"
"""A screen shows this in place of a secret."""


class Question(Value):
    """Something a person must answer before the work goes on."""

    question_id: str = Field(default_factory=new_id("ask"))
    kind: Literal["gate", "duck_call", "choice", "edit", "text"]
    """A choice is answered by one of its numbers or words, and by nothing else; an edit by another text; a text by any
    words (the choice `text`) but those that name another choice."""
    title: Phrase
    details: tuple[Phrase, ...] = ()
    """What stands below the title: findings, the health report."""
    gate: GateRequest | None = None
    text: str = ""
    """Of an edit: what there is to be edited."""
    choices: tuple[Choice, ...] = ()
    job: str = ""
    """The background job that waits for the answer, or nothing: the conversation itself."""
    job_name: str = ""
    secret: bool = False
    """The answer is a secret: no screen shows it, and it is kept nowhere but where it belongs."""
    on_record: bool = False
    """Whether the question and its answer are kept in the journal: Gates and Duck Calls are; keys, trust and what
    servers ask for are not."""
    for_person: bool = False
    """Nobody may answer it in the user's name, not even with a no; Gates are so too."""
    reason: str = ""
    """Of a Duck Call: why the Pacemaker has stopped the loop, one of its six reasons."""
    severity: Severity | None = None
    """Of a Duck Call."""

    @property
    def numbered(self) -> dict[int, Choice]:
        """The choices by their numbers, in that order."""
        numbers = {choice.number or place: choice for place, choice in enumerate(self.choices, 1)}
        return dict(sorted(numbers.items()))

    @property
    def takes_nobody(self) -> bool:
        return self.for_person or self.gate is not None


NOBODY = "nobody"
"""The choice of a front end without a person where only a person may answer: no yes, and nobody has said no."""


class Talk(Value):
    """A question of the user about an open Gate, and the answer to it."""

    asked: str
    told: str


class Answer(Value):
    """The chosen key, and what was said with it (a reason, an instruction)."""

    choice: str
    """A key of the question's choices; at a Gate also `wish`: something else is wanted first, and nothing runs yet."""
    text: str = ""
    about: str = ""
    """Of a yes that goes further than once: what the user named that it is for."""
    bounded: bool = False
    """The user said yes to what they named, and nothing of the rest that was asked about."""
    paths: tuple[str, ...] = ()
    """Of a yes to some of the files that were asked about: which ones."""
    kept_scope: bool = False
    """Of a wish: what it names in `about` is not asked about again in this session."""
    said: str = ""
    """The whole line, where it says more than which choice was taken."""
    talk: tuple[Talk, ...] = ()
    """What was asked back before."""
