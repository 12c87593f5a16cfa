"""Finds JSON in a reply and reads it: strictly where that works, else mended by json_repair, within bounds."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from duckflow.errors import ReplyUnusable
from duckflow.forms.live import without_thoughts
from duckflow.whole_text import make_value_whole

MAX_TEXT = 1_000_000
MAX_MENDED = 30_000
"""Broken JSON with more characters than this is not mended: the time for mending grows faster than the length."""
DEPTH = 60
MOST_TRIED = 2_000
"""At most this many brackets are tried as the beginning of JSON, because each failed try searches the text before its
bracket once more."""
COST_OF_MENDING = 200
"""One mending counts as this many tries, because it searches all of the following text several times."""
FORGOTTEN = ("}", "]}", "}]}")
"""Closing brackets that a model may have forgotten at the end: the Decision's, its action list's, its last action's."""

BRACKET = r"[{\[]"
# The text after the bracket of real JSON; a bracket in prose ("[note]", "{x}") is followed by something else.
JSON_START = r"\{\s*(?:[\"'“”„‘’`}/#.…]|[\w-]+\s*[:\"]|\Z)|\[\s*(?:[^\s\w]|\d|\Z)"
WHOLE_STRING = r'"(?:[^"\\]|\\.)*"'
FULL_WIDTH = str.maketrans("｛｝［］：，＂", '{}[]:,"')
WIDE_SIGN = rf"(?s){WHOLE_STRING}|[｛｝［］：，＂]"
ESCAPED_START = r'[{\[]\s*(?:\\[nrt]\s*)*\\"'
FENCE_BEFORE = r"(?:```|~~~)[^\n`]*\n?\s*\Z"
FENCE_AFTER = r"\s*(?:```|~~~)[ \t]*(?:\n|\Z)"
BLOCK_AFTER = r"[}\]]\s*\n[ \t]*(?:```|~~~|<{5,9} ?SEARCH)"
LEFTOVER = r"\s*[}\]]"
GOES_ON = r"\s*[,:\"'，：]"


class ReadJson(NamedTuple):
    """A value read from a reply."""

    value: Any
    repaired: bool = False
    """True if more than prose, fences and blanks around the value had to be removed. The end of the value is then a
    guess."""
    cut: bool = False
    """True if the value stops in the middle of something."""
    rest: str = ""
    """The text that follows the value in the reply."""


def read_json(text: str) -> ReadJson:
    """Returns the JSON object or list in `text`; several of them become a list without the empty ones. Raises
    ReplyUnusable if there is none."""
    values = list(json_values(text))
    filled_values = [reading for reading in values if reading.value]
    if len(filled_values) < 2:
        return (filled_values or values)[0]
    return filled_values[-1]._replace(value=[reading.value for reading in filled_values], repaired=True)


def json_values(text: str) -> Iterator[ReadJson]:
    """Yields every object or list in `text`. Raises ReplyUnusable if there is none."""
    if len(text) > MAX_TEXT:
        raise ReplyUnusable(f"The reply is too long ({len(text)} characters). Send a much shorter one.")
    original_text = without_thoughts(text)
    text = _unwrapped(_half_width(original_text))
    changed = text != original_text
    position = count = try_count = 0
    problem: ValueError | RecursionError | None = None
    while start := re.compile(BRACKET).search(text, position):
        try_count += 1
        if try_count > MOST_TRIED:
            raise ReplyUnusable("The reply has too many brackets outside one JSON object. Send one JSON object alone.")
        try:
            value, position = DECODER.raw_decode(text, start.start())
            reading = ReadJson(make_value_whole(value), changed or bool(re.compile(LEFTOVER).match(text, position)))
            if re.compile(GOES_ON).match(text, position):
                try_count += COST_OF_MENDING
                reading, position = _mended(text, start.start()) or (reading, position)
        except (ValueError, RecursionError) as failure:
            problem = problem or failure
            position = start.end()
            if text[: start.start()].strip() and not re.compile(JSON_START).match(text, start.start()):
                continue
            try_count += COST_OF_MENDING
            if (mended_reading := _mended(text, start.start())) is None:
                break
            reading, position = mended_reading
        position = _after_fence(text, start.start(), position)
        count += 1
        yield reading._replace(rest=text[position:])
    if not count:
        _refuse(text, problem)


