"""How well changes that nobody asked for are found, on real commits with hunks of another commit mixed in.

    python -m benchmarks.proof_asked FOLDER_OF_GIT_DIRECTORIES [--repositories a,b] [--commits 40] [--bare]

A commit stands for a turn: its first line is the user's request, each of its hunks an edit whose reason is the sentence
of the rest of its message that fits the hunk best. Up to three hunks of the seventh newer commit are mixed in, as edits
whose reasons come from the rest of *its* message in the same way. Commits are taken from the newest on: no merges, no
robots, something else than documents, at most 400 lines and 15 files, and a rest of the message with a sentence. One
that other commits have word for word was written by a program and says nothing of a change.
`--bare`: the request is the whole message, no reason says anything, and commits without such a rest are taken too."""

import argparse
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from benchmarks.proof import blob, git
from duckflow.proof.asked import ChangingCall, Record, unasked
from duckflow.safety.undo.facts import FileVersions
from duckflow.state.changes import Hunk, hunks_of, with_hunk

LOOKED_AT, MOST_LINES, MOST_FILES, MIXED_IN, APART = 1500, 400, 15, 3, 7
DOCUMENT = re.compile(r".*\.(?:md|rst|txt|ya?ml|toml|cfg|lock|in)")
TRAILER = re.compile(r"[A-Z][\w-]+-[Bb]y:|Change-Id:|git-svn-id|---")
SENTENCE = re.compile(r"(?:[A-Za-z]{3,}\W+){3}[A-Za-z]{3,}")
Signature = tuple[str, tuple[str, ...]]


class Commit(NamedTuple):
    """A commit that can stand for a turn."""

    name: str
    first: str
    sentences: tuple[str, ...]
    paths: tuple[str, ...]


class Mixed(NamedTuple):
    """A commit with foreign hunks in it. `foreign`: by hunk; nothing where own and foreign lines have become one."""

    own: Commit
    other: Commit
    changes: list[FileVersions]
    hunks: list[Hunk]
    foreign: list[bool | None]


def commits(repository: Path, bare: bool) -> Iterator[Commit]:
    form = "--format=%x00%H%x02%x03%an%x02%x03%B%x02%x03"
    log = git(repository, "log", "--no-merges", f"-{LOOKED_AT}", form, "--numstat", "HEAD").decode("utf-8", "replace")
    for part in log.split("\0")[1:]:
        name, author, message, rows = part.split("\2\3")
        changed = [row.split("\t") for row in rows.split("\n") if row.count("\t") == 2]
        paths = tuple(path for _, _, path in changed)
        if "bot" in author.lower() or not 0 < len(paths) <= MOST_FILES or all(map(DOCUMENT.fullmatch, paths)):
            continue
        if any("=>" in path for path in paths) or not all(added.isdecimal() for added, _, _ in changed):
            continue
        if sum(int(added) + int(removed) for added, removed, _ in changed) > MOST_LINES:
            continue
        first, *rest = [line for line in message.strip().split("\n") if not TRAILER.match(line)] or [""]
        sentences = tuple(_sentences("\n".join(rest)))
        if sentences or (bare and SENTENCE.search(message)):
            yield Commit(name, first, sentences, paths)


def _sentences(text: str) -> Iterator[str]:
    for part in re.split(r"\n\s*\n|\n\s*[-*] ", re.sub(r"https?://\S+|#\d+", "", text)):
        for sentence in re.split(r"(?<=[.!?])\s+", " ".join(part.split())):
            if SENTENCE.search(sentence):
                yield sentence


def versions(repository: Path, commit: Commit) -> list[FileVersions]:
    return [
        FileVersions(path, blob(repository, f"{commit.name}^", path), blob(repository, commit.name, path))
        for path in commit.paths
    ]


def hunks(change: FileVersions) -> list[Hunk]:
    old, new = change.before is not None, change.after is not None
    return hunks_of(1, "", change.path, change.old if old else None, change.new if new else None)


def signature(hunk: Hunk) -> Signature:
    return hunk.path, tuple(line for line in hunk.lines if line[:1] in "+-")


