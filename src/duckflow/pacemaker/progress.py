"""Progress: what earns a turn more loops. Talking does not, nor does anything else that the request has no use for."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, cast

from duckflow.pacemaker.signatures import SHORT, canonical, is_empty, plain_line, says_nothing_found
from duckflow.pacemaker.step import LoopStep, replaced_texts
from duckflow.state.action import subject_of

Gain = Literal["", "read", "passes", "fails_less", "made", "used", "changed", "completed"]

SEEN_LINES = 50_000
LINES = 2_000
"""Lines of one result that are looked at."""
FAILURES = (
    r"(?i)([0-9]+)[^0-9\n]{0,20}?(?:of [0-9]+[^0-9\n]{0,20}?)?\b(?:fail|error|problem)"
    r"|\b(?:fail\w*|errors?|problems?) ?[=:] ?([0-9]+)|([0-9]+) ?(?:件|個|つ)[^0-9\n]{0,8}?(?:失敗|エラー)"
)
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
    command = step.args if isinstance(step.args, str) else subject_of(step.args)
    last = re.split(r"&&|\|\||;|\n", command[:SHORT])[-1] or command[:SHORT]
    words = [word for word in last.partition("|")[0].split() if not word.startswith("-")]
    return f"{step.name} {' '.join(words[:2])}"


def failures_in(text: str) -> int | None:
    """How many failures the output counts by itself, in its last line that does."""
    found = re.findall(FAILURES, text[-LINES:]) or re.findall(FAILURES, text[:LINES])
    return int(next(filter(None, found[-1]))) if found else None


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
