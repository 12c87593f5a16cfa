"""The history of a text, line by line: what it would be if some of its changes had never been.

A three-way merge (`git merge-file`, `merge3`) knows three texts only. It refuses changes of neighbouring lines, and
after two undos it cannot tell in which order the lines stood. Undo has every version of the text and need not
guess."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import NamedTuple

MOST_LINES = 20_000
"""More lines than this are not compared: it would take too long."""
NOBODY = 0


class Version(NamedTuple):
    """A change of the text by its number, and the number of the undo that took it back, if one did."""

    before: bytes
    after: bytes
    number: int
    undone: int


@dataclass(slots=True)
class HistoryLine:
    """A line keeps its place after it was removed. `made` and `removed` are numbers of changes."""

    text: bytes
    made: int = NOBODY
    removed: set[int] = field(default_factory=set[int])

    def stands(self, gone: Collection[int]) -> bool:
        return self.made not in gone and all(number in gone for number in self.removed)

    def belongs_to(self, number: int) -> bool:
        return number == self.made or number in self.removed

    def taken_over(self, number: int, gone: Collection[int]) -> bool:
        """Says whether another change that stands has removed a line that this change made or removed."""
        return self.belongs_to(number) and any(other != number and other not in gone for other in self.removed)


class LineHistory:
    """Goes through all changes of a text in their order, up to the text as it is now."""

    def __init__(self, versions: Sequence[Version], now: bytes, gone: Collection[int]) -> None:
        """`gone`: the changes that are not in the text now."""
        self._lines = [HistoryLine(text) for text in _split(versions[0].before)]
        self._gone = gone
        for version in versions:
            undone = {one.number for one in versions if one.undone and one.undone < version.number}
            self._go_on(version.before, NOBODY, undone)
            self._go_on(version.after, version.number, undone)
        self._go_on(now, NOBODY, gone)

    def without(self, number: int) -> bytes | None:
        """The text without a change; nothing where other changes took over its lines."""
        return self._text(number, {*self._gone, number})

    def with_again(self, number: int) -> bytes | None:
        return self._text(number, {one for one in self._gone if one != number})

    def _text(self, number: int, gone: Collection[int]) -> bytes | None:
        if any(line.taken_over(number, gone) for line in self._lines):
            return None
        return b"".join(line.text for line in self._lines if line.stands(gone))

    def _go_on(self, text: bytes, number: int, gone: Collection[int]) -> None:
        standing = [line for line in self._lines if line.stands(gone)]
        new = _split(text)
        changes = SequenceMatcher(None, [line.text for line in standing], new).get_opcodes()
        places = {id(line): place for place, line in enumerate(self._lines)}
        # From the end, so that the places before stay as they are.
        for kind, start, end, first, last in reversed(changes):
            if kind == "equal":
                continue
            for line in standing[start:end]:
                line.removed.add(number)
            place = places[id(standing[end - 1])] + 1 if end else 0
            self._lines[place:place] = [HistoryLine(one, number) for one in new[first:last]]


def history_of(versions: Sequence[Version], now: bytes, gone: Collection[int]) -> LineHistory | None:
    """Nothing for what is no text, or too long."""
    texts = [now, *(text for version in versions for text in (version.before, version.after))]
    if any(b"\0" in text or text.count(b"\n") > MOST_LINES // 2 for text in texts):
        return None
    return LineHistory(versions, now, gone)


def _split(text: bytes) -> list[bytes]:
    return text.splitlines(keepends=True)
