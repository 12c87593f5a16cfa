"""Finds JSON in a reply and reads it: strictly, then by the rules of `reading`, then with json_repair in bounds."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, SupportsIndex

from duckflow.errors import ReplyUnusable
from duckflow.llm.bodies import without_thoughts
from duckflow.llm.reading import CLOSERS, GOES_ON, JsonReader, ReadDeadline, Unclear, unescaped, whole

MAX_TEXT = 1_000_000
MAX_REPAIRED = 200_000
MAX_MENDED = 60_000
SECONDS = 0.06

BRACKET = re.compile(r"[{\[｛［]")
ESCAPED_START = re.compile(r'[{\[]\s*(?:\\[nrt]\s*)*\\"')
# What follows the bracket of real JSON; a bracket in prose ("[note]", "{x}") is followed by something else.
JSON_START = re.compile(r"[{｛]\s*(?:[\"'“”„‘’`＂}｝,，/#.…]|[\w-]+\s*[:：\"]|\Z)|[\[［]\s*(?:[^\s\w]|\d|\Z)")
LEFTOVER = re.compile(r"\s*[}\]｝］,，:：\"]")
FENCE_BEFORE = re.compile(r"(?:```|~~~)[^\n`]*\n?\s*\Z")
FENCE_AFTER = re.compile(r"\s*(?:```|~~~)[ \t]*(?:\n|\Z)")
BLOCK_AFTER = re.compile(r"[}\]]\s*\n[ \t]*(?:```|~~~|<{5,9} ?SEARCH)")


@dataclass(frozen=True, slots=True)
class ReadJson:
    """A value read from a reply. `repaired`: more than prose, fences and blanks around it had to be taken away.

    `missing` are closing brackets that never came, innermost first; `half`: the last thing in it was cut in the middle;
    `guessed`: it was too broken for rules, so its end is a guess as well.
    """

    value: Any
    repaired: bool = False
    missing: str = ""
    half: bool = False
    guessed: bool = False
    source: str = field(default="", repr=False)
    end: int = 0

    @property
    def truncated(self) -> bool:
        return self.half or bool(self.missing)

    @property
    def rest(self) -> str:
        """What follows it in the reply."""
        return self.source[self.end :]


class Watched(str):
    """Text that looks at the clock whenever a piece of it is read: the only way to stop a parser that never would."""

    clock: ReadDeadline

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        self.clock.check()
        piece = super().__getitem__(key)
        return watched(piece, self.clock) if isinstance(key, slice) else piece

    def __add__(self, other: str) -> str:
        return watched(super().__add__(other), self.clock)


def watched(text: str, clock: ReadDeadline) -> Watched:
    copy = Watched(text)
    copy.clock = clock
    return copy


def read_json(text: str) -> ReadJson:
    """The JSON object or list in `text`; several of them are a list of those that are not empty. Else ReplyUnusable."""
    found = list(json_values(text))
    filled = [one for one in found if one.value]
    if len(filled) < 2:
        return (filled or found)[0]
    last = filled[-1]
    return replace(last, value=[one.value for one in filled], repaired=True)


def json_values(text: str) -> Iterator[ReadJson]:
    """Every object or list in `text`, one after the other; ReplyUnusable if there is none."""
    if len(text) > MAX_TEXT:
        raise ReplyUnusable(f"The reply is too long ({len(text)} characters). Send a much shorter one.")
    text, unwrapped = _unwrapped(without_thoughts(text))
    clock = ReadDeadline(SECONDS)
    position, found = 0, 0
    problem: Unclear | None = None
    while start := BRACKET.search(text, position):
        try:
            read = _value_at(text, start.start(), clock)
        except Unclear as unclear:
            problem = problem or unclear
            position = max(unclear.position, start.end())
            if unclear.final:
                break
            continue
        found += 1
        position = read.end
        yield replace(read, repaired=read.repaired or unwrapped)
    if not found:
        _refuse(text, problem)


def _unwrapped(text: str) -> tuple[str, bool]:
    """JSON that was itself written as a JSON string, or has all its quotes escaped, loses that layer."""
    if text.lstrip().startswith('"') and "{" in text:
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, str):
            return inner, True
    start = BRACKET.search(text)
    if start and len(text) <= MAX_REPAIRED and ESCAPED_START.match(text, start.start()):
        return unescaped(text[start.start() :]), True
    return text, False


def _value_at(text: str, start: int, clock: ReadDeadline) -> ReadJson:
    clock.check()
    try:
        value, end = DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        read, end = _lenient(text, start, clock)
    else:
        read = ReadJson(_storable(value, text), repaired=bool(LEFTOVER.match(text, end)))
        if isinstance(value, dict) and GOES_ON["}"].match(text, end):
            read, end = _lenient(text, start, clock)
    if FENCE_BEFORE.search(text, max(0, start - 80), start) and (fence := FENCE_AFTER.match(text, end)):
        end = fence.end()
    return replace(read, source=text, end=end)


def _lenient(text: str, start: int, clock: ReadDeadline) -> tuple[ReadJson, int]:
    if len(text) - start > MAX_REPAIRED:
        raise Unclear(start, "it is malformed, and too long to be repaired")
    reader = JsonReader(text, start, clock)
    try:
        value = reader.read()
    except Unclear as unclear:
        if unclear.final or (text[:start].strip() and not JSON_START.match(text, start)):
            raise
        return _mended(text, start, clock, unclear)
    return ReadJson(value, True, reader.missing, reader.half), reader.position


def _mended(text: str, start: int, clock: ReadDeadline, unclear: Unclear) -> tuple[ReadJson, int]:
    """json_repair's reading of what our own rules leave unclear. It is a guess, and bounded in size and time."""
    end = _before_blocks(text, start)
    hopeless = Unclear(unclear.position, unclear.reason, final=True)
    if end - start > MAX_MENDED:
        raise hopeless
    from json_repair import repair_json

    try:
        value = repair_json(watched(text[start:end], clock), return_objects=True, skip_json_loads=True)
        value = json.loads(whole(json.dumps(value, ensure_ascii=False)))
    except Exception as failure:
        # Whatever a guess on broken text trips over, the reply is as unreadable as it was before.
        raise hopeless from failure
    if not isinstance(value, dict | list) or not value:
        raise hopeless
    half = text[start:end].rstrip().removesuffix("```").rstrip()[-1:] not in CLOSERS
    return ReadJson(value, True, half=half, guessed=True), end


