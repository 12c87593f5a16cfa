"""Turns, steps of jobs and the user work on the same files in any order: they edit lines, make, rewrite, move and
delete files, change modes and links, by tools and by commands, one during the other or at the same time. Work is taken
back and done again in between, also after a restart. The files always end as if what was taken back had never been
done; only work that others have continued from is refused, and named."""

import asyncio
import contextlib
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from random import Random

import pytest
from playground import Playground
from stories import Deed, File, Past, Picture, only_lines

from duckflow.errors import DuckflowError
from duckflow.events.views import UndoResult
from duckflow.state.changes import LATEST, UndoScope, WorkAuthor

log = logging.getLogger(__name__)
AUTHORS = [
    *(WorkAuthor(1), WorkAuthor(2), WorkAuthor(3)),
    *(WorkAuthor(1, "j1", "s1"), WorkAuthor(1, "j1", "s2"), WorkAuthor(2, "j2", "s1")),
]


@dataclass
class Counts:
    seen: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])


class WrongFiles(Exception):
    """Ends a story whose files are not as they should be."""


class Story:
    """A work folder with undo, and beside it the list of everything that was done there. With `together`, commands run
    at the same time."""

    def __init__(self, ground: Playground, seed: int, together: bool, counts: Counts) -> None:
        self.ground, self.together, self.counts, self.log = ground, together, counts, list[str]()
        self._chance = Random(seed)
        self._close = seed % 5 == 1
        self._past = Past(self._chance, self._close)
        self._taken = list[list[tuple[Deed, WorkAuthor]]]()
        self._running = set[WorkAuthor]()
        self._unseen = dict[int, bool]()
        """The files in which something was done since undo has looked at all files, and whether they were moved. A file
        that is moved and edited between two looks is another file to undo."""
        self._tried = dict[WorkAuthor, list[Deed]]()
        """What was refused when the work of each author was last taken back. A second try counts if there is more."""
        self._write(sorted(self._past.played().picture))

    async def go(self) -> None:
        authors = self._chance.sample(AUTHORS, self._chance.randint(2, 5))
        for _ in range(self._chance.randint(3, 10)):
            match self._chance.random():
                case number if number < 0.13 and not self._close:
                    await (self._take_back(self._chance.choice(authors)) if number < 0.08 else self._do_again())
                case number if number < 0.18:
                    await self.ground.undo.close()
                    self.ground.restart()
                case number if number < 0.28:
                    self._act(None)
                case number if number < 0.5:
                    await self._command(authors)
                case _:
                    await self._use_tool(self._chance.choice(authors))
        for author in self._chance.sample(authors, self._chance.randint(1, len(authors))) * 2:
            await self._take_back(author)
        while self._chance.random() < 0.5 and await self._do_again():
            pass

    async def _use_tool(self, author: WorkAuthor) -> None:
        if deed := self._past.think(author, (), ()):
            async with self.ground.undo.change(author, deed.paths):
                self._carry_out(deed)

    def _act(self, author: WorkAuthor | None) -> None:
        """Lets a running command or the user do something."""
        deed = self._past.think(author, self._running if author else (), self._unseen)
        if deed and not self._unseen.get(deed.file):
            self._unseen[deed.file] = deed.kind == "move"
            self._carry_out(deed)

    async def _command(self, authors: Sequence[WorkAuthor]) -> None:
        """Runs a command, and others' tools, undo and commands meanwhile."""
        first, *others = self._chance.sample(authors, len(authors))
        async with self.ground.undo.command(first):
            self._unseen.clear()
            self._running = {first}
            self._act(first)
            for _ in range(self._chance.choice((0, 0, 1, 2))):
                other = self._chance.choice(others)
                match self._chance.choice(("tool", "tool", "undo", "command")):
                    case "undo" if not self._close:
                        await self._take_back(other)
                    case "command" if self.together:
                        await self._command_beside(other, first)
                    case _:
                        await self._use_tool(other)
                self._act(first)
            self._running = set[WorkAuthor]()
        self._unseen.clear()

    async def _command_beside(self, author: WorkAuthor, first: WorkAuthor) -> None:
        """Runs a command beside a running one. Nobody can tell which of them writes a file meanwhile."""
        async with self.ground.undo.command(author):
            self._unseen.clear()
            self._running = {author, first}
            for _ in range(self._chance.randint(1, 3)):
                self._act(self._chance.choice((author, first)))
        self._unseen.clear()
        self._running = {first}

    def _carry_out(self, deed: Deed) -> None:
        holders = sorted(author.name for author in deed.holders if author)
        self.log.append(f"{holders} {deed.kind} f{deed.file} {deed.paths} {[*deed.lines.values()][:1]}")
        self.counts.seen[deed.kind] += 1
        self._past.deeds.append(deed)
        self._write(deed.paths)

    def _write(self, names: Iterable[str]) -> None:
        """Brings these paths to the state that the deeds say."""
        picture = self._past.played().picture
        for name in names:
            path, wanted = self.ground.folder / name, picture.get(name)
            now = found(path)
            if now and (wanted is None or now[0] != wanted[0] or wanted[0] == "link"):
                path.unlink()
            if wanted and wanted[0] == "link":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.symlink_to(wanted[2].decode())
            elif wanted:
                if now is None or now[2] != wanted[2]:
                    self.ground.put(name, wanted[2])
                path.chmod(wanted[1])

    async def _take_back(self, author: WorkAuthor) -> None:
        if author in self._running:
            return
        self._unseen.clear()
        scope = UndoScope(job=author.job, step=author.step) if author.job else UndoScope(turn=author.turn)
        held = [deed for deed in self._past.deeds if author in deed.holders]
        # What others may have done, too, only loses one of those who hold it; the file stays as it is.
        shared_files = {deed.file for deed in held if deed.holders != {author}}
        released = [deed for deed in held if deed.holders != {author}]
        own = [deed for deed in held if deed.file not in shared_files]
        outcome = await self._restore(f"undo {author.name}", scope)
        names = {str(phrase.values["path"]) for phrase in outcome.conflicts} if outcome else set[str]()
        stuck = self._stuck(own, names, lambda files: [deed for deed in own if deed.file not in files])
        without_reason = [key for key in stuck if not self._past.is_reason(own, key)]
        if held and held != self._tried.get(author):
            self.counts.seen.update({"undos": 1, "refused": bool(names), "shared": bool(names and not stuck)})
            self.counts.seen.update({"overlaps": bool(stuck), "without a reason": bool(without_reason)})
        self._tried[author] = [deed for deed in own if deed.file in stuck]
        self.counts.wrong += [f"{author.name} was refused without a reason in {without_reason}"] * bool(without_reason)
        taken = [*released, *(deed for deed in own if deed.file not in stuck)]
        if taken and outcome:
            self._taken.append([(deed, author) for deed in taken])
        for deed in taken:
            deed.holders.discard(author)

    async def _do_again(self) -> bool:
        """Does again what was taken back last. Returns False if some of it was refused."""
        if not self._taken:
            return False
        self._unseen.clear()
        record = self._taken.pop()
        outcome = await self._restore("redo", LATEST, back=False)
        names = {str(phrase.values["path"]) for phrase in outcome.conflicts} if outcome else set[str]()
        for deed, author in record:
            deed.holders.add(author)
        alone = [deed for deed, _ in record if len(deed.holders) == 1]
        stuck = self._stuck(alone, names, lambda files: [deed for deed in alone if deed.file in files])
        left = [(deed, author) for deed, author in record if deed.file in stuck]
        for deed, author in left:
            deed.holders.discard(author)
        self._taken += [left] if left else []
        self.counts.seen.update({"redos": 1, "redos refused": bool(stuck)})
        return not stuck

    async def _restore(self, what: str, scope: UndoScope, back: bool = True) -> UndoResult | None:
        self.log.append(what)
        with contextlib.suppress(DuckflowError):
            # Work without an effect cannot be taken back.
            return await self.ground.undo.restore(back=back, scope=scope)
        return None

    def _stuck(self, deeds: Sequence[Deed], names: set[str], gone: Callable[[Collection[int]], list[Deed]]) -> set[int]:
        """Returns the files that stayed as they were because these names were refused: those that explain what is in
        the folder now. `gone` says which deeds are not done any more where these files stay."""
        there, files = self._folder(), sorted({deed.file for deed in deeds})
        candidates = [key for key in files if names & self._past.paths_of({key})]
        for count in range(len(candidates), -1, -1):
            for stuck in combinations(candidates, count):
                if self._seen(self._past.played(gone(stuck)).picture) == there:
                    return set(stuck)
        expected = self._seen(self._past.played(gone(candidates)).picture)
        wrong = [name for name in expected.keys() | there.keys() if expected.get(name) != there.get(name)]
        self.counts.wrong.append(f"refused {names}, wrong: {wrong}")
        raise WrongFiles

    def _folder(self) -> Mapping[str, object]:
        files = (path for path in self.ground.folder.rglob("*") if path.is_symlink() or not path.is_dir())
        return self._seen({str(path.relative_to(self.ground.folder)): now for path in files if (now := found(path))})

    def _seen(self, picture: Picture) -> Mapping[str, object]:
        return only_lines(picture.items()) if self._close else picture


