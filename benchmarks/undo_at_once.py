"""Whether undo ends as if what was taken back had never been, where commands run at once:
`python -m benchmarks.undo_at_once [first seed] [last seed] [--log]`.

Turns, steps of jobs and the user work on the same small folder: they edit lines, append, make, rewrite, copy, move
(also over another file, or a whole folder), delete and change modes. Two or three commands run at the same time; each
says in its text what it does, or is a script of which nobody knows. Work is taken back in any order, and done again.
After each undo the folder is compared with the same story without the work that was taken back. A refusal is real where
others have continued from the work; it is counted by itself where nobody can tell whose a change is."""

import argparse
import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.undo_deeds import Deed, File, Picture, World, picture, subsets
from duckflow.errors import DuckflowError
from duckflow.events.views import UndoResult
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.undo.undo import Undo
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import LATEST, UndoScope, WorkAuthor

AUTHORS = [
    *(WorkAuthor(1), WorkAuthor(2), WorkAuthor(3)),
    *(WorkAuthor(1, "j1", "s1"), WorkAuthor(1, "j1", "s2"), WorkAuthor(2, "j2", "s1")),
]
KINDS = [
    *["edit"] * 5,
    *("append", "append", "make", "make", "make deep", "rewrite", "copy", "move", "move", "over", "tree"),
    *("delete", "mode"),
]
NAMES = ["m.txt", "n.txt", "src/o.txt", "src/p.txt", "doc/q.txt"]
FOLDERS = ["moved", "docs", "lib"]
MOST_CHOICES = 2000
OPAQUE = "python3 build.py"


class Wrong(Exception):
    """Ends a story whose folder is not as it should be."""


