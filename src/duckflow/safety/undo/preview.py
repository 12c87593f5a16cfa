"""Descriptions of what undo would do or has done, with a diff."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from duckflow.safety.path_names import shown, shown_line, shown_size
from duckflow.safety.undo.facts import Change, Fact, UndoWork
from duckflow.safety.undo.file_history import MOST_LINES
from duckflow.safety.undo.plan import UndoPlan, UndoStep
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.undo.tree import git_folder
from duckflow.state.changes import NO_NEWLINE, WorkAuthor
from duckflow.state.data import Phrase, say
from duckflow.state.question import FileImpact

ENCODINGS = ("utf-8-sig", "cp932", "euc_jp")
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class TextDiff(NamedTuple):
    """The counts of added and removed lines, and the lines of a unified diff without its header."""

    added: int = 0
    removed: int = 0
    lines: tuple[str, ...] = ()


def text_diff(old: bytes | None, new: bytes | None) -> TextDiff:
    """Compares the contents of a file before and after a change. None means that the file did not exist then."""
    old_text, new_text = _text(old or b""), _text(new or b"")
    if old_text is None or new_text is None:
        sizes = [shown_size(len(content)) if content is not None else "∅" for content in (old, new)]
        return TextDiff(0, 0, (f"@@ {' → '.join(sizes)} @@",))
    a, b = _lines(old_text, new_text), _lines(new_text, old_text)
    if len(a) + len(b) > MOST_LINES:
        added_count, removed_count = (Counter(b) - Counter(a)).total(), (Counter(a) - Counter(b)).total()
        return TextDiff(added_count, removed_count, (f"@@ +{added_count} −{removed_count} @@",))
    lines = list(difflib.unified_diff(a, b, lineterm=""))[2:]
    added_count = sum(line.startswith("+") for line in lines)
    removed_count = sum(line.startswith("-") for line in lines)
    return TextDiff(added_count, removed_count, tuple(shown_line(part) for line in lines for part in line.split("\n")))


def _text(data: bytes) -> str | None:
    """Decodes a text; returns None for data that are no text."""
    if b"\0" in data and not data.startswith(UTF_16_MARKS):
        return None
    for encoding in ("utf-16",) if data.startswith(UTF_16_MARKS) else ENCODINGS:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return None


def _lines(text: str, other: str) -> list[str]:
    """Splits a text into lines; line ends are shown only where the two texts differ in them."""
    if all(version.count("\n") == version.count("\r\n") for version in (text, other)):
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]}\n{NO_NEWLINE}"]


NAMED = 5
REFERENCE = re.compile(r"(?:^|/)\.git/(?:.*/)?(?:HEAD|packed-refs|refs/(?!.*/$).+)$")
LARGEST_COMPARED = 1024 * 1024
Content = Callable[[str], bytes | None]


def name_some(key: str, names: Mapping[str, int]) -> Phrase:
    """Returns a phrase with the number of files and the names of the first few places."""
    ordered_names = sorted(names, key=lambda name: (-names[name], name))
    listed_names = ", ".join(shown(name) for name in ordered_names[:NAMED])
    return say(f"undo.{key}", count=sum(names.values()), names=listed_names + (", …" if len(names) > NAMED else ""))


def describe(moves: Sequence[Change], content: Content, settings: UndoSettings) -> tuple[tuple[FileImpact, ...], str]:
    """Returns the impact on each file, and a diff. Only the first files are compared line by line, and the number of
    lines is limited. Git's own files are one impact; the diff shows HEAD and the branches."""
    folders = dict.fromkeys(folder for move in moves if (folder := git_folder(move.path)))
    moves = [move for move in moves if not git_folder(move.path) or REFERENCE.search(move.path)]
    new_names = _renamed([move for move in moves if not git_folder(move.path)])
    compared_paths = {
        move.path for move in [move for move in moves if move.path not in new_names][: settings.compared_files]
    }
    impacts = [FileImpact(path=shown(folder), change="edit") for folder in folders]
    diff: list[str] = []
    for move in moves:
        move_diff = _compare(move, content) if move.path in compared_paths else TextDiff()
        if not git_folder(move.path):
            impacts.append(_impact(move, move_diff, new_names))
        diff += _header(move, new_names) + list(move_diff.lines)
    if (hidden_lines := len(diff) - settings.diff_lines) > 0:
        diff = [*diff[: settings.diff_lines], f"… +{hidden_lines}"]
    return tuple(impacts), "\n".join(diff)


