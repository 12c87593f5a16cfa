"""The progress ledger: what each step brought that was not there before, and what earns a turn more loops."""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, cast

from duckflow.i18n.patterns import joined
from duckflow.pacemaker.signatures import (
    SHORT,
    LoopStep,
    call_signature,
    canonical,
    error_signature,
    is_empty,
    name_call,
    never_ran,
    plain_line,
    replaced_texts,
    result_signature,
    says_nothing_found,
    without_echo,
)

Gain = Literal["", "read", "passes", "fails_less", "made", "used", "changed", "completed"]

SEEN_LINES = 50_000
LINES = 2_000
"""Lines of one result that are looked at."""
WORD = re.compile(r"[A-Za-z0-9_-]+")
NUMBER = re.compile(r"[0-9]+")
ANY_NUMBER = re.compile(r"[0-9]+|(?<![A-Za-z])[NX]+(?![A-Za-z])")
STEM = 3


class SeenLines:
    """The lines of what was read in this turn, as signatures."""

    def __init__(self) -> None:
        self._seen: dict[int, None] = {}

    def mostly_new(self, step: LoopStep) -> bool:
        """Whether most lines of the result were not seen before. What a command prints is compared without its numbers,
        and what stands in the command itself is no news."""
        printed = step.kind not in ("read", "search")
        own = plain_line(canonical(step.args)) if printed else canonical(step.args)
        lines = {plain_line(line) if printed else line.strip() for line in step.result.split("\n")[:LINES]}
        lines = {hash(line) for line in lines if not is_empty(line) and (len(line) > SHORT or line not in own)}
        new = lines - self._seen.keys()
        self._seen.update(dict.fromkeys(new))
        while len(self._seen) > SEEN_LINES:
            del self._seen[next(iter(self._seen))]
        return bool(new) and 2 * len(new) >= len(lines)


class FailedChecks:
    """Commands that failed in this turn, each with the least that was wrong."""

    def __init__(self) -> None:
        self._least: dict[str, tuple[int | None, Counter[str]]] = {}

    def look(self, step: LoopStep) -> Gain:
        """A command that failed before and passes, or that complains of less than ever before."""
        name = check_name(step)
        before = self._least.get(name)
        if not step.is_error:
            self._least.pop(name, None)
            return "passes" if before else ""
        count, lines = failures_in(step.result), Counter(map(plain_line, step.result.split("\n")[1:LINES]))
        if before is None:
            self._least[name] = count, lines
            return ""
        less = count < before[0] if count is not None and before[0] is not None else lines < before[1]
        if less:
            self._least[name] = count, lines
        return "fails_less" if less else ""


def check_name(step: LoopStep) -> str:
    """The same check under whatever options: the first words of its last command."""
    command = step.subject[:SHORT]
    last = re.split(r"&&|\|\||;|\n", command)[-1] or command
    words = [word for word in last.partition("|")[0].split() if not word.startswith("-")]
    return f"{step.name} {' '.join(words[:2])}"


def failures_in(text: str) -> int | None:
    """How many failures the output counts by itself, in its last line that does."""
    failures = re.compile(rf"(?i){joined('output.failures', text)}")
    counts = failures.findall(text[-LINES:]) or failures.findall(text[:LINES])
    return int(next(filter(None, counts[-1]))) if counts else None


