"""The rules by which questions are told from other text."""

import re

HIDDEN = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|^>[^\n]*$"
    r"|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』",
    re.DOTALL | re.MULTILINE,
)
"""Code, addresses and quotations: a question mark in them asks nobody anything."""
ASKED = re.compile(r"[?？]+[)）*_\"”]*(?:\s*[(（][^)）\n]*[)）])?")
LAST = re.compile(ASKED.pattern + r"\s*\Z")
ITEM = re.compile(r"\s*(?:[-*•・]|\(?\d{1,2}[.):）、．]|\(?[A-Da-dＡ-Ｄ][.):）：])\s*")
SENTENCE_END = re.compile(r"[?？!！。]|[.](?=\s|$)|\n")
STATEMENT = re.compile(r"(?<=[。！])|(?<=[.!])\s+")
QUESTION_MARKS = "?？"


def ends_asking(text: str) -> bool:
    """Whether the last thing said is a question, perhaps with a remark in brackets behind it."""
    return LAST.search(text) is not None


def last_question(text: str) -> str:
    """The question that a text ends with, without what was said before it."""
    line = text.rstrip().rpartition("\n")[2]
    return STATEMENT.split(ITEM.sub("", line, count=1) if ITEM.match(line) else line)[-1].strip()


def settled(text: str, whole: bool = False) -> int:
    """How much of a text is sure to stay: up to the first question that only questions follow.

    `whole`: nothing more comes, so a sentence without an end is one."""
    masked = HIDDEN.sub(lambda match: "x" * len(match[0]), text)
    for question in ASKED.finditer(masked):
        in_list, before = _place(masked, question.start())
        if in_list and before.endswith(tuple(QUESTION_MARKS)):
            continue
        if _only_questions(masked, question.end(), whole, in_list):
            return question.end()
    return len(text)


def _place(text: str, place: int) -> tuple[bool, str]:
    """Whether a place is in an item of a list, and the line that the list belongs to: after a question the items are
    the choices."""
    *before, line = text[:place].split("\n")
    if not ITEM.match(line):
        return False, ""
    return True, next((one.rstrip() for one in reversed(before) if one.strip() and not ITEM.match(one)), "")


def _only_questions(text: str, place: int, whole: bool, in_list: bool) -> bool:
    """Whether nothing but questions follows; a list after a question holds its choices."""
    rest = text[place:]
    if not rest.strip():
        return not whole
    if not in_list and "\n" in rest[: len(rest) - len(rest.lstrip())] and ITEM.match(rest.lstrip("\n ")):
        return False
    while rest := rest.lstrip():
        if item := ITEM.match(rest):
            rest = rest[item.end() :]
        end = SENTENCE_END.search(rest)
        if end is None:
            return not whole
        if end[0] not in QUESTION_MARKS:
            return False
        rest = rest[(ASKED.match(rest, end.start()) or end).end() :]
    return True
