"""Changes of files, put into impacts and a diff."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from duckflow.safety.shown import shown
from duckflow.safety.undo.fact import Fact
from duckflow.safety.undo.site import Site
from duckflow.safety.undo.text_diff import TextDiff, text_diff
from duckflow.state.question import FileImpact

LARGEST_COMPARED = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MoveFact:
    """One path on its way from one state to another."""

    path: str
    old: Fact | None
    new: Fact | None


class Describer:
    """Puts changes into impacts and a diff. Only the first files are compared line by line."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def describe(self, moves: Sequence[MoveFact]) -> tuple[tuple[FileImpact, ...], str]:
        renamed = _renamed(moves)
        compared = [move for move in moves if move.path not in renamed][: self._site.settings.compared_files]
        paths = {move.path for move in compared}
        contents = self._contents(compared)
        impacts: list[FileImpact] = []
        lines: list[str] = []
        for move in moves:
            found = self._compare(move, contents) if move.path in paths else TextDiff(0, 0, ())
            impacts.append(_impact(move, found, renamed))
            lines += _header(move, renamed) + list(found.lines)
        limit = self._site.settings.diff_lines
        if len(lines) > limit:
            lines = [*lines[:limit], f"… +{len(lines) - limit}"]
        return tuple(impacts), "\n".join(lines)

    def _contents(self, moves: Iterable[MoveFact]) -> dict[str, bytes]:
        facts = [fact for move in moves for fact in (move.old, move.new)]
        return self._site.vault.contents(fact.blob for fact in facts if fact and fact.size <= LARGEST_COMPARED)

    def _compare(self, move: MoveFact, contents: dict[str, bytes]) -> TextDiff:
        if move.old and move.new and move.old.content == move.new.content:
            return TextDiff(0, 0, ())
        old, new = (self._content(move.path, fact, contents) for fact in (move.old, move.new))
        if old is None and new is None:
            return TextDiff(0, 0, ())
        return text_diff(old, new)

    def _content(self, path: str, fact: Fact | None, contents: dict[str, bytes]) -> bytes | None:
        if fact is None or not fact.blob or fact.size > LARGEST_COMPARED:
            return None
        if fact.blob in contents:
            return contents[fact.blob]
        read = self._site.tree.read(path)
        return read[1] if read and read[0].fact.blob == fact.blob else None


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
