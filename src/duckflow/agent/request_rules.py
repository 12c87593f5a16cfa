"""Finds what the user writes in passing, by rules: what is forbidden, and which files are mentioned with an `@`."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.answers import read_whole
from duckflow.i18n.language import begins, joined, may_find, search

CODE = r"(?s)```.*?(?:```|\Z)|`[^`\n]*`"

SENTENCE = r"(?:[^.!?。！？\n]|[.](?=[^\s.]))+[.!?。！？]?"
MOST_CONSTRAINTS = 2
LINE = 100
HANDED_OVER = r"(?:\s*[@＠][^\s@＠]+)+$"
"""Pattern of files that are handed over with an order. They are no part of it."""

MENTION = r'(?<![A-Za-z0-9_@./+-])[@＠](?:"([^"\n]{1,200})"|([^\s@＠"\'`<>|]+))'
PATH_END = r"[,;:!?)\]}。、！？」』）…]|\.(?=$|[,;:!?)\]}]|[^\x00-\x7f])|[^\x00-\x7f]"
"""Pattern of what may stand right after a path."""
FILE_LIKE = (
    r"[\w~./-]*\w\.(?:py|md|txt|json|toml|ya?ml|cfg|ini|csv|tsv|log|xml|html?|css|[jt]sx?|go|rs|java|kt|c|h|cpp|cc|cs|rb"
    r"|php|swift|sh|sql|lock|ipynb|png|jpe?g|gif|webp)"
)
ELSEWHERE = ("~/", "../")
MOST_MENTIONS = 10
LONGEST_MENTION = 200


def constraints_in(text: str, language: str = DEFAULT_LANGUAGE) -> list[str]:
    """Returns the sentences that forbid something or narrow it down. A question does neither, a yes only says how far
    it goes, and "don't start yet" waits for the next message only. Of a sentence that is longer than a line only the
    clause that is an order by itself is taken: half of a description would say something else."""
    if not may_find("requests.forbids", text, language):
        return []
    plain = re.sub(CODE, lambda code: "x" * len(code[0]), text)
    beside = rf"(?i)^{joined('requests.joint', text, language)}[\s、,]*|{HANDED_OVER}"
    orders: list[str] = []
    for match in re.finditer(SENTENCE, plain):
        sentence = re.sub(beside, "", text[match.start() : match.end()].strip(" 、,\n"))
        forbids = search("requests.forbids", re.sub(beside, "", match[0].strip(" 、,")), language)
        if waits := search("requests.waits", sentence.rstrip(".。!！"), language):
            forbids = search("requests.forbids", sentence[: waits.start()], language)
        if forbids and not sentence.endswith(("?", "？")):
            order = sentence if len(sentence) <= LINE else _order(sentence, language)
            orders += [order.rstrip(".。!！")] if order else []
    return [] if orders and read_whole(text, language).plain_yes else orders[:MOST_CONSTRAINTS]


def _order(sentence: str, language: str) -> str:
    joint = rf"(?i)^{joined('requests.clause_joint', sentence, language)}\s+"
    clauses = (re.sub(joint, "", clause.strip()) for clause in re.split(r"[,;、，；]", sentence))
    return next((clause for clause in clauses if len(clause) <= LINE and _is_order(clause, language)), "")


def _is_order(clause: str, language: str) -> bool:
    if begins("requests.order", clause, language):
        return True
    return not clause.isascii() and search("requests.forbids", clause, language) is not None


class Mention(NamedTuple):
    """A mention: the paths that may be meant behind an `@`, the longest first."""

    paths: tuple[str, ...]

    @property
    def file_like(self) -> str:
        """Returns the path that is meant when none of them exists, if it looks like one; a decorator or a name does
        not."""
        return next((path for path in self.paths if re.fullmatch(FILE_LIKE, path) or path.startswith(ELSEWHERE)), "")


def mentions(text: str) -> list[Mention]:
    """Returns the mentions in the order of the text. Addresses and decorators are none, and neither is anything in
    code."""
    unique = dict.fromkeys(_found(re.sub(CODE, lambda code: " " * len(code[0]), text)))
    return list(unique)[:MOST_MENTIONS]


def _found(text: str) -> Iterator[Mention]:
    for match in re.finditer(MENTION, text):
        quoted, bare = match[1], match[2]
        yield Mention((quoted,)) if quoted else Mention(tuple(_paths(bare[:LONGEST_MENTION])))


def _paths(token: str) -> Iterator[str]:
    """Yields the whole word, then shorter ones without what may follow a path: not every language has spaces."""
    yield token
    path_end = re.compile(PATH_END)
    for length in range(len(token) - 1, 0, -1):
        if path_end.match(token, length):
            yield token[:length]
