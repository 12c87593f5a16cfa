"""Ties each hunk of a change to what was asked for: by the words of the request, the reasons of the calls that made it,
and the names that it shares with other hunks.

In doubt it says nothing: a hunk is named only if it is tied to nothing, and only where the request clearly fits some
other hunk."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from duckflow.i18n.language import words_of
from duckflow.proof.python_tests import TEST_AFFIX
from duckflow.safety.undo.undo import FileVersions
from duckflow.state.changes import Hunk

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
JAPANESE = re.compile(r"[\u3005\u30a1-\u30fa\u30fc-\u30fe\u3400-\u9fff]{2,}")
ENDINGS = ("ing", "ies", "ed", "es", "s", "e")
SHORTEST = 3
DEFINES = re.compile(
    r"\s*(?:export\s+|pub\s+|public\s+|static\s+|async\s+)*(?:def|class|function|func|fn|struct|impl|interface|trait|type)\s+(\w+)"
)
ASKED, ASKED_WITHOUT_REASON = 0.5, 0.05
"""A hunk counts as asked for when it has this share of the weight of the hunk that fits the request best. Where its
call gives no reason, far less is enough, because then only its lines speak for it."""
NAMES_OF_ONE_MATTER = 40.0
"""Rarity of shared names from which two hunks belong together."""
NEIGHBOUR = 0.4
"""Closeness of two groups of one file, or of a file and its tests, by that alone."""
MOST_HUNKS, MOST_SIGNS = 200, 4_000_000


Rarity = Callable[[str], float]
"""Says how rare a word or a name is in the changed files: 0 where every line holds it."""


class ChangingCall(NamedTuple):
    """A call that changed files: which files, with which text, and for which reason."""

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
    names: frozenset[str]
    reason: frozenset[str]


def unasked(changes: Sequence[FileVersions], hunks: Sequence[Hunk], record: Record) -> list[Hunk]:
    """Returns the hunks that are tied to nothing. Of a very large change it says nothing."""
    asked_words = _words(record.request)
    if JAPANESE.search(record.request) and not any(JAPANESE.search(call.why) for call in record.calls):
        # Reasons in another language than the request's cannot be compared with it.
        return []
    character_count = sum(len(change.before or b"") + len(change.after or b"") for change in changes)
    if len(hunks) > MOST_HUNKS or character_count > MOST_SIGNS:
        return []
    groups = _groups(changes, hunks, record.calls)
    words, names = _rarity(changes, _words), _rarity(changes, _names)
    weights = [sum(words(word) for word in asked_words & (group.words | group.reason)) for group in groups]
    best_weight = max(weights, default=0.0)
    if not best_weight:
        return []
    unnamed_groups = [
        group for group in groups if PurePosixPath(group.path).name not in record.request + record.failures
    ]
    loose_hunks = list[Hunk]()
    for group in unnamed_groups:
        ties = (weight * _tie(group, other, names) for other, weight in zip(groups, weights, strict=True))
        if max(ties) < best_weight * (ASKED if group.reason else ASKED_WITHOUT_REASON):
            loose_hunks += group.hunks
    return loose_hunks


def _tie(group: HunkGroup, other: HunkGroup, rarity: Rarity) -> float:
    """Says how closely two groups belong together, from 0 to 1."""
    if group is other:
        return 1.0
    name_tie = sum(rarity(name) for name in group.names & other.names) / NAMES_OF_ONE_MATTER
    reason_tie = len(group.reason & other.reason) / max(1, min(len(group.reason), len(other.reason)))
    neighbour_tie = NEIGHBOUR if _subject(group.path) == _subject(other.path) else 0.0
    return max(min(1.0, name_tie), reason_tie, neighbour_tie)


def _groups(changes: Sequence[FileVersions], hunks: Sequence[Hunk], calls: Sequence[ChangingCall]) -> list[HunkGroup]:
    """Groups hunks by file and reason. A hunk that no call has written was made by a program, a hook or a formatter,
    for the reason of the call that ran it."""
    texts = {change.path: change.new if change.after is not None else change.old for change in changes}
    hunks_by_reason = dict[tuple[str, str], list[Hunk]]()
    for hunk in hunks:
        if reasons := _reasons(hunk, calls):
            hunks_by_reason.setdefault((hunk.path, "\n".join(reasons)), []).append(hunk)
    groups = list[HunkGroup]()
    for (path, why), own_hunks in hunks_by_reason.items():
        text = "\n".join(line.text for hunk in own_hunks for line in hunk.changed())
        surrounding_names = {name for hunk in own_hunks for name in _around(hunk, texts[path].split("\n"))}
        words = _words("\n".join((text, path, *surrounding_names)))
        names = frozenset(_names(text)) | surrounding_names
        groups.append(HunkGroup(path, own_hunks, words, names, _words(why)))
    return groups


def _reasons(hunk: Hunk, calls: Sequence[ChangingCall]) -> list[str]:
    lines = {text for line in hunk.changed() if (text := line.text.strip())}
    own_calls = [call for call in calls if hunk.path in call.paths]
    writing_reasons = [call.why for call in own_calls if not lines.isdisjoint(map(str.strip, call.text.split("\n")))]
    return writing_reasons or [call.why for call in own_calls if not lines]


def _around(hunk: Hunk, lines: Sequence[str]) -> set[str]:
    """Returns the names of the definitions that hold the changed lines, by indentation."""
    changed_numbers = [line.new for line in hunk.changed() if line.new] or [hunk.new_start]
    return {name for number in {changed_numbers[0], changed_numbers[-1]} for name in _holding(lines, number)}


def _holding(lines: Sequence[str], number: int) -> Iterable[str]:
    depth = math.inf
    for line in reversed(lines[:number]):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent < depth:
            depth = indent
            if match := DEFINES.match(line):
                yield match[1]
        if not depth:
            return


def _rarity(changes: Sequence[FileVersions], parts: Callable[[str], Iterable[str]]) -> Rarity:
    lines = {line for change in changes for line in (*change.old.split("\n"), *change.new.split("\n"))}
    counts = Counter(part for line in lines for part in parts(line))
    return lambda part: math.log((len(lines) + 1) / (counts[part] + 1))


def _names(text: str) -> frozenset[str]:
    return frozenset(name for name in IDENTIFIER.findall(text) if _stem(name) not in _common())


def _words(text: str) -> frozenset[str]:
    """Returns the words of a text as stems, also those inside names, and pairs of Japanese characters, without common
    words that say nothing about the subject."""
    stems = {_stem(part) for part in PART.findall(text) if len(part) >= SHORTEST}
    pairs = {first + second for run in JAPANESE.findall(text) for first, second in pairwise(run)}
    return frozenset((stems | pairs) - _common())


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


def _subject(path: str) -> str:
    """Returns the name that a file shares with its tests."""
    return TEST_AFFIX.sub("", PurePosixPath(path).stem).strip("_").lower()
