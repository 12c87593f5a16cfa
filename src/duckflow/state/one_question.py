"""One question at a time: of questions that follow each other at the end of what is said, the first is kept.

Patterns are compiled when they are first used: most of what is said has no question."""

import re
from collections import deque

HIDDEN = (
    r"(?ms)```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|^>[^\n]*$"
    r"|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』"
)
"""Code, addresses and quotations: a question mark in them asks nobody anything."""
ASKED = r"[?？]+[)）*_\"”]*(?:\s*[(（][^()（）\n]{0,200}[)）])?"
ITEM = r"\s*(?:[-*•・]|\(?\d{1,2}[.):）、．]|\(?[A-Da-dＡ-Ｄ][.):）：])\s*"
SENTENCE_END = r"[?？!！。]|[.](?=\s|$)|\n"
STATEMENT = r"(?<=[。！])|(?<=[.!])\s+"
QUESTION_MARKS = "?？"
LAST_QUESTIONS = 50
"""Only so many at the end are looked at: a text may be made of nothing else."""
LONGEST_HELD, REMEMBERED = 4000, 2000
"""Characters: nothing longer is held back for a question; what was passed on so long ago decides nothing any more."""


def has_question(text: str) -> bool:
    return "?" in text or "？" in text


def last_question(text: str) -> str:
    """The question that a text ends with, without what was said before it."""
    line = text.rstrip().rpartition("\n")[2]
    parts = re.split(STATEMENT, re.sub(ITEM, "", line, count=1) if re.match(ITEM, line) else line)
    return next((part.strip() for part in reversed(parts) if part.strip()), "")


def one_question(text: str) -> str:
    """What is said, without the questions after the first one of those at its end."""
    return text[: settled(text, whole=True)].rstrip() if has_question(text) else text


def settled(text: str, whole: bool = False) -> int:
    """How much of a text is sure to stay: up to the first question that only questions follow.

    `whole`: nothing more comes, so a sentence without an end is one."""
    if not has_question(text):
        return len(text)
    masked = re.sub(HIDDEN, lambda match: "x" * len(match[0]), text)
    for question in deque(re.finditer(ASKED, masked), LAST_QUESTIONS):
        in_list, before = _place(masked, question.start())
        if in_list and before.endswith(tuple(QUESTION_MARKS)):
            continue
        if _only_questions(masked, question.end(), whole, in_list):
            return question.end()
    return len(text)


class QuestionStream:
    """Passes on what is said as it comes, and holds back what may be one question too many."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0

    def feed(self, delta: str) -> str:
        self._text += delta
        place = settled(self._text)
        passed = self._up_to(place if len(self._text) - place <= LONGEST_HELD else len(self._text))
        self._forget()
        return passed

    def end(self) -> str:
        return self._up_to(len(one_question(self._text)))

    def _up_to(self, place: int) -> str:
        passed, self._shown = self._text[self._shown : max(place, self._shown)], max(place, self._shown)
        return passed

    def _forget(self) -> None:
        """Keep the end of what was passed on, from the beginning of a line where there is one; code stays code."""
        place = self._shown - REMEMBERED
        if place < REMEMBERED:
            return
        place = self._text.rfind("\n", 0, place) + 1 or place
        fence = "```\n" if self._text.count("```", 0, place) % 2 else ""
        self._text, self._shown = fence + self._text[place:], self._shown - place + len(fence)


def _place(text: str, place: int) -> tuple[bool, str]:
    """Whether a place is in an item of a list, and the line that the list belongs to: after a question the items are
    the choices."""
    *before, line = text[:place].split("\n")
    if not re.match(ITEM, line):
        return False, ""
    return True, next((one.rstrip() for one in reversed(before) if one.strip() and not re.match(ITEM, one)), "")


def _only_questions(text: str, place: int, whole: bool, in_list: bool) -> bool:
    """Whether nothing but questions follows; a list after a question holds its choices."""
    first = _word_from(text, place)
    if first == len(text):
        return not whole
    if not in_list and "\n" in text[place:first] and re.compile(ITEM).match(text, _line_from(text, place)):
        return False
    while (place := _word_from(text, place)) < len(text):
        if item := re.compile(ITEM).match(text, place):
            place = item.end()
        end = re.compile(SENTENCE_END).search(text, place)
        if end is None:
            return not whole
        if end[0] not in QUESTION_MARKS:
            return False
        place = (re.compile(ASKED).match(text, end.start()) or end).end()
    return True


def _word_from(text: str, place: int) -> int:
    """Where the next word begins."""
    found = re.compile(r"\S").search(text, place)
    return found.start() if found else len(text)


def _line_from(text: str, place: int) -> int:
    """Where something other than line breaks and spaces begins."""
    found = re.compile(r"[^\n ]").search(text, place)
    return found.start() if found else len(text)
