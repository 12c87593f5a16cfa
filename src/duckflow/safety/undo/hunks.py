"""Hunks of a file's change: finds them, takes them back one by one, and applies them again."""

import hashlib
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from duckflow.state.changes import NO_NEWLINE, Hunk

if TYPE_CHECKING:
    from duckflow.safety.undo.undo import FileVersions

CONTEXT = 3
EXACTLY_COMPARED = 2000
"""The largest number of lines that are compared exactly. Longer texts are compared more roughly: many equal lines would
take minutes otherwise."""
ID_LENGTH = 12


def hunks_in(turn: int, job: str, versions: "Sequence[FileVersions]") -> list[Hunk]:
    """Returns the changes of all text files of some work; git's own files are left out."""
    texts = [
        file
        for file in versions
        if file.before != file.after and ".git" not in file.path.split("/") and b"\0" not in (file.before or b"")
        if b"\0" not in (file.after or b"")
    ]
    return [
        hunk
        for file in texts
        for hunk in hunks_of(
            turn, job, file.path, None if file.before is None else file.old, None if file.after is None else file.new
        )
    ]


def hunks_of(turn: int, job: str, path: str, before: str | None, after: str | None) -> list[Hunk]:
    """Returns the changes of a file; None on one side means that the file was made or deleted."""
    old, new = split_lines(before or ""), split_lines(after or "")
    matcher = SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > EXACTLY_COMPARED)
    hunks = list[Hunk]()
    for group in matcher.get_grouped_opcodes(CONTEXT):
        lines = list[str]()
        for kind, old_from, old_to, new_from, new_to in group:
            if kind == "equal":
                lines += _signed(" ", old[old_from:old_to])
            else:
                lines += _signed("-", old[old_from:old_to]) + _signed("+", new[new_from:new_to])
        text = "\n".join((f"{turn}/{job}/{path}", *lines))
        starts = [start + (stop > start) for start, stop in ((group[0][1], group[-1][2]), (group[0][3], group[-1][4]))]
        hunk_id = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_LENGTH]
        # Two equal changes of one file differ only in their places.
        hunk_id += f"-{sum(hunk.hunk_id.startswith(hunk_id) for hunk in hunks)}"
        whole = before is None or after is None
        hunks.append(
            Hunk(
                hunk_id=hunk_id,
                turn=turn,
                job=job,
                path=path,
                whole=whole,
                old_start=starts[0],
                new_start=starts[1],
                lines=tuple(lines),
            )
        )
    return hunks


def with_hunk(text: str, hunk: Hunk, back: bool) -> str | None:
    """Returns the text with the hunk taken back, or applied again; nothing where its lines are no longer there."""
    have, want = (hunk.after, hunk.before) if back else (hunk.before, hunk.after)
    lines, wanted = split_lines(text), split_lines(have)
    start = (hunk.new_start if back else hunk.old_start) - 1
    places = [place for place in range(len(lines) - len(wanted) + 1) if lines[place : place + len(wanted)] == wanted]
    if not wanted or not places:
        return None
    place = min(places, key=lambda place: abs(place - start))
    return "".join((*lines[:place], want, *lines[place + len(wanted) :]))


def _signed(sign: str, lines: Sequence[str]) -> list[str]:
    signed = list[str]()
    for line in lines:
        signed += [sign + line.removesuffix("\n")] if line.endswith("\n") else [sign + line, NO_NEWLINE]
    return signed


def split_lines(text: str) -> list[str]:
    """Splits a text into lines with their newlines; as in git, no other character ends a line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])