def stem_of(path: str) -> str:
    """The file's name without folder and suffix."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def names_file(asked: str, path: str) -> bool:
    """Whether a request names a file: by its name, its stem, its folder, or as one of a series (`m_01.py to m_24.py`,
    `m_NN.py`)."""
    folder, _, name = path.rpartition("/")
    stem, words = stem_of(path), WORD.findall(asked)
    if name in asked or (len(stem) >= STEM and stem in words):
        return True
    if folder and f"{folder.rpartition('/')[2]}/" in asked:
        return True
    shape, numbers = ANY_NUMBER.sub("#", stem), [int(one) for one in NUMBER.findall(stem)]
    if not numbers:
        return False
    series = [word for word in words if ANY_NUMBER.sub("#", word) == shape]
    given = [[int(one) for one in NUMBER.findall(word)] for word in series]
    if any(len(one) < len(numbers) for one in given):
        return True
    columns = zip(numbers, *given, strict=True)
    return bool(given) and all(min(others) <= number <= max(others) for number, *others in columns)


class TurnProgress:
    """What each step has gained for what was asked."""

    def __init__(self, asked: str = "") -> None:
        self.asked = asked
        self._lines = SeenLines()
        self._checks = FailedChecks()
        self._changed: set[str] = set()
        self._unused: set[str] = set()
        self._written: set[int] = set()

    def gain(self, step: LoopStep) -> Gain:
        if step.kind in ("talk", "ask", "submit"):
            return ""
        ran = step.kind == "run" or (isinstance(step.args, Mapping) and "command" in step.args)
        found = self._checks.look(step) if ran else ""
        if step.is_error or (step.kind == "search" and says_nothing_found(step.result)):
            return found
        if step.kind == "edit":
            return found or self._edited(step)
        new = self._lines.mostly_new(step)
        return found or self._used(step, ran) or ("read" if new else "")

    def rewrites(self, step: LoopStep) -> bool:
        """Whether an edit only changes what this turn has written itself. Asked before its gain."""
        if old := replaced_texts(step.args):
            return self._written.issuperset(_lines(old))
        return bool(step.changed) and self._changed.issuperset(step.changed)

    def _edited(self, step: LoopStep) -> Gain:
        """A file that was asked for is made, or a place changed that this turn had not touched: of a file that nobody
        named only the first."""
        again, old = self.rewrites(step), replaced_texts(step.args)
        first = set(step.changed) - self._changed
        self._changed |= first
        self._written.update(_lines(texts_in(step.args)))
        named = any(names_file(self.asked, path) for path in step.changed)
        if named and first:
            return "made"
        if old and not again and (named or first):
            return "changed"
        self._unused |= first
        return ""

    def _used(self, step: LoopStep, ran: bool) -> Gain:
        """A command that passes and names a file made in this turn."""
        command = canonical(step.args) if ran and self._unused else ""
        used = {path for path in self._unused if stem_of(path) in command}
        self._unused -= used
        return "used" if used else ""


def _lines(texts: Iterable[str]) -> Iterator[int]:
    return (hash(line) for text in texts for line in text.strip().split("\n"))


def texts_in(value: Any) -> Iterator[str]:
    """All texts among arguments."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from texts_in(list(cast("Mapping[str, Any]", value).values()))
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from texts_in(one)


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
    gain: Gain = ""
    """What it has brought for what was asked."""
    rewrites: bool = False
    """It only changed what this turn had written itself."""

    @property
    def failed(self) -> bool:
        return self.came == "error"

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

    def __init__(self, window: int, memory: int) -> None:
        self.recent: deque[LedgerEntry] = deque(maxlen=window)
        self.steps = 0
        self.errors = 0
        self._memory = memory
        self._seen: dict[int, None] = {}
        self._last: dict[int, tuple[int, int]] = {}
        self._edits = 0
        self._tokens = 0
        self._progress = TurnProgress()

    def begin(self, asked: str) -> None:
        """The user has spoken: what counts as progress from now on."""
        self.reset()
        self._progress = TurnProgress(asked)

    def record(self, step: LoopStep) -> LedgerEntry:
        call = call_signature(step.name, step.text if step.kind == "talk" and step.text else step.args)
        came, outcome = weigh(step, call)
        last, edits_then = self._last.get(call, (None, 0))
        repeated, edited_since = last == outcome, self._edits > edits_then
        turned = last is not None and not repeated and edited_since
        new = step.kind != "talk" and (turned or (came != "nothing" and outcome not in self._seen))
        rewrites = came == "edit" and self._progress.rewrites(step)
        gain = self._progress.gain(step)
        confirmed = came == "result" and repeated and edited_since and not step.is_error
        self.steps += 1
        self.errors += came == "error"
        self._tokens += step.tokens
        self._edits += new and came == "edit"
        entry = LedgerEntry(self.steps, step, call, outcome, came, new, repeated, confirmed, gain, rewrites)
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
