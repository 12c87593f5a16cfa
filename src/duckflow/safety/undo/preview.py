"""What an undo, a redo or a turn changes: worked out before anything is done, and put into words and a diff."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from duckflow.safety.shown import shown
from duckflow.safety.text_diff import TextDiff, text_diff
from duckflow.safety.undo.fact import Fact
from duckflow.safety.undo.settings import MB
from duckflow.state.phrase import Phrase, say
from duckflow.state.question import FileImpact

NAMED = 5
LARGEST_COMPARED = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UndoPreview:
    """Which turn, what would happen to which file, and what is not part of it.

    `conflicts`: files that someone else changed since, so that they are not touched without a word. `maybe_yours`:
    what changed while a command ran and is not known to be the command's doing; it needs a yes of its own.
    `nothing_else`: that is all there is."""

    turn: int
    impacts: tuple[FileImpact, ...] = ()
    diff: str = ""
    not_covered: tuple[Phrase, ...] = ()
    conflicts: tuple[Phrase, ...] = ()
    maybe_yours: tuple[Phrase, ...] = ()
    nothing_else: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an undo or redo did, and what not."""

    turn: int
    changed: tuple[str, ...] = ()
    conflicts: tuple[Phrase, ...] = ()
    not_covered: tuple[Phrase, ...] = ()


class MoveFact(NamedTuple):
    """One path on its way from one state to another."""

    path: str
    old: Fact | None
    new: Fact | None


def name_some(key: str, names: Mapping[str, int]) -> Phrase:
    """`count` files, of which the first few places are named."""
    ordered = sorted(names, key=lambda name: (-names[name], name))
    listed = ", ".join(shown(name) for name in ordered[:NAMED])
    return say(f"undo.{key}", count=sum(names.values()), names=listed + (", …" if len(names) > NAMED else ""))


def left_out_of(moves: Iterable[MoveFact], largest_mb: int) -> dict[str, dict[str, int]]:
    """Files that cannot be brought back: `large`, `special` (pipes and such), `unkept` (not readable, or too much)."""
    listed = list(moves)
    # A file that was only moved can be moved back, however large it is.
    moved = {one.old.content for one in listed if one.old and one.old.elusive}
    moved &= {one.new.content for one in listed if one.new and one.new.elusive}
    found: dict[str, dict[str, int]] = {}
    for path, old, new in listed:
        unkept = [fact for fact in (old, new) if fact and not fact.kept and fact.content not in moved]
        for fact in unkept[:1]:
            large = "large" if fact.size > largest_mb * MB else "unkept"
            found.setdefault("special" if fact.kind == "special" else large, {})[path] = 1
    return found


def describe(
    moves: Sequence[MoveFact], content: Callable[[str], bytes | None], compared: int, lines: int
) -> tuple[tuple[FileImpact, ...], str]:
    """Impacts and a diff. Only the first `compared` files are compared line by line, and `lines` of it are shown."""
    renamed = _renamed(moves)
    close = {move.path for move in [move for move in moves if move.path not in renamed][:compared]}
    impacts: list[FileImpact] = []
    diff: list[str] = []
    for move in moves:
        found = _compare(move, content) if move.path in close else TextDiff()
        impacts.append(_impact(move, found, renamed))
        diff += _header(move, renamed) + list(found.lines)
    if len(diff) > lines:
        diff = [*diff[:lines], f"… +{len(diff) - lines}"]
    return tuple(impacts), "\n".join(diff)


def _compare(move: MoveFact, content: Callable[[str], bytes | None]) -> TextDiff:
    if move.old and move.new and move.old.content == move.new.content:
        return TextDiff()
    facts = [fact if fact and fact.blob and fact.size <= LARGEST_COMPARED else None for fact in (move.old, move.new)]
    old, new = (content(fact.blob) if fact else None for fact in facts)
    return TextDiff() if old is None and new is None else text_diff(old, new)


def _renamed(moves: Iterable[MoveFact]) -> dict[str, str]:
    """Both ends of files that only get another name, each with the other end."""
    listed = list(moves)
    gone = {move.old.content: move.path for move in listed if move.new is None and move.old and move.old.kind == "file"}
    found: dict[str, str] = {}
    for move in listed:
        if move.old is None and move.new and move.new.kind == "file" and move.new.size:
            source = gone.pop(move.new.content, None)
            if source is not None:
                found |= {source: move.path, move.path: source}
    return found


def _impact(move: MoveFact, found: TextDiff, renamed: dict[str, str]) -> FileImpact:
    name = shown(move.path)
    fact = move.new or move.old
    if fact and fact.kind == "folder":
        return FileImpact(path=f"{name}/", change="delete" if move.new is None else "folder")
    if move.new is None:
        return FileImpact(path=name, change="move" if move.path in renamed else "delete", removed=found.removed)
    return FileImpact(path=name, change="edit" if move.old else "create", added=found.added, removed=found.removed)


def _header(move: MoveFact, renamed: dict[str, str]) -> list[str]:
    """In git's words."""
    name, old, new = shown(move.path), move.old, move.new
    if move.path in renamed:
        return [f"rename from {name}", f"rename to {shown(renamed[move.path])}"] if new is None else []
    lines = [f"--- {_side('a', name, old)}", f"+++ {_side('b', name, new)}"]
    if old and new and old.kind == new.kind and old.mode != new.mode:
        lines += [f"old mode {old.mode:o}", f"new mode {new.mode:o}"]
    return lines


def _side(side: str, name: str, fact: Fact | None) -> str:
    if fact is None:
        return "/dev/null"
    ending = {"folder": "/", "link": f" → {shown(fact.content)}", "file": "", "special": " (special)"}[fact.kind]
    return f"{side}/{name}{ending}"