def found(path: Path) -> File | None:
    if path.is_symlink():
        return ("link", 0, os.fsencode(path.readlink()))
    return ("file", path.stat().st_mode & 0o777, path.read_bytes()) if path.exists() else None


async def tell(seed: int, together: bool, counts: Counts) -> None:
    with tempfile.TemporaryDirectory() as top:
        story, count = Story(Playground(Path(top)), seed, together, counts), len(counts.wrong)
        try:
            await story.go()
        except WrongFiles:
            counts.seen["wrong files"] += 1
        await story.ground.undo.close()
    counts.seen["stories"] += 1
    counts.wrong += ["\n    ".join((f"story {seed}:", *story.log))] * (len(counts.wrong) > count)


@pytest.mark.parametrize("together", [False, True], ids=["one command at a time", "commands at once"])
@pytest.mark.parametrize("stories", [18, pytest.param(1500, marks=pytest.mark.slow)])
def test_any_subset_is_taken_back_as_if_it_had_never_been(stories: int, together: bool) -> None:
    counts = Counts()
    for seed in range(stories):
        asyncio.run(tell(seed, together, counts))
    log.info("%s", dict(counts.seen))
    assert not counts.wrong, "\n".join(counts.wrong)
    assert counts.seen["undos"] > stories
    # The stories are much denser than what people do: five authors at most, in a dozen of files.
    assert counts.seen["overlaps"] <= 0.1 * counts.seen["undos"]
