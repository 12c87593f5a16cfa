"""Ties each hunk of a change to what was asked for: by words that it shares with the request, or with other hunks that
share words with the request.

A hunk is reported only if it is tied to nothing, and only if the request clearly fits another hunk."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from duckflow.i18n.words import words_of
from duckflow.safety.undo.facts import FileVersions
from duckflow.state.changes import Hunk

NAME = re.compile(r"\w*[A-Za-z0-9]_[A-Za-z0-9]\w*|\w*[a-z][A-Z]\w*")
"""A pattern for a name of several words, because such a name hardly stands for two different matters."""
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
JAPANESE = re.compile(r"[\u3005\u30a1-\u30fa\u30fc-\u30fe\u3400-\u9fff]{2,}")
ENDINGS = ("ing", "ies", "ed", "es", "s", "e")
SHORTEST = 3
DEFINES = re.compile(
    r"\s*(?:export\s+|pub\s+|public\s+|static\s+|async\s+)*(?:def|class|function|func|fn|struct|impl|interface|trait|type)\s+(\w+)"
)
ASKED, ASKED_WITHOUT_REASON = 0.75, 0.05
"""A hunk counts as asked for if its weight reaches this share of the best hunk's weight. The weight counts words of the
request that are in the hunk, and in the hunk that it is tied to most. The second share is for a hunk whose call gives
no reason, because then only its lines count."""
WORDS_OF_ONE_MATTER = 40.0
"""Words that two hunks share tie them fully if the rarities of these words add up to this sum."""
NAME_TIE, RARE = 0.75, 5.0
"""The first figure says how closely a rare name ties two hunks that share it. A name is rare if its rarity is above the
second figure: fewer than one line of 150 contains it."""
MOST_HUNKS, MOST_SIGNS = 200, 4_000_000


Rarity = Callable[[str], float]
"""A function that says how rare a word or a name is in the changed files: 0 if every line contains it."""


class ChangingCall(NamedTuple):
    """A call that changed files, with the files, the written text, and the reason that the model gave."""

    paths: tuple[str, ...]
    text: str
    why: str


class Record(NamedTuple):
    """The words of the user and of the plan, the calls that changed files, and the output of failing checks."""

    request: str
    calls: Sequence[ChangingCall]
    failures: str = ""


class HunkGroup(NamedTuple):
    """The hunks of a file that were made for the same reason."""

    path: str
    hunks: list[Hunk]
    words: frozenset[str]
    """The words of the changed lines, of the definitions around them, of the path and of the reason."""
    names: frozenset[str]
    """The names in the changed lines and in the reason."""
    reason: frozenset[str]


def unasked(changes: Sequence[FileVersions], hunks: Sequence[Hunk], record: Record) -> list[Hunk]:
    """Returns the hunks that are tied to the request neither directly nor through another hunk; none for a very large
    change."""
    if JAPANESE.search(record.request) and not any(JAPANESE.search(call.why) for call in record.calls):
        # Reasons in another language than the request's cannot be compared with it.
        return []
    character_count = sum(len(change.before or b"") + len(change.after or b"") for change in changes)
    if len(hunks) > MOST_HUNKS or character_count > MOST_SIGNS:
        return []
    groups = _groups(changes, hunks, record.calls)
    rarity = _rarity(changes)
    asked_words = _words(record.request)
    weights = [sum(map(rarity, asked_words & group.words)) for group in groups]
    best_weight = max(weights, default=0.0)
    if not best_weight:
        return []
    loose_hunks = list[Hunk]()
    for group, weight in zip(groups, weights, strict=True):
        ties = (other_weight * _tie(group, other, rarity) for other, other_weight in zip(groups, weights, strict=True))
        needed_weight = best_weight * (ASKED if group.reason else ASKED_WITHOUT_REASON)
        is_named = PurePosixPath(group.path).name in record.request + record.failures
        if not is_named and weight + max(ties) < needed_weight:
            loose_hunks += group.hunks
    return loose_hunks


def _tie(group: HunkGroup, other: HunkGroup, rarity: Rarity) -> float:
    """Returns from 0 to 1 how closely two groups of hunks belong together. They are tied by words that their reasons
    share, by words of one group's reason that the other group contains, or by a rare name in both."""
    if group is other:
        return 0.0
    reason_tie = len(group.reason & other.reason) / max(1, min(len(group.reason), len(other.reason)))
    shared_words = (group.reason or group.words) & other.words, (other.reason or other.words) & group.words
    word_tie = max(sum(map(rarity, words)) for words in shared_words) / WORDS_OF_ONE_MATTER
    name_tie = NAME_TIE if any(rarity(name) > RARE for name in group.names & other.names) else 0.0
    return max(reason_tie, min(1.0, word_tie), name_tie)