def mixed(repository: Path, own: Commit, other: Commit) -> Mixed | None:
    """Puts hunks of the other commit into the files as the own one leaves them; nothing where none fits."""
    changes = {change.path: change for change in versions(repository, own)}
    theirs = versions(repository, other)
    if any(b"\0" in (data or b"") for change in (*changes.values(), *theirs) for data in change[1:]):
        return None
    ours = {signature(hunk) for change in changes.values() for hunk in hunks(change)}
    foreign = [hunk for change in theirs for hunk in hunks(change)]
    put_in = set[Signature]()
    for hunk in foreign[:: max(1, len(foreign) // MIXED_IN)][:MIXED_IN]:
        there = changes[hunk.path].after if hunk.path in changes else blob(repository, own.name, hunk.path)
        if hunk.whole:
            text = hunk.after if there is None and hunk.path not in changes and not hunk.before else None
        else:
            text = with_hunk(there.decode("utf-8", "replace"), hunk, back=False) if there is not None else None
        if text is not None:
            before = changes[hunk.path].before if hunk.path in changes else there
            changes[hunk.path] = FileVersions(hunk.path, before, text.encode())
            put_in.add(signature(hunk))
    if not put_in:
        return None
    all_hunks = [hunk for change in changes.values() for hunk in hunks(change)]
    labels = [signature(hunk) in put_in if signature(hunk) in put_in | ours else None for hunk in all_hunks]
    return Mixed(own, other, list(changes.values()), all_hunks, labels)


def record_of(case: Mixed, bare: bool) -> Record:
    calls = [
        ChangingCall((hunk.path,), "\n".join(signature(hunk)[1]).replace("\n+", "\n").replace("\n-", "\n")[1:], why)
        for hunk, foreign in zip(case.hunks, case.foreign, strict=True)
        for why in ["" if bare else _reason(hunk, case.other if foreign else case.own)]
    ]
    own = case.own
    return Record("\n".join((own.first, *own.sentences)) if bare else own.first, calls)


def _reason(hunk: Hunk, commit: Commit) -> str:
    words = set(re.findall(r"[a-z]{3,}", "\n".join(signature(hunk)[1]).lower()))
    return max(commit.sentences, key=lambda sentence: len(words & set(re.findall(r"[a-z]{3,}", sentence.lower()))))


def cases(repository: Path, wanted: int, bare: bool) -> Iterator[Mixed]:
    every = list(commits(repository, bare))
    often = Counter(sentence for commit in every for sentence in set(commit.sentences))
    own = [tuple(sentence for sentence in commit.sentences if often[sentence] == 1) for commit in every]
    listed = [commit._replace(sentences=left) for commit, left in zip(every, own, strict=True) if left or bare]
    made = (mixed(repository, listed[at], listed[at - APART]) for at in range(APART, len(listed), 2))
    return islice(filter(None, made), wanted)


def count(case: Mixed, bare: bool) -> Counter[str]:
    named = {hunk.hunk_id + hunk.path for hunk in unasked(case.changes, case.hunks, record_of(case, bare))}
    counts = Counter[str](commits=1)
    for hunk, foreign in zip(case.hunks, case.foreign, strict=True):
        if foreign is not None:
            kind = "foreign" if foreign else "own"
            counts[kind] += 1
            counts[f"{kind} named"] += hunk.hunk_id + hunk.path in named
    return counts


def share(counts: Counter[str], kind: str) -> float:
    return round(100 * counts[f"{kind} named"] / counts[kind], 1) if counts[kind] else 0.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repositories", default="")
    parser.add_argument("--commits", type=int, default=40)
    parser.add_argument("--bare", action="store_true")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    names: list[str] = options.repositories.split(",") if options.repositories else sorted(os.listdir(folder))
    total = Counter[str]()
    for name in names:
        try:
            counts = sum(
                (count(case, options.bare) for case in cases(folder / name / "repo", options.commits, options.bare)),
                Counter[str](),
            )
        except (subprocess.CalledProcessError, OSError) as problem:
            print(name, problem)
            continue
        total += counts
        found, named = share(counts, "foreign"), share(counts, "own")
        print(f"{name:36} {counts['commits']:4} commits, found {found} %, own named {named} %", flush=True)
    print(dict(total))
    print(f"foreign hunks found {share(total, 'foreign')} %, own hunks called foreign {share(total, 'own')} %")


if __name__ == "__main__":
    main()
