"""The progress ledger: what each step brought that was not there before."""

from collections import deque
from typing import Literal, NamedTuple

from duckflow.pacemaker.progress import NOTHING, Gained, TurnProgress
from duckflow.pacemaker.signatures import (
    SHORT,
    LoopStep,
    call_signature,
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
    """One step as it stands in the ledger. `call` and `outcome` are signatures: equal means the same again."""

    number: int
    step: LoopStep
    call: int
    outcome: int
    came: Came
    new: bool
    repeated: bool
    """The very same call brought the very same when it was last made."""
    confirmed: bool
    """It did so although something was edited since, and it is good news: what worked still works."""
    gained: Gained = NOTHING
    """What it has brought for what was asked."""
    rewrites: bool = False
    """It only changed what this turn had written itself."""

    @property
    def failed(self) -> bool:
        return self.came == "error"

    @property
    def waits(self) -> bool:
        """It has looked at something while a command runs: to see how far that is."""
        return self.step.waits and not self.failed and self.step.kind not in ("talk", "edit")

    @property
    def idle(self) -> bool:
        """It has looked at something, and neither gained nor changed anything, nor failed."""
        looked = self.step.kind in ("read", "search", "run") and not (self.step.is_error or self.step.changed)
        return looked and not self.gained.kind

    @property
    def reads_again(self) -> bool:
        """Most of the lines that it has read were seen before, in another part of the text."""
        return self.step.kind == "read" and self.came == "result" and not self.gained.kind

    @property
    def fails_again(self) -> bool:
        """It has failed, and unless it said something new, things are as they were."""
        return self.step.is_error and not (self.step.changed and self.new)

    @property
    def edited(self) -> bool:
        return self.came == "edit"

    def same_as(self, other: "LedgerEntry") -> bool:
        return self.call == other.call and self.outcome == other.outcome

    @property
    def label(self) -> str:
        return name_call(self.step.name, self.step.args)


class Ledger:
    """Remembers signatures, not texts, and only so many of them.

    A step is new when it makes a successful edit not made before, returns something not seen before, or fails in a way
    not seen before. A search that finds nothing and a command that ran and failed are results, not errors. A call
    whose result an edit has changed since it was last made is news too, even if it goes back to how it was.
    """

    def __init__(self, window: int, memory: int, progress: TurnProgress | None = None) -> None:
        """`progress`: shared by the turn's agents."""
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
        """What the turn had gained of what was asked for when this loop began."""
        self._handed_on = False
        """This loop has handed work on to an agent that brought nothing."""

    def begin_loop(self) -> None:
        self._gains = self._progress.gains
        self._handed_on = False

    def record(self, step: LoopStep, told: bool = False) -> LedgerEntry:
        """`told`: the step tells of what was read."""
        call = call_signature(step.name, step.text if step.kind == "talk" and step.text else step.args)
        came, outcome = weigh(step, call)
        handed_on = step.name == RUN_AGENT and not told and self._gains == self._progress.gains
        if handed_on:
            # Nothing that was asked for came of it: a report of the same kind as the last one, however it is put.
            outcome = hash(plain_line(step.result.partition("\n")[0]))
        last, edits_then = self._last.get(call, (None, 0))
        repeated, edited_since = last == outcome, self._edits > edits_then
        turned = last is not None and not repeated and edited_since
        new = step.kind != "talk" and (turned or (came != "nothing" and outcome not in self._seen))
        rewrites = came == "edit" and self._progress.rewrites(step)
        gained = self._progress.gain(step)
        confirmed = came == "result" and repeated and edited_since and not step.is_error
        if handed_on:
            # Several agents of one loop are one attempt.
            confirmed, self._handed_on = self._handed_on, True
        self.steps += 1
        self.errors += came == "error"
        self._tokens += step.tokens
        self._edits += new and came == "edit"
        entry = LedgerEntry(self.steps, step, call, outcome, came, new, repeated, confirmed, gained, rewrites)
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
        """What the last so many steps consumed; without a number, all since the last reset."""
        if steps is None:
            return self._tokens
        return sum(entry.step.tokens for entry in list(self.recent)[-steps:]) if steps else 0

    def reset(self) -> None:
        self.recent.clear()
        self._seen.clear()
        self._last.clear()
        self.steps = self.errors = self._edits = self._tokens = 0


def weigh(step: LoopStep, call: int) -> tuple[Came, int]:
    """What came of a step, and its signature."""
    if step.is_error and is_failure(step):
        return "error", hash(step.error) if step.error else error_signature(step.result)
    match step.kind:
        case "edit":
            return "edit", call
        case "talk":
            return "result", call
        case "search" if says_nothing_found(step.result):
            return "nothing", 0
        case _ if is_empty(step.result):
            return "nothing", 0
        case _:
            text = without_echo(step.result, step.args) if step.kind == "search" else step.result
            return "result", result_signature(text, printed=step.kind not in ("read", "search"))


def is_failure(step: LoopStep) -> bool:
    """Whether a step marked as an error really is one, or a result that happens to be bad news."""
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
