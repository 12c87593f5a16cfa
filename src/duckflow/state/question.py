"""Questions to a person, and their answers."""

from typing import Literal

from pydantic import Field

from duckflow.state.data import FrozenData, Phrase, new_id
from duckflow.state.phase import Severity
from duckflow.whole_text import key_in

Risk = Literal["low", "medium", "high", "forbidden"]


class FileImpact(FrozenData):
    """The effect that an action would have on one file. It is computed, not taken from the model."""

    path: str
    change: Literal["create", "edit", "move", "delete", "folder"]
    added: int = 0
    removed: int = 0
    inside: bool = True
    tracked: bool = False
    """True if git tracks the file."""


class Preview(FrozenData):
    """The effect that an action would have, computed before it runs.

    `fingerprint` stands for the state of the files it was computed from: the action is refused if they have changed
    since."""

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
    """The complete commands that would run. `diff` begins with them."""
    impacts: tuple[FileImpact, ...] = ()
    diff: str = ""
    risk: Risk = "medium"
    reasons: tuple[Phrase, ...] = ()
    """The reasons why the action is risky, in words."""
    reversible: bool = False
    """True if the change can be undone afterwards. This is computed, not taken from the model."""
    lasting: tuple[Phrase, ...] = ()
    """The effects that cannot be undone, and why."""
    editable: str = ""
    """The text that a person may edit before the action runs."""
    doubtful: bool = False
    """True if the reply was repaired or cut off, so that the user is asked even about actions that the mode would
    allow."""
    always: bool = False
    """True if this question is asked in every mode."""

    @property
    def file_diff(self) -> str:
        """Returns the diff of the files, without the commands that come first in `diff`."""
        return self.diff[len("\n".join(self.commands)) :].removeprefix("\n")


class Choice(FrozenData):
    """One numbered answer to a question."""

    key: str
    label: Phrase
    wants_text: bool = False
    """True if the choice needs words of the user's own beside it."""
    takes_text: bool = False
    """True if an answer that names no choice selects this choice. The asker gets its words."""
    number: int = 0
    """The fixed number of a choice at a Gate (a question before a risky action), where a number means the same
    everywhere. 0 means its place among the choices."""

    @property
    def letter(self) -> str:
        """Returns the letter of a choice that questions before risky actions (Gates) seldom offer. The letter is shown
        instead of a number, so that the numbers shown have no gap."""
        return self.key[0] if self.number > NUMBERED_CHOICES else ""


GATE_KEYS = ("yes", "no", "session", "always", "edit", "diff", "files", "all")
"""The choices at a Gate (a question before a risky action), in the order of their numbers. A choice that is not offered
leaves its number unused."""
NUMBERED_CHOICES = 4
"""The choices whose numbers are shown. The others are shown with the first letter of their key."""


HIDDEN = "••••••••"
"""The text that a screen shows in place of a secret."""


class Question(FrozenData):
    """A question that a person must answer before the work goes on."""

    question_id: str = Field(default_factory=new_id("ask"))
    kind: Literal["gate", "duck_call", "choice", "edit", "text"]
    """A `choice` is answered only by one of its numbers or words, an `edit` by another text, and a `text` by any words
    (the choice `text`) except those that name another choice."""
    title: Phrase
    details: tuple[Phrase, ...] = ()
    """The lines below the title, such as findings or the health report."""
    gate: GateRequest | None = None
    text: str = ""
    """The text that the user is asked to edit, in a question of the kind `edit`."""
    choices: tuple[Choice, ...] = ()
    job: str = ""
    """The background job that waits for the answer; empty for the conversation itself."""
    job_name: str = ""
    secret: bool = False
    """True if the answer is a secret: no screen shows it, and it is stored only where it belongs."""
    takes_access: bool = False
    """True if a key or an address may be typed in place of the answer, which is then the choice `text`. Such a key is
    shown as little as a secret is."""
    on_record: bool = False
    """True if the journal keeps the question and its answer. It keeps questions before risky actions (Gates) and calls
    for help (Duck Calls), but not questions about keys, about trust, or from servers."""
    for_person: bool = False
    """True if no program may answer in the user's name, not even with a no. This also holds for every Gate (a question
    before a risky action)."""
    reason: str = ""
    """The reason for a Duck Call, in which the Pacemaker stops the loop and asks the user. There are six reasons."""
    severity: Severity | None = None
    """The severity of a Duck Call (a call for the user's help)."""

    @property
    def numbered(self) -> dict[int, Choice]:
        """Returns the question's choices by their numbers, in order."""
        numbers = {choice.number or place: choice for place, choice in enumerate(self.choices, 1)}
        return dict(sorted(numbers.items()))

    def hides(self, text: str) -> bool:
        """Says whether this answer must not be shown."""
        return self.secret or (self.takes_access and bool(key_in(text)))

    @property
    def takes_nobody(self) -> bool:
        return self.for_person or self.gate is not None


NOBODY = "nobody"
"""The choice of a front end that has no person, for a question that only a person may answer. It means neither yes nor
no."""


class Talk(FrozenData):
    """A question that the user asked about an open Gate (a question before a risky action), and the answer that they
    got."""

    asked: str
    told: str


class Answer(FrozenData):
    """The chosen key, and the user's words beside it (a reason, an instruction)."""

    choice: str
    """A key of the question's choices. At a Gate (a question before a risky action) it may also be `wish`: the user
    wants something else first, and nothing runs yet."""
    text: str = ""
    about: str = ""
    """The subject (such as a program) that the user named when they also allowed later actions, else empty."""
    bounded: bool = False
    """True if the user said yes only to what they named, and not to the rest of the request."""
    paths: tuple[str, ...] = ()
    """The files that the user said yes to, if they said yes to only some of them; also the whole commands."""
    limit: tuple[str, ...] = ()
    """The files and folders to which the user has limited their yes, for what is done later, too."""
    kept_scope: bool = False
    """True if the user wants something else first (`wish`), but also allows everything about the subject in `about` for
    the rest of this session."""
    said: str = ""
    """The user's whole line, if it says more than which choice they took."""
    talk: tuple[Talk, ...] = ()
    """Questions that the user asked before they answered, with the answers to them."""