def _before_blocks(text: str, start: int) -> int:
    """Where the JSON ends if raw blocks follow it: at a bracket before a fence that leaves no bracket open."""
    curly = square = 0
    for block in BLOCK_AFTER.finditer(text, start):
        end = block.start() + 1
        curly += text.count("{", start, end) - text.count("}", start, end)
        square += text.count("[", start, end) - text.count("]", start, end)
        if curly == square == 0:
            return end
        start = end
    return len(text)


def _storable(value: Any, text: str) -> Any:
    """The value without halves of surrogate pairs, which `\\ud83d` alone would leave in it."""
    if "\\ud" not in text and "\\uD" not in text:
        return value
    try:
        return json.loads(whole(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError) as failure:
        raise Unclear(0, "it is nested too deeply", final=True) from failure


def _refuse(text: str, problem: Unclear | None) -> NoReturn:
    if problem is None:
        raise ReplyUnusable("There is no JSON in the reply. Send one JSON object.")
    line = text.count("\n", 0, problem.position) + 1
    column = problem.position - text.rfind("\n", 0, problem.position)
    near = " ".join(text[max(0, problem.position - 20) : problem.position + 20].split())
    where = f"line {line}, column {column}, near `{near}`"
    raise ReplyUnusable(f"The JSON cannot be read: {where}: {problem.reason}. Send it again, complete.")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


DECODER = json.JSONDecoder(parse_constant=_no_constant)