def _half_width(text: str) -> str:
    """Replaces full-width signs, as an IME writes them, by the usual ones, except inside strings."""
    if text.isascii() or not re.search("[｛｝［］：，＂]", text):
        return text
    return re.sub(WIDE_SIGN, lambda sign: sign[0] if len(sign[0]) > 1 else sign[0].translate(FULL_WIDTH), text)


def _unwrapped(text: str) -> str:
    """Removes one layer from JSON that was written as a JSON string, or that has all its quotes escaped."""
    if text.lstrip().startswith('"') and "{" in text:
        try:
            inner_text = json.loads(text)
        except (ValueError, RecursionError):
            inner_text = None
        if isinstance(inner_text, str):
            return inner_text
    start = re.search(BRACKET, text)
    if start and len(text) <= MAX_MENDED and re.compile(ESCAPED_START).match(text, start.start()):
        try:
            return str(json.loads(f'"{text[start.start() :]}"', strict=False))
        except (ValueError, RecursionError):
            return text
    return text


def _mended(text: str, start: int) -> tuple[ReadJson, int] | None:
    """Returns json_repair's reading of the JSON that begins at `start`, and the place where that JSON ends; None if it
    finds neither an object nor a list."""
    json_end = _before_blocks(text, start)
    if (closed_value := _closed(text[start:json_end])) is not None:
        return ReadJson(make_value_whole(closed_value), True), json_end
    if json_end - start > MAX_MENDED or _depth(text[start:json_end]) > DEPTH:
        return None
    from json_repair import repair_json

    try:
        value = make_value_whole(repair_json(text[start:json_end], return_objects=True, skip_json_loads=True))
    except (ValueError, RecursionError, IndexError):
        return None
    if not isinstance(value, dict | list):
        return None
    return ReadJson(value, True, cut=_is_cut(text[start:json_end])), json_end


def _closed(text: str) -> Any:
    """Returns the value if nothing but closing brackets at its end is missing; otherwise None."""
    text = text.rstrip().removesuffix("```").rstrip()
    for brackets in FORGOTTEN if text.endswith(("}", "]", '"')) else ():
        with suppress(ValueError, RecursionError):
            return json.loads(text + brackets, parse_constant=_no_constant)
    return None


def _is_cut(text: str) -> bool:
    """Says whether the text goes on after the last closed bracket, or no bracket was closed at all."""
    last_bracket = max(text.rfind("}"), text.rfind("]"))
    return last_bracket < 0 or bool(re.compile(GOES_ON).match(text, last_bracket + 1))


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in re.findall(r"[{}\[\]]", text):
        depth += 1 if bracket in "{[" else -1
        deepest = max(deepest, depth)
    return deepest


def _before_blocks(text: str, start: int) -> int:
    """Returns the place where the JSON ends if raw blocks (texts of files) follow it: before the first block where each
    bracket of the JSON is closed again."""
    curly = square = 0
    for block in re.compile(BLOCK_AFTER).finditer(text, start):
        piece_end = block.start() + 1
        curly += text.count("{", start, piece_end) - text.count("}", start, piece_end)
        square += text.count("[", start, piece_end) - text.count("]", start, piece_end)
        if curly == square == 0:
            return piece_end
        start = piece_end
    return len(text)


def _after_fence(text: str, start: int, end: int) -> int:
    fenced = re.search(FENCE_BEFORE, text[max(0, start - 80) : start])
    fence = re.compile(FENCE_AFTER).match(text, end) if fenced else None
    return fence.end() if fence else end


def _refuse(text: str, problem: ValueError | RecursionError | None) -> NoReturn:
    if problem is None:
        raise ReplyUnusable("There is no JSON in the reply. Send one JSON object.")
    if not isinstance(problem, json.JSONDecodeError):
        raise ReplyUnusable("The JSON cannot be read: it is nested too deeply. Send a simpler one.")
    nearby_text = " ".join(text[max(0, problem.pos - 20) : problem.pos + 20].split())
    position = f"line {problem.lineno}, column {problem.colno}, near `{nearby_text}`"
    raise ReplyUnusable(f"The JSON cannot be read: {position}: {problem.msg}. Send it again, complete.")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


DECODER = json.JSONDecoder(parse_constant=_no_constant)