def _compare(move: Change, content: Content) -> TextDiff:
    old_fact, new_fact = move.before, move.after
    if old_fact and new_fact and old_fact.content == new_fact.content:
        return TextDiff()
    blobs = (fact.blob if fact and fact.size <= LARGEST_COMPARED else "" for fact in (old_fact, new_fact))
    return text_diff(*(content(blob) if blob else None for blob in blobs))


def _renamed(moves: Sequence[Change]) -> dict[str, str]:
    """Returns a mapping of names for renamed files: from the old name to the new one, and back."""
    removed_files = {
        move.before.content: move.path
        for move in moves
        if move.before and not move.after and move.before.kind == "file"
    }
    other_ends: dict[str, str] = {}
    for move in moves:
        new_file = (
            move.after if not move.before and move.after and move.after.kind == "file" and move.after.size else None
        )
        if new_file and (source := removed_files.pop(new_file.content, None)):
            other_ends |= {source: move.path, move.path: source}
    return other_ends


def _impact(move: Change, compared: TextDiff, renamed: dict[str, str]) -> FileImpact:
    name = shown(move.path)
    fact = move.after or move.before
    if fact and fact.kind == "folder":
        return FileImpact(path=f"{name}/", change="delete" if move.after is None else "folder")
    if move.after is None:
        return FileImpact(path=name, change="move" if move.path in renamed else "delete", removed=compared.removed)
    return FileImpact(
        path=name, change="edit" if move.before else "create", added=compared.added, removed=compared.removed
    )


def _header(move: Change, renamed: dict[str, str]) -> list[str]:
    """Returns the lines above a file's diff, in git's format."""
    name, old_fact, new_fact = shown(move.path), move.before, move.after
    if move.path in renamed:
        return [f"rename from {name}", f"rename to {shown(renamed[move.path])}"] if new_fact is None else []
    lines = [f"--- {_side('a', name, old_fact)}", f"+++ {_side('b', name, new_fact)}"]
    if old_fact and new_fact and old_fact.kind == new_fact.kind and old_fact.mode != new_fact.mode:
        lines += [f"old mode {old_fact.mode:o}", f"new mode {new_fact.mode:o}"]
    return lines


def _side(side: str, name: str, fact: Fact | None) -> str:
    if fact is None:
        return "/dev/null"
    name_ending = {"folder": "/", "link": f" → {shown(fact.content)}", "file": "", "special": " (special)"}[fact.kind]
    return f"{side}/{name}{name_ending}"


def name_held(turn: int, paths: Mapping[str, int]) -> Phrase:
    names = ", ".join(map(shown, sorted(paths)[:NAMED])) + (", …" if len(paths) > NAMED else "")
    return say("undo.held", turn=turn, names=names)


def all_left_out(
    works: Iterable[UndoWork], planned: UndoPlan, new_names: Mapping[str, str], forgotten_turn: int
) -> list[Phrase]:
    """Returns phrases about what the undo sets aside, each with its new name, and about what it does not cover."""
    kinds = dict[str, dict[str, int]]()
    for work in works:
        for kind, names in work.left_out.items():
            kinds[kind] = kinds.get(kind, {}) | names
    phrases = [say("undo.set_aside", path=shown(path), name=shown(name)) for path, name in new_names.items()]
    phrases += [name_some(kind, names) for kind, names in sorted(kinds.items())]
    listed_names = {name for names in kinds.values() for name in names}
    if impossible_steps := [step for step in planned.impossible if step.path not in listed_names]:
        phrases.append(name_some("impossible", names_of(impossible_steps)))
    if forgotten_turn:
        phrases.append(say("undo.forgotten", turn=forgotten_turn))
    return phrases


def name_conflicts(planned: UndoPlan) -> tuple[Phrase, ...]:
    shared_paths = names_of(step for step in planned.conflicts if step.shared)
    return tuple(
        say("undo.shared" if path in shared_paths else "undo.conflict", path=shown(path))
        for path in names_of(planned.conflicts)
    )


def names_of(steps: Iterable[UndoStep]) -> dict[str, int]:
    """Returns the paths of the steps; git's own files are named by their `.git` alone."""
    return {git_folder(step.path) or step.path: 1 for step in steps}


def undone_authors(
    works: Sequence[UndoWork], paths: Sequence[str]
) -> tuple[tuple[WorkAuthor, ...], tuple[WorkAuthor, ...]]:
    """Returns the authors of whose changes of these paths the latest undo has undone any, and those of whose changes
    nothing is left."""
    number = max((change.undone for work in works for change in work.changes), default=0)
    undone_works = [
        work for work in works if any(change.undone == number and change.path in paths for change in work.changes)
    ]
    emptied_works = [work for work in undone_works if all(change.undone for change in work.changes)]
    return tuple(work.author for work in undone_works), tuple(work.author for work in emptied_works)