def _groups(changes: Sequence[FileVersions], hunks: Sequence[Hunk], calls: Sequence[ChangingCall]) -> list[HunkGroup]:
    """Groups hunks by file and reason. If no call wrote a hunk, a program, a hook or a formatter made it; its reason is
    then that of the call that ran this program."""
    texts = {change.path: change.new if change.after is not None else change.old for change in changes}
    hunks_by_reason = dict[tuple[str, str], list[Hunk]]()
    for hunk in hunks:
        if reasons := _reasons(hunk, calls):
            hunks_by_reason.setdefault((hunk.path, "\n".join(reasons)), []).append(hunk)
    groups = list[HunkGroup]()
    for (path, why_text), own_hunks in hunks_by_reason.items():
        text = "\n".join(line.text for hunk in own_hunks for line in hunk.changed())
        names_around = {name for hunk in own_hunks for name in _around(hunk, texts[path].split("\n"))}
        reason, names = _words(why_text), frozenset(NAME.findall(f"{text}\n{why_text}"))
        groups.append(
            HunkGroup(path, own_hunks, _words("\n".join((text, path, *names_around))) | reason, names, reason)
        )
    return groups


def _reasons(hunk: Hunk, calls: Sequence[ChangingCall]) -> list[str]:
    lines = {text for line in hunk.changed() if (text := line.text.strip())}
    own_calls = [call for call in calls if hunk.path in call.paths]
    writing_reasons = [call.why for call in own_calls if not lines.isdisjoint(map(str.strip, call.text.split("\n")))]
    return writing_reasons or [call.why for call in own_calls if not lines]


def _around(hunk: Hunk, lines: Sequence[str]) -> set[str]:
    """Returns the names of the functions and classes around the changed lines, found by their indentation."""
    changed_numbers = [line.new for line in hunk.changed() if line.new] or [hunk.new_start]
    return {name for number in {changed_numbers[0], changed_numbers[-1]} for name in _holding(lines, number)}


def _holding(lines: Sequence[str], number: int) -> Iterable[str]:
    least_indent = math.inf
    for line in reversed(lines[:number]):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent < least_indent:
            least_indent = indent
            if match := DEFINES.match(line):
                yield match[1]
        if not least_indent:
            return


def _rarity(changes: Sequence[FileVersions]) -> Rarity:
    lines = {line for change in changes for line in (*change.old.split("\n"), *change.new.split("\n"))}
    word_counts = Counter(part for line in lines for part in _words(line) | set(NAME.findall(line)))
    return lambda part: math.log((len(lines) + 1) / (word_counts[part] + 1))


def _words(text: str) -> frozenset[str]:
    """Returns the words of a text as stems, also those inside names, and pairs of Japanese characters, without common
    words that say nothing about the subject."""
    stems = {_stem(part) for part in PART.findall(text) if len(part) >= SHORTEST}
    character_pairs = {first + second for run in JAPANESE.findall(text) for first, second in pairwise(run)}
    return frozenset((stems | character_pairs) - _common())


@cache
def _common() -> frozenset[str]:
    return frozenset(map(_stem, words_of("proof.common")))


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    lowered_word = word.lower()
    ending = next(
        (suffix for suffix in ENDINGS if lowered_word.endswith(suffix) and len(lowered_word) - len(suffix) >= SHORTEST),
        "",
    )
    return lowered_word.removesuffix(ending) + ("y" if ending == "ies" else "")
