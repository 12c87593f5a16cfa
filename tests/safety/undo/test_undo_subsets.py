"""Turns and steps of jobs work on the same files in any order. Whatever of it is taken back, the files end as if that
had never been; only work whose lines others have changed again is refused, and named."""

import asyncio
import contextlib
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from playground import Playground

from duckflow.errors import DuckflowError
from duckflow.state.undo_scope import UndoScope, WorkAuthor

LINES = 60
FILES = ("a.txt", "b.txt", "c.txt")
TURNS = [WorkAuthor(1), WorkAuthor(2), WorkAuthor(3)]
AUTHORS = [*TURNS, WorkAuthor(1, "j1", "s1"), WorkAuthor(1, "j1", "s2"), WorkAuthor(2, "j2", "s1")]
Edit = tuple[WorkAuthor, str, list[tuple[str, int]]]


@dataclass
class Slot:
    """A place for a line, with all that ever stood there and who wrote it; None for a line that was deleted."""

    versions: list[tuple[WorkAuthor | None, str | None]]

    def text(self, gone: set[WorkAuthor]) -> str | None:
        standing = [text for author, text in self.versions if author is None or author not in gone]
        return standing[-1] if standing else None

    def rewritten(self, author: WorkAuthor, gone: set[WorkAuthor]) -> bool:
        """Says whether others, whose work stands, have changed the line after the author."""
        authors = [one for one, _ in self.versions]
        after = authors[authors.index(author) :] if author in authors else []
        return any(one != author and one not in gone for one in after)


@dataclass
class Draft:
    """A file, line by line: what it would be if some work had never been."""

    slots: list[Slot] = field(default_factory=list[Slot])

    def text(self, gone: set[WorkAuthor]) -> str:
        lines = [slot.text(gone) for slot in self.slots]
        return "".join(f"{line}\n" for line in lines if line is not None)

    def regions(self, lines: list[str]) -> list[list[str]]:
        """The lines between those that nobody has touched. In which order lines stood of which some were replaced and
        their neighbours deleted in one go, the texts alone do not tell."""
        untouched = {slot.versions[0][1] for slot in self.slots if len(slot.versions) == 1 and not slot.versions[0][0]}
        regions: list[list[str]] = [[]]
        for line in lines:
            regions[-1].append(line)
            regions += [[]] if line in untouched else []
        return [sorted(region) for region in regions]

    def edit(self, author: WorkAuthor, kind: str, place: int, words: str) -> None:
        there = [slot for slot in self.slots if slot.text(set()) is not None]
        slot = there[place % len(there)]
        match kind:
            case "replace":
                slot.versions.append((author, words))
            case "delete" if len(there) > 1:
                slot.versions.append((author, None))
            case _:
                self.slots.insert(self.slots.index(slot) + 1, Slot([(author, words)]))

    def overlaps(self, author: WorkAuthor, gone: set[WorkAuthor]) -> bool:
        """Others changed the author's lines again."""
        return any(slot.rewritten(author, gone) for slot in self.slots)


edits = st.tuples(
    st.sampled_from(AUTHORS),
    st.sampled_from(FILES),
    st.lists(st.tuples(st.sampled_from(("replace", "insert", "delete")), st.integers(0, 999)), min_size=1, max_size=2),
)


def test_any_subset_is_taken_back_as_if_it_had_never_been() -> None:
    seen = Counter[str]()

    @settings(max_examples=60, deadline=None)
    @given(st.lists(edits, min_size=2, max_size=9), st.permutations(AUTHORS), st.integers(1, len(AUTHORS)))
    def stories(story: list[Edit], order: list[WorkAuthor], count: int) -> None:
        asyncio.run(play(story, order[:count], seen))

    stories()
    assert seen["cases"] > 50
    assert seen["refused"] <= 0.05 * seen["cases"] and seen["moved"] <= 0.01 * seen["files"], dict(seen)


async def play(story: list[Edit], unwanted: list[WorkAuthor], seen: Counter[str]) -> None:
    with tempfile.TemporaryDirectory() as top:
        ground = Playground(Path(top))
        drafts = {name: Draft([Slot([(None, f"{name} {n}")]) for n in range(LINES)]) for name in FILES}
        ground.fill({name: draft.text(set()) for name, draft in drafts.items()})
        for number, (author, name, changes) in enumerate(story):
            for place, (kind, line) in enumerate(changes):
                drafts[name].edit(author, kind, line, f"{name} {number}.{place} by {author.name}")
            async with ground.undo.change(author, [name]):
                ground.put(name, drafts[name].text(set()))
        worked = {author for author, *_ in story}
        await taken_back(ground, drafts, [author for author in unwanted if author in worked], seen)
        await ground.undo.close()


async def taken_back(
    ground: Playground, drafts: dict[str, Draft], unwanted: list[WorkAuthor], seen: Counter[str]
) -> None:
    """One after the other; what is refused is tried again when the others are gone."""
    gone: dict[str, set[WorkAuthor]] = {name: set() for name in FILES}
    refused: dict[WorkAuthor, set[str]] = {}
    for author in [*unwanted, *unwanted]:
        if author in refused and not refused[author]:
            continue
        scope = UndoScope(job=author.job, step=author.step) if author.job else UndoScope(turn=author.turn)
        with contextlib.suppress(DuckflowError):
            # Work that came to nothing is not there to be taken back.
            outcome = await ground.undo.restore(scope=scope)
            refused[author] = {str(phrase.values["path"]) for phrase in outcome.conflicts}
            for name in FILES:
                gone[name] |= set() if name in refused[author] else {author}
    for author, names in refused.items():
        seen["cases"] += 1
        seen["refused"] += bool(names)
        for name in names:
            assert drafts[name].overlaps(author, gone[name]), f"{author} in {name} was refused without a reason"
    for name, draft in drafts.items():
        lines = (ground.folder / name).read_text().splitlines()
        expected = draft.text(gone[name]).splitlines()
        seen["files"] += 1
        seen["moved"] += lines != expected
        assert draft.regions(lines) == draft.regions(expected)
