"""The limits of a search in the archive, and its hits: which hits a message refers to, and how hits are quoted."""

import re
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.terms import FILLER_WEIGHT, telling, terms
from duckflow.i18n.words import search
from duckflow.memory.tokens import clip, estimate
from duckflow.state.message import Message
from duckflow.store.older import older_words

Row = tuple[int, str, str, str, str, float, str]
"""Fields of a row: length in bytes, message id, session, role, operation, time, text."""


class Reach(NamedTuple):
    """Limits of a search: how many messages are looked at in all, and how many for each word. Rare words and late
    messages come first."""

    places: int
    of_a_word: int
    neighbours: bool = True
    """True if messages near a hit are found, too, since an answer stands near its question."""


WIDE = Reach(3000, 800)
NEAR = Reach(800, 200)
"""The reach of the automatic search in every turn: it costs the same in a long session as in a short one."""
ITSELF = WIDE._replace(neighbours=False)


class ArchiveHit(NamedTuple):
    """A message from the archive."""

    number: int
    message_id: str
    session: str
    role: str
    operation: str
    at: float
    text: str
    share: float = 0.0
    """The share of the question that this message answers, from 0 to about 1."""


CLEAR_SHARE = 0.45
"""If the user did not refer to the past, only a message that answers at least this share of the question is shown."""
IN_COMMON = 3
REFERRED_SHARE = 0.15
LEAST_TOKENS = 30


def of_turn(question: str, messages: Iterable[Message], session: str) -> list[ArchiveHit]:
    """Returns the messages of the turn that a question such as `conversation:3` refers to; an empty list for other
    questions."""
    turn_match = re.fullmatch(r"\s*conversation:(\d+)\s*", question)
    turn_messages = (
        message
        for message in messages
        if turn_match and message.turn == int(turn_match[1]) and message.role != "system"
    )
    return [
        ArchiveHit(0, message.message_id, session, message.role, message.operation, message.at, message.whole, 1.0)
        for message in turn_messages
    ]


def select_relevant(
    hits: Iterable[ArchiveHit], question: str, session: str, language: str = DEFAULT_LANGUAGE
) -> list[ArchiveHit]:
    """Returns the hits that the question refers to. A word or two in common are not enough: `run the tests` does not
    refer to everybody who mentioned tests. From other sessions, the same request and changes of files are left out,
    since the present content of a file is on the disk."""
    if search("memory.refers", question, language):
        return [hit for hit in hits if hit.share >= REFERRED_SHARE]
    question_terms = {term for term in terms(question) if telling(term) > FILLER_WEIGHT}
    current_hits = (hit for hit in hits if hit.session == session or not _is_stale(hit, question))
    clear_hits = (hit for hit in current_hits if hit.share >= CLEAR_SHARE)
    return [hit for hit in clear_hits if len(question_terms & terms(hit.text)) >= IN_COMMON]


def _is_stale(hit: ArchiveHit, question: str) -> bool:
    return hit.operation.startswith("file_ops.") or hit.text == question


def quote_hits(hits: Sequence[ArchiveHit], tokens: float) -> str:
    """Quotes each hit with its speaker and date; the best hit gets the most room."""
    lines: list[str] = []
    for index, hit in enumerate(hits):
        line_tokens = tokens / (len(hits) - index) if index else tokens / 2
        speaker = hit.operation or hit.role
        prefix = f"> [{speaker}, {time.strftime('%Y-%m-%d', time.localtime(hit.at))}] "
        text = " ".join(older_words(hit.role, hit.text).split())
        line = prefix + " ".join(clip(text, max(line_tokens - estimate(prefix), LEAST_TOKENS)).split())
        cost = estimate(line) + 1
        if cost > tokens:
            break
        tokens -= cost
        lines.append(line)
    return "\n".join(lines)
