"""What was found in the archive, quoted within a small budget; and whether a message refers to it at all."""

import re
import time
from collections.abc import Iterable, Sequence

from duckflow import DEFAULT_LANGUAGE
from duckflow.i18n.language import search
from duckflow.memory.archive_hit import ArchiveHit
from duckflow.memory.terms import FILLER_WEIGHT, telling, terms
from duckflow.memory.tokens import clip, estimate
from duckflow.state.message import Message
from duckflow.store.older import older_words

CLEAR_SHARE = 0.45
"""A message that holds so much of what is asked for is shown without being referred to."""
IN_COMMON = 3
REFERRED_SHARE = 0.15
LEAST_TOKENS = 30


def of_turn(question: str, messages: Iterable[Message], session: str) -> list[ArchiveHit]:
    """What was said in the turn that is referred to as `conversation:3`; nothing for other questions."""
    wanted = re.fullmatch(r"\s*conversation:(\d+)\s*", question)
    said = (one for one in messages if wanted and one.turn == int(wanted[1]) and one.role != "system")
    return [ArchiveHit(0, one.message_id, session, one.role, one.operation, one.at, one.whole, 1.0) for one in said]


def select_relevant(
    found: Iterable[ArchiveHit], question: str, session: str, language: str = DEFAULT_LANGUAGE
) -> list[ArchiveHit]:
    """Those that the question refers to. A word or two in common are no sign of it: `run the tests` says nothing of
    whoever spoke of tests before. Nor does another session tell anything by the same request, or by what it did to a
    file: what that holds now is on the disk."""
    if search("memory.refers", question, language):
        return [one for one in found if one.share >= REFERRED_SHARE]
    asked = {term for term in terms(question) if telling(term) > FILLER_WEIGHT}
    current = (one for one in found if one.session == session or not _is_stale(one, question))
    clear = (one for one in current if one.share >= CLEAR_SHARE)
    return [one for one in clear if len(asked & terms(one.text)) >= IN_COMMON]


def _is_stale(one: ArchiveHit, question: str) -> bool:
    return one.operation.startswith("file_ops.") or one.text == question


def quote_hits(found: Sequence[ArchiveHit], tokens: float) -> str:
    """Each as a quotation with who said it and when, the best with the most room."""
    lines: list[str] = []
    for place, one in enumerate(found):
        room = tokens / (len(found) - place) if place else tokens / 2
        who = one.operation or one.role
        head = f"> [{who}, {time.strftime('%Y-%m-%d', time.localtime(one.at))}] "
        text = " ".join(older_words(one.role, one.text).split())
        line = head + " ".join(clip(text, max(room - estimate(head), LEAST_TOKENS)).split())
        cost = estimate(line) + 1
        if cost > tokens:
            break
        tokens -= cost
        lines.append(line)
    return "\n".join(lines)
