"""Brace expansion: `{a,b}` and `{1..3}`, with an end to it."""

import re

RANGE = re.compile(r"^(-?\d+|[a-zA-Z])\.\.(-?\d+|[a-zA-Z])(?:\.\.(-?\d+))?$")
MOST = 64
LONGEST = 400
DEEPEST = 12


def expand(text: str) -> list[str]:
    """All words a text with unquoted braces stands for; of too many or too long ones, the text itself."""
    if "{" not in text or len(text) > LONGEST or text.count("{") > DEEPEST:
        return [text]
    words = _expand(text, MOST)
    return words if len(words) <= MOST else [text]


def _expand(text: str, most: int) -> list[str]:
    start = text.find("{")
    while start >= 0:
        end = _closing(text, start)
        choices = _choices(text[start + 1 : end]) if end > 0 else []
        if choices:
            head, tails = text[:start], _expand(text[end + 1 :], most)
            inner = [word for choice in choices for word in _expand(choice, most)]
            if len(inner) * len(tails) > most:
                return [text] * (most + 1)
            return [head + middle + tail for middle in inner for tail in tails]
        start = text.find("{", start + 1)
    return [text]


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        if text[place] == "{":
            depth += 1
        elif text[place] == "}":
            depth -= 1
            if depth == 0:
                return place
    return -1


def _choices(inside: str) -> list[str]:
    span = RANGE.match(inside)
    if span:
        return _span(span[1], span[2])
    parts, depth, start = list[str](), 0, 0
    for place, character in enumerate(inside):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(inside[start:place])
            start = place + 1
    return [*parts, inside[start:]] if parts else []


def _span(first: str, last: str) -> list[str]:
    if first.isalpha() != last.isalpha():
        return []
    low, high = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    if abs(high - low) > MOST:
        return []
    numbers = range(low, high + 1) if low <= high else range(low, high - 1, -1)
    return [chr(number) if first.isalpha() else str(number) for number in numbers]
