"""The progress ledger: what each step brought that was not there before."""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from duckflow.pacemaker.normal import (
    SHORT,
    call_signature,
    could_not_start,
    error_line,
    is_empty,
    label,
    result_signature,
    says_nothing_found,
)
from duckflow.pacemaker.step import LoopStep

Outcome = Literal["edit", "result", "error", "nothing"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One step as it stands in the ledger. `call` and `outcome` are signatures: equal means the same again."""

    number: int
    label: str
    call: int
    outcome: int
    came: Outcome
    new: bool
    repeated: bool
    step: LoopStep

    @property
    def failed(self) -> bool:
        return self.came == "error"

    @property
    def edited(self) -> bool:
        return self.came == "edit"


class Ledger:
    """Remembers signatures, not texts, and only so many of them.

    A step is new when it makes a successful edit not made before, returns something not seen before, or fails in a way
    not seen before. A search that finds nothing and a command that ran and failed are results, not errors. A call
    whose result has changed since it was last made is news too.
    """

    def __init__(self, window: int, memory: int) -> None:
        self.recent: deque[Entry] = deque(maxlen=window)
        self._memory = memory
        self._seen: dict[int, None] = {}
        self._last: dict[int, int] = {}
        self.steps = 0
        self.errors = 0

    def record(self, step: LoopStep) -> Entry:
        self.steps += 1
        call = call_signature(step.name, step.args)
        came, outcome = weigh(step, call)
        changed = came == "result" and self._last.get(call, outcome) != outcome
        repeated = self._last.get(call) == outcome
        new = came != "nothing" and (outcome not in self._seen or changed)
        self.errors += came == "error"
        self._remember(call, outcome)
        entry = Entry(self.steps, label(step.name, step.args), call, outcome, came, new, repeated, step)
        self.recent.append(entry)
        return entry

    def error_rate(self) -> float:
        return self.errors / self.steps if self.steps else 0.0

    def reset(self) -> None:
        self.recent.clear()
        self._seen.clear()
        self._last.clear()
        self.steps = self.errors = 0

    def _remember(self, call: int, outcome: int) -> None:
        for store, key, value in ((self._seen, outcome, None), (self._last, call, outcome)):
            store.pop(key, None)
            store[key] = value
            if len(store) > self._memory:
                del store[next(iter(store))]


def weigh(step: LoopStep, call: int) -> tuple[Outcome, int]:
    """What came of a step, and its signature."""
    if step.is_error and is_failure(step):
        return "error", hash(("error", error_line(step.result)))
    if step.kind == "edit":
        return "edit", hash(("edit", call))
    if step.kind == "talk":
        return "result", hash(("said", call))
    if is_empty(step.result) or (step.kind == "search" and says_nothing_found(step.result)):
        return "nothing", 0
    return "result", result_signature(step.result, printed=step.kind not in ("read", "search"))


def is_failure(step: LoopStep) -> bool:
    """Whether a step marked as an error really is one, or a result that happens to be bad news."""
    match step.kind:
        case "search":
            return not is_empty(step.result) and not says_nothing_found(step.result)
        case "run":
            return could_not_start(step.result)
        case "other":
            return len(step.result) < SHORT
        case _:
            return True
