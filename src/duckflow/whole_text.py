"""Makes text from outside fit to be stored: valid Unicode, without any secret key of an endpoint that this process has
used. An endpoint may repeat a key in an error or in a reply."""

import json
import re
from typing import Any, cast

DECODER = json.JSONDecoder(strict=False)
"""A decoder that accepts line breaks in strings, which some servers send."""


def make_whole(text: str) -> str:
    """Joins the two halves of a surrogate pair into one character. A single half, or a byte that is no text, becomes a
    mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def make_value_whole(value: Any) -> Any:
    """Applies `make_whole` to every text in a JSON value, including names."""
    match value:
        case str():
            return make_whole(value)
        case dict():
            table = cast("dict[Any, Any]", value)
            return {make_value_whole(name): make_value_whole(inner_value) for name, inner_value in table.items()}
        case list() | tuple() | set() | frozenset():
            items = cast("list[Any]", value)
            return type(items)(map(make_value_whole, items))
        case _:
            return value


def parse_json(text: str | bytes | bytearray) -> Any:
    """Returns the value of a JSON text from outside. Raises ValueError if it is no JSON, or nested too deeply."""
    json_text = text if isinstance(text, str) else text.decode("utf-8")
    try:
        value = DECODER.decode(json_text)
        return make_value_whole(value) if has_halves(json_text) else value
    except RecursionError as problem:
        raise ValueError(str(problem)) from None


def read_json(text: str | bytes | bytearray) -> Any:
    """Returns the value of a JSON text, or None if it is no JSON."""
    try:
        return parse_json(text)
    except ValueError:
        return None


def has_halves(written: str) -> bool:
    """Says whether a value read from this JSON text may contain half of a surrogate pair."""
    return "\\ud" in written or "\\uD" in written or (not written.isascii() and make_whole(written) is not written)


class PieceJoiner:
    """Reads the events of a stream. A character whose halves came in two events is complete in the second event."""

    def __init__(self) -> None:
        self._left: dict[tuple[Any, ...], str] = {}

    def read(self, text: str) -> Any:
        if not self._left and not has_halves(text):
            return read_json(text)
        try:
            return make_value_whole(self._joined(DECODER.decode(text), ()))
        except (ValueError, RecursionError):
            return None

    def _joined(self, value: Any, place: tuple[Any, ...]) -> Any:
        match value:
            case dict():
                table = cast("dict[str, Any]", value)
                return {name: self._joined(part, (*place, name)) for name, part in table.items()}
            case list():
                return [self._joined(part, (*place, index)) for index, part in enumerate(cast("list[Any]", value))]
            case str() if value:
                text = self._left.pop(place, "") + value
                if "\ud800" <= text[-1] <= "\udbff":
                    self._left[place], text = text[-1], text[:-1]
                return text
            case _:
                return value


HIDDEN = "***"
SHORTEST, SURELY_SECRET = 7, 16
JSON_IN_JSON = 3
"""JSON inside JSON spells a key with more escapes. This is the number of spellings that are computed for each key: the
plain key, the key in JSON, and the key in JSON that is quoted in JSON."""
_spellings: dict[str, None] = {}


def remember_key(secret: str) -> None:
    """Remembers a key as secret. A short text or a plain word is not remembered: it is a placeholder for servers that
    accept any key (`x`, `lm-studio`)."""
    if len(secret) >= SURELY_SECRET or (len(secret) >= SHORTEST and re.search(r"\d", secret)):
        for _ in range(JSON_IN_JSON):
            _spellings[secret] = None
            secret = json.dumps(secret)[1:-1]


def without_keys(text: str) -> str:
    for spelling in _spellings:
        text = text.replace(spelling, HIDDEN)
    return text


KEY_FORM = r"(?=.*\d)[\w.-]{20,}"


def key_in(text: str) -> str:
    """Returns the key, without what was copied along with it, if the text has the form of one; otherwise nothing."""
    copied = re.fullmatch(AROUND_KEY, text.strip())
    return copied[2] if copied and copied[2].isascii() and re.fullmatch(KEY_FORM, copied[2]) else ""


AROUND_KEY = r"""(?:export\s+)?(?:[A-Z][A-Z0-9]*_[A-Z0-9_]*=(?!=))?(?:.*\bBearer\s+)?(['"]?)(.*)\1"""
"""A key as it is copied from a shell's startup file, from a file of variables, or from the header of a request."""