@dataclass
class Story:
    """A folder with undo, and beside it everything that was done there."""

    top: Path
    chance: Random
    counts: Counter[str]
    opaque: float
    log: list[str] = field(default_factory=list[str])
    start: World = field(default_factory=dict[int, File])
    deeds: list[Deed] = field(default_factory=list[Deed])
    running: set[WorkAuthor] = field(default_factory=set[WorkAuthor])
    taken: list[list[Deed]] = field(default_factory=list[list[Deed]])
    number: int = 0

    def __post_init__(self) -> None:
        self.folder = self.top / "work"
        for key in range(8):
            lines = tuple(f"f{key}.{line}" for line in range(12))
            path = f"{('', 'src/', 'doc/')[key % 3]}f{key}.txt"
            self.start[key] = File(path, 0o644, lines)
            self.write(None, self.start[key])
        self.undo = self.opened()

    def opened(self) -> Undo:
        return Undo(Workspace(self.folder), self.top / "data", UndoSettings(), "s")

    def played(self, gone: Collection[Deed] = ()) -> tuple[World, set[int]]:
        """Returns the files as if these deeds had never been, and the files whose later deeds this makes odd."""
        files, odd = dict(self.start), set[int]()
        for deed in self.deeds:
            if deed.stands and deed not in gone and not deed.play(files):
                odd.add(deed.file)
        return files, odd

    def write(self, old: File | None, new: File | None) -> None:
        old_path = self.folder / old.path if old else None
        new_path = self.folder / new.path if new else None
        if old_path and old_path != new_path:
            if new_path and old_path.exists():
                new_path.parent.mkdir(parents=True, exist_ok=True)
                old_path.rename(new_path)
            else:
                old_path.unlink()
        if new and new_path:
            new_path.parent.mkdir(parents=True, exist_ok=True)
            text = "".join(f"{line}\n" for line in new.lines)
            if not old or old.lines != new.lines:
                new_path.write_text(text)
            if not old or old.mode != new.mode:
                new_path.chmod(new.mode)

    def think(self, author: WorkAuthor | None) -> list[Deed]:
        """Returns something to do with the files as they are; a folder is moved file by file."""
        self.number += 1
        files = self.played()[0]
        key, kind = self.chance.choice(sorted(files)), self.chance.choice(KINDS)
        file, taken_paths = files[key], {other.path for other in files.values()}
        free = [name for name in NAMES if name not in taken_paths]
        new_lines = tuple(f"n{self.number}.{line}" for line in range(4))
        deed = Deed(kind, key, author, file, file.path, file.mode)
        match kind:
            case "edit" if file.lines:
                deed.used, deed.lines = (self.chance.choice(file.lines),), new_lines[:1]
            case "append":
                deed.lines = new_lines[:1]
            case "rewrite":
                deed.used, deed.lines = file.lines, new_lines
            case "make" | "make deep" if free:
                path = f"new{self.number}/deep/a.txt" if kind == "make deep" else free[0]
                return [Deed("make", 100 + self.number, author, None, path, 0o644, (), new_lines)]
            case "copy" if free:
                return [Deed("make", 100 + self.number, author, None, free[0], 0o644, (), file.lines)]
            case "move" if free := [path for path in free if path not in self.paths_of(key)]:
                deed.path = free[0]
            case "over":
                other_key = self.chance.choice(sorted(files))
                if other_key == key or author is None or files[other_key].path in self.paths_of(key):
                    return []
                deed.kind, deed.path = "move", files[other_key].path
                other = files[other_key]
                return [Deed("delete", other_key, author, other, used=other.lines), deed]
            case "tree" if "/" in file.path:
                folder, target = file.path.partition("/")[0], self.chance.choice(FOLDERS)
                if (self.folder / target).exists() or any(deed.path.startswith(f"{target}/") for deed in self.deeds):
                    return []
                inside = {k: f for k, f in files.items() if f.path.startswith(f"{folder}/")}
                return [
                    Deed("move", k, author, f, f"{target}/{f.path.partition('/')[2]}", f.mode)
                    for k, f in inside.items()
                ]
            # Of a moved file that the user has deleted since undo brings back the old one.
            case "delete" if author or all(other.kind != "move" for other in self.deeds if other.file == key):
                deed.used = file.lines
            case "mode":
                deed.mode = 0o755 if file.mode == 0o644 else 0o644
            case _:
                return []
        return [deed]

    def act(self, deeds: Sequence[Deed]) -> None:
        """Does these deeds, if they are still possible as they were meant."""
        world = self.played()[0]
        if any(deed.before != world.get(deed.file) for deed in deeds):
            return
        paths = {file.path for key, file in world.items() if key not in {deed.file for deed in deeds}}
        if any(deed.kind in ("make", "move") and deed.path in paths for deed in deeds):
            return
        for deed in deeds:
            self.log.append(f"{deed.author.name if deed.author else 'user'}: {deed.text}")
            self.counts[deed.kind] += 1
            before = self.played()[0].get(deed.file)
            self.deeds.append(deed)
            self.write(before, self.played()[0].get(deed.file))
        for folder in {deed.before.path.rpartition("/")[0] for deed in deeds if deed.before and len(deeds) > 1} - {""}:
            with contextlib.suppress(OSError):
                (self.folder / folder).rmdir()

    async def go(self) -> None:
        authors = self.chance.sample(AUTHORS, self.chance.randint(2, 5))
        for _ in range(self.chance.randint(2, 6)):
            match self.chance.random():
                case number if number < 0.15:
                    await (self.take_back(self.chance.choice(authors)) if number < 0.1 else self.do_again())
                case number if number < 0.2:
                    await self.undo.close()
                    self.undo = self.opened()
                case number if number < 0.3:
                    self.act(self.think(None))
                case number if number < 0.75:
                    await self.commands(self.chance.sample(authors, min(len(authors), self.chance.choice((2, 2, 3)))))
                case _:
                    await self.tool(self.chance.choice(authors))
        for author in self.chance.sample(authors, self.chance.randint(1, len(authors))) * 2:
            await self.take_back(author)
        while self.chance.random() < 0.5 and await self.do_again():
            pass

    async def tool(self, author: WorkAuthor) -> None:
        if deeds := self.think(author):
            paths = {path for deed in deeds for path in (deed.path, deed.before.path if deed.before else "") if path}
            async with self.undo.change(author, sorted(paths)):
                self.act(deeds)

    async def commands(self, authors: Sequence[WorkAuthor]) -> None:
        """Runs commands at once: each begins and ends at any time between the deeds of the others."""
        plans = {author: [self.think(author) for _ in range(self.chance.randint(1, 3))] for author in authors}
        waiting, windows = list(plans), dict[WorkAuthor, AsyncExitStack]()
        while waiting or windows:
            author = self.chance.choice([*waiting[:1], *windows])
            if author in waiting:
                waiting.remove(author)
                text = "; ".join(deed.text for deeds in plans[author] for deed in deeds)
                text = OPAQUE if self.chance.random() < self.opaque else text
                self.log.append(f"{author.name} begins {text}")
                windows[author] = AsyncExitStack()
                await windows[author].enter_async_context(self.command(author, text))
                self.running.add(author)
            elif plans[author] and self.chance.random() < 0.8:
                self.act(plans[author].pop(0))
            elif not plans[author]:
                self.log.append(f"{author.name} ends")
                await windows.pop(author).aclose()
                self.running.discard(author)
            elif self.chance.random() < 0.5:
                others = [other for other in AUTHORS if other not in self.running]
                await self.tool(self.chance.choice(others))

    def command(self, author: WorkAuthor, text: str) -> AbstractAsyncContextManager[Any]:
        return self.undo.command(author, text=text)

    async def take_back(self, author: WorkAuthor) -> None:
        if author in self.running:
            return
        scope = UndoScope(job=author.job, step=author.step) if author.job else UndoScope(turn=author.turn)
        own = [deed for deed in self.deeds if deed.author == author and deed.stands]
        waiting = [deed for deed in self.deeds if deed.stands and deed.waits and deed.author != author]
        outcome = await self.restore(f"undo {author.name}", scope)
        keys = {str(phrase.values["path"]): phrase.key for phrase in outcome.conflicts} if outcome else {}
        self.log.append(f"  named {keys}")
        is_new = any(not deed.waits for deed in own)

        gone = self.fitting([*own, *waiting], keys.keys())
        made = {deed.file for deed in gone if deed.kind == "make"}
        gone += [deed for deed in waiting if deed.file in made and deed not in gone]
        left = [deed for deed in own if deed not in gone]
        if is_new:
            self.counts.update({"undos": 1, "refused": bool(keys)})
            self.count_refusal(own, [deed for deed in left if not deed.waits], keys)
        for deed in left:
            deed.waits = deed.waits or any(keys.get(path) == "undo.shared" for path in self.paths_of(deed.file))
        self.log.append(f"  left {[deed.text for deed in left]}")
        self.finish(gone, outcome)

    def count_refusal(self, own: Sequence[Deed], left: Sequence[Deed], keys: dict[str, str]) -> None:
        if not left and not keys:
            return
        stuck = {deed.file for deed in left}
        without, odd = self.played(own)
        paths = Counter(file.path for file in without.values())
        reasons = {
            key
            for key in stuck
            if key in odd
            or any(deed.kind == "delete" and deed.file == key and deed.stands for deed in self.deeds if deed not in own)
            or (key in without and paths[without[key].path] > 1)
        }
        if reasons:
            kind = "refused, real overlap"
        elif "undo.shared" in keys.values():
            kind = "refused, shared"
        else:
            kind = "refused, without a reason"
            self.log.append("  REFUSED WITHOUT A REASON")
        self.counts[kind] += 1
        self.counts["left without a name"] += not keys

    def finish(self, gone: Sequence[Deed], outcome: UndoResult | None) -> None:
        for deed in gone:
            deed.stands = deed.waits = False
        if outcome and outcome.changed:
            self.taken.append(list(gone))

    async def do_again(self) -> bool:
        if not self.taken:
            return False
        again = self.taken.pop()
        for deed in again:
            deed.stands = True
        outcome = await self.restore("redo", LATEST, back=False)

        names = {str(phrase.values["path"]) for phrase in outcome.conflicts} if outcome else set[str]()
        left = self.still_gone(again, names)
        self.counts.update({"redos": 1, "redos refused": bool(left)})
        for deed in left:
            deed.stands = False
        return not left

    async def restore(self, what: str, scope: UndoScope, back: bool = True) -> UndoResult | None:
        self.log.append(what)
        with contextlib.suppress(DuckflowError):
            # Work without an effect cannot be taken back.
            return await self.undo.restore(back=back, scope=scope)
        return None

    def fitting(self, deeds: Sequence[Deed], names: Collection[str]) -> list[Deed]:
        """Returns those of the deeds that are gone by now, by what is in the folder: as many as possible, or as few as
        possible in a file that undo has named."""
        there = self.there()
        choices = list[list[tuple[Deed, ...]]]()
        for key in sorted({deed.file for deed in deeds}):
            fitting = [gone for gone in subsets([d for d in deeds if d.file == key]) if self.fits(key, gone, there)]
            fitting = fitting[::-1] if self.paths_of(key).intersection(names) else fitting
            # What waits goes only where that can be seen.
            choices.append(sorted(fitting, key=lambda gone: sum(deed.waits for deed in gone)))
        for choice in islice(product(*choices), MOST_CHOICES):
            gone = [deed for deeds in choice for deed in deeds]
            if picture(self.played(gone)[0]) == there:
                return gone
        best = picture(self.played(deeds)[0])
        self.log += [
            f"  {name}: {best.get(name)} but {there.get(name)}"
            for name in sorted(best.keys() | there.keys())
            if best.get(name) != there.get(name)
        ]
        self.log.append("  WRONG" + f" (named: {sorted(names)})")
        raise Wrong

    def paths_of(self, key: int) -> set[str]:
        """Returns every path that a file ever had."""
        paths = {deed.path for deed in self.deeds if deed.file == key}
        return paths | ({self.start[key].path} if key in self.start else set())

    def fits(self, key: int, gone: Sequence[Deed], there: Picture) -> bool:
        """Says whether a file can be in the folder as it is without these deeds."""
        file = self.played(gone)[0].get(key)
        return file is None or there.get(file.path) == (file.mode, tuple(sorted(file.lines)))

    def still_gone(self, again: Sequence[Deed], names: Collection[str]) -> list[Deed]:
        """Returns those of the deeds that a redo has not done again: as few as possible."""
        for deed in again:
            deed.stands = False
        there = self.there()
        for left in sorted(subsets(sorted({deed.file for deed in again})), key=len):
            for deed in again:
                deed.stands = deed.file not in left
            if picture(self.played()[0]) == there:
                return [deed for deed in again if not deed.stands]
        for deed in again:
            deed.stands = True
        self.fitting([], names)
        return []

    def there(self) -> Picture:
        files: Iterator[Path] = (path for path in self.folder.rglob("*") if path.is_file())
        return {
            str(path.relative_to(self.folder)): (
                path.stat().st_mode & 0o777,
                tuple(sorted(path.read_text().splitlines())),
            )
            for path in files
        }


async def tell(seed: int, counts: Counter[str], opaque: float) -> list[str]:
    """Tells a story; returns what happened in it if its files were wrong."""
    with tempfile.TemporaryDirectory() as top:
        story = Story(Path(top), Random(seed), counts, opaque)
        try:
            await story.go()
        except Wrong:
            what = (
                "wrong redos"
                if "redo" in [line for line in story.log if line.startswith(("undo", "redo"))][-1]
                else "wrong undos"
            )
            counts[what] += 1
            return story.log
        finally:
            await story.undo.close()
            counts["stories"] += 1
        return []


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("first", type=int, nargs="?", default=0)
    options.add_argument("last", type=int, nargs="?", default=200)
    options.add_argument("--opaque", type=float, default=0.5)
    options.add_argument("--log", action="store_true")
    chosen = options.parse_args()
    counts = Counter[str]()
    for seed in range(chosen.first, chosen.last):
        log = asyncio.run(tell(seed, counts, chosen.opaque))
        if log:
            print(f"story {seed} ({len(log)} lines)")
            print("\n".join(log) * chosen.log)
    for name, count in sorted(counts.items()):
        print(f"{name:28} {count:6}")


if __name__ == "__main__":
    main()
