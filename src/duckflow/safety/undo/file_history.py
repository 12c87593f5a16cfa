"""The history of a file: of its path, its mode and each of its lines. One change can be taken out of it while later
ones stay, and done again."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from duckflow.safety.undo.facts import Change, ChangeKey, Fact
from duckflow.safety.undo.ledger import Contents, content_id
from duckflow.safety.undo.tree import same_index

MOST_LINES = 20_000
"""The largest number of lines that are compared; more would take too long."""
NOBODY = 0


class Version(NamedTuple):
    """A change of the text, with its number and the number of the undo that took it back (0 for none)."""

    before: bytes
    after: bytes
    number: int
    undone: int


@dataclass(slots=True)
class HistoryLine:
    """A line of a text. It keeps its place in the history after it was removed. `made` and `removed` are numbers of
    changes."""

    text: bytes
    made: int = NOBODY
    removed: set[int] = field(default_factory=set[int])

    def stands(self, gone: Collection[int]) -> bool:
        return self.made not in gone and all(number in gone for number in self.removed)

    def belongs_to(self, number: int) -> bool:
        return number == self.made or number in self.removed

    def taken_over(self, number: int, gone: Collection[int]) -> bool:
        """Says whether a line of this change (made or removed by it) was also removed by another change that was not
        taken back."""
        return self.belongs_to(number) and any(other != number and other not in gone for other in self.removed)


class LineHistory:
    """The history of each line of a text, through all changes in their order up to the text as it is now."""

    def __init__(self, versions: Sequence[Version], now: bytes, gone: Collection[int]) -> None:
        """`gone` lists the changes (by number) that the present text does not contain."""
        self._lines = [HistoryLine(text) for text in _split(versions[0].before)]
        self._gone = gone
        for version in versions:
            undone_numbers = {
                earlier_version.number
                for earlier_version in versions
                if earlier_version.undone and earlier_version.undone < version.number
            }
            self._go_on(version.before, NOBODY, undone_numbers)
            self._go_on(version.after, version.number, undone_numbers)
        self._go_on(now, NOBODY, gone)

    def without(self, number: int) -> bytes | None:
        """Returns the text without a change, or None where another change has removed lines of that change."""
        return self._text(number, {*self._gone, number})

    def with_again(self, number: int) -> bytes | None:
        return self._text(number, {other_number for other_number in self._gone if other_number != number})

    def _text(self, number: int, gone: Collection[int]) -> bytes | None:
        if any(line.taken_over(number, gone) for line in self._lines):
            return None
        return b"".join(line.text for line in self._lines if line.stands(gone))

    def _go_on(self, text: bytes, number: int, gone: Collection[int]) -> None:
        standing_lines = [line for line in self._lines if line.stands(gone)]
        new_lines = _split(text)
        line_edits = SequenceMatcher(None, [line.text for line in standing_lines], new_lines).get_opcodes()
        line_indexes = {id(line): index for index, line in enumerate(self._lines)}
        # The loop goes from the end, so that the indexes of earlier lines stay valid.
        for edit_kind, old_start, old_end, new_start, new_end in reversed(line_edits):
            if edit_kind == "equal":
                continue
            for line in standing_lines[old_start:old_end]:
                line.removed.add(number)
            index = line_indexes[id(standing_lines[old_end - 1])] + 1 if old_end else 0
            self._lines[index:index] = [HistoryLine(text_line, number) for text_line in new_lines[new_start:new_end]]


def history_of(versions: Sequence[Version], now: bytes, gone: Collection[int]) -> LineHistory | None:
    """Returns the history of a text, or None for a file that is no text, or too long."""
    texts = [now, *(text for version in versions for text in (version.before, version.after))]
    if any(b"\0" in text or text.count(b"\n") > MOST_LINES // 2 for text in texts):
        return None
    return LineHistory(versions, now, gone)


def _split(text: bytes) -> list[bytes]:
    return text.splitlines(keepends=True)


class Overlap(Exception):
    """Raised when somebody else has changed the same lines, the mode or the path after the change that is to be taken
    back."""


class FileState(NamedTuple):
    """The path of a file and what is there; no path for a file that is gone."""

    path: str
    fact: Fact | None


class FileHistory:
    """All changes of one file in their order, whoever made them, and its state while some of them are taken back or
    done again."""

    def __init__(self, changes: Sequence[Change], now: FileState, contents: Contents) -> None:
        self._changes = changes
        self._contents = contents
        self._undone = {change.order for change in changes if change.undone}
        self.state = now
        self.changed = False
        """True once a change that was taken back or done again has changed something, be it back and forth."""
        self.redone = dict[ChangeKey, Change]()
        """The changes that were done again, as they are now, by the keys that they had before."""

    def take_back(self, changes: Sequence[Change]) -> FileState:
        """Takes these changes back. Raises Overlap where others have continued from them."""
        for deed in reversed(_deeds(changes)):
            self._go(deed, back=True)
        fact = self.state.fact
        if fact and not fact.kept:
            last_fact = self._last_kept(fact, min(change.order for change in changes))
            self.state = FileState(self.state.path if last_fact else "", last_fact)
        return self.state

    def do_again(self, changes: Sequence[Change]) -> FileState:
        for deed in _deeds(changes):
            before = self.state
            self._go(deed, back=False)
            for change in deed:
                self.redone[change.key] = change._replace(
                    path=change.path if None in (change.before, change.after) else self.state.path,
                    before=change.before and before.fact,
                    after=change.after and self.state.fact,
                )
        return self.state

    def _go(self, deed: Sequence[Change], back: bool) -> None:
        first_change = deed[0]
        expected, want = _ends(first_change, back)
        later = list(self._later(first_change.order)) if back else []
        path, fact = self.state
        if fact and expected and same_index(self._contents, path, expected, fact):
            expected = fact
        if len(deed) > 1:
            # The file was moved: one change removed it from a path, and the other one brought it to another path.
            source, target = sorted(deed, key=lambda change: _ends(change, back)[1] is not None)
            expected, want = _ends(source, back)[0], _ends(target, back)[1]
            if path != source.path:
                raise Overlap
            path, fact = target.path, fact or (expected if back else None)
        elif not (is_folder(expected) or is_folder(want)) and _replaced(later):
            raise Overlap
        elif expected is None or want is None:
            path = first_change.path if want else ""
        earlier_state = self.state
        self.state = FileState(path, self._moved(fact, expected, want, later, first_change.order))
        self.changed = self.changed or self.state != earlier_state
        self._undone ^= {first_change.order}

    def _later(self, order: int) -> Iterator[Change]:
        """Yields the later changes that stand."""
        return (change for change in self._changes if change.order > order and change.order not in self._undone)

    def _moved(
        self, now: Fact | None, expected: Fact | None, want: Fact | None, later: Sequence[Change], number: int
    ) -> Fact | None:
        """Returns the new state of a file, now in state `now`, when the change between `want` and `expected` is taken
        back or done again. What that change did not touch stays as it is."""
        if expected is None and is_folder(now) and is_folder(want):
            # A folder that was made again, by someone or by an undo that was interrupted, holds nothing that could be
            # lost.
            return want
        if now is None or expected is None or want is None or not now.kind == expected.kind == want.kind:
            continued = bool(later) and not (is_folder(expected) or is_folder(want))
            is_expected = now is expected if now is None or expected is None else now.bare == expected.bare
            if (now == want or is_expected) and not continued:
                return want
            raise Overlap
        edits = [(change.before, change.after) for change in later if change.before and change.after]
        mode, owner, group = now.mode, now.owner, now.group
        if expected.mode != want.mode:
            if now.mode not in (expected.mode, want.mode) or any(old.mode != new.mode for old, new in edits):
                raise Overlap
            mode = want.mode
        if (expected.owner, expected.group) != (want.owner, want.group):
            owner, group = want.owner, want.group
        content = now
        if expected.bare != want.bare:
            rewritten = any(old.kept and old.bare != new.bare for old, new in edits)
            if not rewritten and now.bare in (expected.bare, want.bare):
                content = want
            elif (rewritten_fact := self._rewritten(number, now, want)) is not None:
                content = rewritten_fact
            else:
                raise Overlap
        return content._replace(mode=mode, owner=owner, group=group)

    def _rewritten(self, number: int, now: Fact, want: Fact) -> Fact | None:
        """Returns the file's state when its text loses a change, or gets it again; None where that is impossible."""
        keep_content, read_content = self._contents.keep, self._contents.get
        current_text, versions = read_content(now.blob) if now.blob else None, list[Version]()
        for change in self._changes:
            texts = [read_content(fact.blob) if fact and fact.blob else None for fact in (change.before, change.after)]
            if texts[0] is not None and texts[1] is not None:
                versions.append(Version(texts[0], texts[1], change.order, change.undone))
        if current_text is None or not want.blob or number not in (version.number for version in versions):
            return None
        gone = self._undone
        history = history_of(versions, current_text, gone)
        text = history and (history.with_again(number) if number in gone else history.without(number))
        if text is None or not keep_content(blob := content_id(text), text):
            return None
        return want._replace(size=len(text), content=blob)

    def _last_kept(self, fact: Fact, order: int) -> Fact | None:
        """Returns the latest state before this one, before the change with this number, whose content was kept, or
        None where the file did not exist then; this state if there is none. A command may have made a file too large to
        keep, or put a pipe in its place, before another command removed it."""
        last_state: Fact | None = fact
        for earlier_change in reversed(self._changes):
            if (
                earlier_change.order < order
                and not earlier_change.undone
                and last_state
                and not last_state.kept
                and earlier_change.after == last_state
            ):
                last_state = earlier_change.before
        return last_state if last_state is None or last_state.kept else fact


def is_folder(fact: Fact | None) -> bool:
    return fact is not None and fact.kind == "folder"


def _deeds(changes: Sequence[Change]) -> list[list[Change]]:
    """Returns the changes of a file in their order; the two changes of a move stand together."""
    ordered_changes = sorted(changes, key=lambda change: change.order)
    return [list(deed) for _, deed in groupby(ordered_changes, key=lambda change: change.order)]


def _ends(change: Change, back: bool) -> tuple[Fact | None, Fact | None]:
    return (change.after, change.before) if back else (change.before, change.after)


def _replaced(changes: Sequence[Change]) -> bool:
    """Says whether one of these changes removed the file, or put another one in its place."""
    return any(len(deed) == 1 and None in (deed[0].before, deed[0].after) for deed in _deeds(changes))
