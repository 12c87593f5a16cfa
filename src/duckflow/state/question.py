"""Questions to a person, and their answers."""

from typing import Literal

from pydantic import Field

from duckflow.state.data import FrozenData, new_id
from duckflow.state.phrase import Phrase
from duckflow.state.vitals import Severity

Risk = Literal["low", "medium", "high", "forbidden"]


class FileImpact(FrozenData):
    """The effect that an action would have on one file. It is computed, not taken from the model."""

    path: str
    change: Literal["create", "edit", "move", "delete", "folder"]
    added: int = 0
    removed: int = 0
    inside: bool = True
    tracked: bool = False
    """Git tracks the file."""


class Preview(FrozenData):
    """The effect that an action would have, computed before it runs.

    `fingerprint` is the state it was computed from: the action is refused when that has changed."""

    impacts: tuple[FileImpact, ...] = ()
    diff: str = ""
    fingerprint: str = ""


class GateRequest(FrozenData):
    """A Gate: a request for the user's yes, in five points: intent, rationale, impact, alternatives, diff."""

    action_ids: tuple[str, ...]
    operations: tuple[str, ...]
    intent: tuple[str, ...]
    rationale: str
    alternatives: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The whole commands that would run. In `diff` they come first."""
    impacts: tuple[FileImpact, ...] = ()
    diff: str = ""
    risk: Risk = "medium"
    reasons: tuple[Phrase, ...] = ()
    """The reasons why it is risky, in words."""
    reversible: bool = False
    """True if the change can be undone afterwards. This is computed, not taken from the model."""
    lasting: tuple[Phrase, ...] = ()
    """The effects that cannot be undone, and why."""
    editable: str = ""
    """The text that a person may edit before the action runs."""
    doubtful: bool = False
    """The reply was repaired or cut off, so the user is asked even about what the mode would allow."""
    always: bool = False
    """True if this is asked in every mode."""

    @property
    def file_diff(self) -> str:
        """Returns the diff without the commands."""
        return self.diff[len("\n".join(self.commands)) :].removeprefix("\n")


class Choice(FrozenData):
    """One numbered answer."""

    key: str
    label: Phrase
    wants_text: bool = False
    """The choice needs words of the user's own."""
    takes_text: bool = False
    """Words that name no choice select this one, and the asker gets them."""
    number: int = 0
    """The fixed number of a choice at a Gate, where a number means the same everywhere. 0 means its place among the
    choices."""

    @property
    def letter(self) -> str:
        """Returns the letter of a choice that few Gates offer. It is shown instead of a number, which would leave a
        gap after the numbers of the others."""
        return self.key[0] if self.number > NUMBERED_CHOICES else ""


GATE_KEYS = ("yes", "no", "session", "always", "edit", "diff", "files", "all")
"""The choices at a Gate, in the order of their numbers. A choice that is not offered leaves its number unused."""
NUMBERED_CHOICES = 4
"""The choices whose numbers are shown. The others are shown with the first letter of their key."""


def gate_key(sign: str) -> str:
    """Returns the choice that a number or a letter stands for at a Gate."""
    if sign.isdecimal():
        return GATE_KEYS[int(sign) - 1] if 1 <= int(sign) <= len(GATE_KEYS) else ""
    return next((key for key in GATE_KEYS[NUMBERED_CHOICES:] if key[0] == sign.casefold()), "")


HIDDEN = "••••••••"
"""The text that a screen shows in place of a secret."""


class Question(FrozenData):
    """Something a person must answer before the work goes on."""

    question_id: str = Field(default_factory=new_id("ask"))
    kind: Literal["gate", "duck_call", "choice", "edit", "text"]
    """A `choice` is answered only by one of its numbers or words, an `edit` by another text, and a `text` by any words
    (the choice `text`) except those that name another choice."""
    title: Phrase
    details: tuple[Phrase, ...] = ()
    """The lines below the title: findings, the health report."""
    gate: GateRequest | None = None
    text: str = ""
    """The text to be edited, in an `edit`."""
    choices: tuple[Choice, ...] = ()
    job: str = ""
    """The background job that waits for the answer; empty for the conversation itself."""
    job_name: str = ""
    secret: bool = False
    """The answer is a secret: no screen shows it, and it is stored only where it belongs."""
    on_record: bool = False
    """The question and its answer are kept in the journal. Gates and Duck Calls are; keys, trust and what servers ask
    for are not."""
    for_person: bool = False
    """Nobody may answer it in the user's name, not even with a no. The same is true of Gates."""
    reason: str = ""
    """The reason for a Duck Call, one of six: why the Pacemaker has stopped the loop."""
    severity: Severity | None = None
    """The severity of a Duck Call."""

    @property
    def numbered(self) -> dict[int, Choice]:
        """Returns the choices by their numbers, in order."""
        numbers = {choice.number or place: choice for place, choice in enumerate(self.choices, 1)}
        return dict(sorted(numbers.items()))

    @property
    def takes_nobody(self) -> bool:
        return self.for_person or self.gate is not None


NOBODY = "nobody"
"""The choice of a front end that has no person, for a question that only a person may answer. It means neither yes nor
no."""


class Talk(FrozenData):
    """A question of the user about an open Gate, and the answer to it."""

    asked: str
    told: str


class Answer(FrozenData):
    """The chosen key, and what was said with it (a reason, an instruction)."""

    choice: str
    """A key of the question's choices. At a Gate it may also be `wish`: the user wants something else first, and
    nothing runs yet."""
    text: str = ""
    about: str = ""
    """The subject that the user named, in a yes that holds for longer than once."""
    bounded: bool = False
    """True if the user said yes only to what they named, and not to the rest of the request."""
    paths: tuple[str, ...] = ()
    """The files that the user said yes to, if they said yes to only some of them."""
    kept_scope: bool = False
    """True if the subject that a `wish` names in `about` is not asked about again in this session."""
    said: str = ""
    """The user's whole line, if it says more than which choice they took."""
    talk: tuple[Talk, ...] = ()
    """Questions that the user asked before they answered, with the answers to them."""
