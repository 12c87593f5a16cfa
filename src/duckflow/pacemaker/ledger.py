"""The progress ledger, which records the news that each step brought."""

from collections import deque
from typing import Literal, NamedTuple

from duckflow.pacemaker.progress import NOTHING, Gained, TurnProgress
from duckflow.pacemaker.signatures import (
    SHORT,
    LoopStep,
    call_signature,
    change_signature,
    error_signature,
    is_empty,
    name_call,
    never_ran,
    plain_line,
    result_signature,
    says_nothing_found,
    without_echo,
)
from duckflow.state.action import RUN_AGENT

Came = Literal["edit", "result", "error", "nothing"]


class LedgerEntry(NamedTuple):
    """One step in the ledger. `call` and `outcome` are signatures: equal signatures mean that the same happened
    again."""

    number: int
    step: LoopStep
    call: int
    outcome: int
    came: Came
    new: bool
    repeated: bool
    """True if the same call had the same outcome the last time it was made."""
    confirmed: bool
    """True if the call was repeated after an edit and succeeded as before: what worked still works."""
    gained: Gained = NOTHING
    """The progress that the step made towards the request."""
    rewrites: bool = False
    """True if the step only changed text that this turn had written itself."""

    @property
    def failed(self) -> bool:
        return self.came == "error"

    @property
    def waits(self) -> bool:
        """Says whether the step looked at the state of a command that runs in the background."""
        return self.step.waits and not self.failed and self.step.kind not in ("talk", "edit")

    @property
    def idle(self) -> bool:
        """Says whether the step only looked at something: it made no progress, changed nothing, and was no error."""
        has_only_looked = self.step.kind in ("read", "search", "run") and not (self.step.is_error or self.step.changed)
        return has_only_looked and not self.gained.kind

    @property
    def reads_again(self) -> bool:
        """Says whether the step read a text whose lines were mostly seen before."""
        return self.step.kind == "read" and self.came == "result" and not self.gained.kind

    @property
    def fails_again(self) -> bool:
        """Says whether the step has failed. A step that changed files and had a new result does not count as failed."""
        return self.step.is_error and not (self.step.changed and self.new)

    @property
    def edited(self) -> bool:
        """Says whether the step changed files in a way not seen before, by a tool or by a command."""
        return self.came == "edit" or (bool(self.step.changed) and self.new and not self.failed)

    def same_as(self, other: "LedgerEntry") -> bool:
        return self.call == other.call and self.outcome == other.outcome

    @property
    def label(self) -> str:
        return name_call(self.step.name, self.step.args)


class Ledger:
    """Remembers signatures of steps, not their texts, up to a limit.

    A step is new when it makes a successful edit not made before, returns something not seen before, or fails in a way
    not seen before. A search that finds nothing and a command that ran and failed are results, not errors. A repeated
    call is new too if an edit has changed its result, even to one that was seen earlier.
    """

    def __init__(self, window: int, memory: int, progress: TurnProgress | None = None) -> None:
        """`progress` is shared by the turn's agents."""
        self.recent: deque[LedgerEntry] = deque(maxlen=window)
        self.steps = 0
        self.errors = 0
        self._memory = memory
        self._seen: dict[int, None] = {}
        self._last: dict[int, tuple[int, int]] = {}
        self._edits = 0
        self._tokens = 0
        self._progress = progress or TurnProgress()
        self._gains = 0
        """The number of gains (steps with progress) that the turn had when the present loop began."""
        self._handed_on = False
        """True if this loop has started an agent whose work brought nothing new."""

    def begin_loop(self) -> None:
        self._gains = self._progress.gains
        self._handed_on = False

    def record(self, step: LoopStep, tells: bool = False) -> LedgerEntry:
        """Adds a step. `tells` is true if the model's text beside the call reports something new that the model has
        read."""
        call = call_signature(step.name, step.text if step.kind == "talk" and step.text else step.args)
        outcome_kind, outcome = weigh(step, call)
        is_unhelpful_agent = step.name == RUN_AGENT and not tells and self._gains == self._progress.gains
        if is_unhelpful_agent:
            # The agent brought nothing. Its report counts as equal to the last one, whatever its wording.
            outcome = hash(plain_line(step.result.partition("\n")[0]))
        last_outcome, edits_before = self._last.get(call, (None, 0))
        repeated, edited_since = last_outcome == outcome, self._edits > edits_before
        result_changed = last_outcome is not None and not repeated and edited_since
        is_new = step.kind != "talk" and (result_changed or (outcome_kind != "nothing" and outcome not in self._seen))
        is_rewrite = outcome_kind == "edit" and self._progress.rewrites(step)
        gain = self._progress.gain(step)
        is_confirmed = outcome_kind == "result" and repeated and edited_since and not step.is_error
        if is_unhelpful_agent:
            # Several agents of one loop count as one attempt.
            is_confirmed, self._handed_on = self._handed_on, True
        self.steps += 1
        self.errors += outcome_kind == "error"
        self._tokens += step.tokens
        entry = LedgerEntry(
            self.steps, step, call, outcome, outcome_kind, is_new, repeated, is_confirmed, gain, is_rewrite
        )
        self._edits += is_new and entry.edited
        self.recent.append(entry)
        self._seen[outcome] = None
        self._last[call] = (outcome, self._edits)
        if len(self._seen) > self._memory:
            del self._seen[next(iter(self._seen))]
        if len(self._last) > self._memory:
            del self._last[next(iter(self._last))]
        return entry

    def error_rate(self) -> float:
        return self.errors / self.steps if self.steps else 0.0

    def tokens(self, steps: int | None = None) -> int:
        """Returns the tokens that the last `steps` steps used; without a number, the tokens since the last reset."""
        if steps is None:
            return self._tokens
        return sum(entry.step.tokens for entry in list(self.recent)[-steps:]) if steps else 0

    def reset(self) -> None:
        self.recent.clear()
        self._seen.clear()
        self._last.clear()
        self.steps = self.errors = self._edits = self._tokens = 0


def weigh(step: LoopStep, call: int) -> tuple[Came, int]:
    """Returns the kind of outcome that a step had, and the signature of its result."""
    if step.is_error and is_failure(step):
        return "error", hash(step.error) if step.error else error_signature(step.result)
    match step.kind:
        case "edit":
            return "edit", call
        case "talk":
            return "result", call
        case _ if step.changed:
            # The same output is another outcome if another command changed files.
            return "result", change_signature(step)
        case "search" if says_nothing_found(step.result):
            return "nothing", 0
        case _ if is_empty(step.result):
            return "nothing", 0
        case _:
            text = without_echo(step.result, step.args) if step.kind == "search" else step.result
            return "result", result_signature(text, printed=step.kind not in ("read", "search"))


def is_failure(step: LoopStep) -> bool:
    """Says whether a step marked as an error really failed, and does not just have a result that is bad news."""
    match step.kind:
        case "read":
            return not is_empty(step.result)
        case "search":
            return not is_empty(step.result) and not says_nothing_found(step.result)
        case "run":
            return never_ran(step.result)
        case "other":
            return len(step.result) < SHORT
        case _:
            return True
