"""Turns and steps of jobs work on the same files in any order: they edit lines, make, rewrite, move and delete files,
by tools and by commands, one during the other. Whatever is taken back, the files end as if that had never been done;
only work that others have continued from is refused, and named."""

import asyncio
import contextlib
import logging
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from drafts import Draft
from playground import Playground

from duckflow.errors import DuckflowError
from duckflow.state.changes import UndoScope, WorkAuthor

log = logging.getLogger(__name__)
STORIES = 60
LINES = 60
SOURCES = [f"src/{name}.py" for name in "abcdefgh"]
PICTURES = ["p.bin", "q.bin", "r.bin"]
NEW = ["n.py", "o.py", "src/new/s.py", "src/new/t.py", "t.bin"]
AUTHORS = [
    *(WorkAuthor(1), WorkAuthor(2), WorkAuthor(3)),
    *(WorkAuthor(1, "j1", "s1"), WorkAuthor(1, "j1", "s2"), WorkAuthor(2, "j2", "s1")),
]
KINDS = [*["edit"] * 8, "make", "make", "rewrite", "delete", "move", "picture"]


class Deed(NamedTuple):
    """A piece of work. With `nested`, the next piece, by somebody else, is done while this one goes on."""

    author: WorkAuthor
    kind: str
    by_command: bool
    nested: bool
    place: int
    edits: list[tuple[str, int]]


def random_deed(chance: Random) -> Deed:
    kinds = chance.choices(("replace", "insert", "delete"), k=chance.choice((1, 2)))
    edits = [(kind, chance.randrange(999)) for kind in kinds]
    by_command, nested = chance.random() < 0.5, chance.random() < 0.3
    return Deed(chance.choice(AUTHORS), chance.choice(KINDS), by_command, nested, chance.randrange(999), edits)


def test_any_subset_is_taken_back_as_if_it_had_never_been() -> None:
    seen = Counter[str]()
    for seed in range(STORIES):
        chance = Random(seed)
        story = [random_deed(chance) for _ in range(chance.randint(2, 9))]
        asyncio.run(play(story, chance.sample(AUTHORS, chance.randint(1, len(AUTHORS))), seen))
    share = seen["refused"] / seen["cases"]
    log.info("%.1f %% refused: %s", 100 * share, dict(seen))
    assert seen["cases"] > 50
    assert share <= 0.05 and seen["moved"] <= 0.01 * seen["files"], dict(seen)


async def play(story: list[Deed], unwanted: list[WorkAuthor], seen: Counter[str]) -> None:
    with tempfile.TemporaryDirectory() as top:
        stage = Stage(Playground(Path(top)))
        await stage.work(story)
        seen.update(f"{deed.kind} by command" if deed.by_command else deed.kind for deed in story)
        worked = {deed.author for deed in story}
        await taken_back(stage, [author for author in unwanted if author in worked], seen)
        await stage.ground.undo.close()


class Stage:
    """A work folder, and beside it the model of each file's history."""

    def __init__(self, ground: Playground) -> None:
        self.ground = ground
        self.drafts = {name: Draft() for name in (*SOURCES, *PICTURES, *NEW)}
        self.moves = list[tuple[WorkAuthor, str, str]]()
        for name in (*SOURCES, *PICTURES):
            self.drafts[name].make(None, [f"{name} {n}" for n in range(LINES if name in SOURCES else 1)])
            ground.put(name, self.content(name) or b"")
        self._number = 0

    def content(self, name: str) -> bytes | None:
        return content(self.drafts[name], name, ())

    async def work(self, story: Sequence[Deed]) -> None:
        rest = list(story)
        while rest:
            deed = rest.pop(0)
            if deed.nested and deed.by_command and rest and rest[0].author != deed.author:
                # The command writes before and after the work that is done while it runs.
                async with self.ground.undo.command(deed.author):
                    self.write(self.think(deed))
                    await self.do(rest.pop(0))
                    self.write(self.think(deed._replace(kind="edit")))
            else:
                await self.do(deed)

    async def do(self, deed: Deed) -> None:
        names = self.think(deed)
        if deed.by_command:
            async with self.ground.undo.command(deed.author):
                self.write(names, by_shell=True)
        elif names:
            async with self.ground.undo.change(deed.author, names):
                self.write(names)

    def think(self, deed: Deed) -> list[str]:
        """Does the deed in the model, and returns the paths that it touches."""
        self._number += 1
        author, place, words = deed.author, deed.place, f"{self._number} by {deed.author.name}"
        there = [name for name, draft in self.drafts.items() if draft.standing()]
        sources, pictures = ([name for name in there if name.endswith(end)] for end in (".py", ".bin"))
        free = [name for name in NEW if name not in there]
        names = {"make": free, "delete": there, "move": sources, "picture": pictures}.get(deed.kind, sources)
        if not names or (deed.kind == "move" and not free):
            return []
        name = names[place % len(names)]
        draft = self.drafts[name]
        match deed.kind:
            case "make":
                draft.make(author, [f"{name} {words}.{n}" for n in range(12 if name.endswith(".py") else 1)])
            case "rewrite":
                draft.rewrite(author, [f"{name} {words}.{n}" for n in range(LINES)])
            case "picture":
                draft.edit(author, "replace", 0, words)
            case "delete":
                draft.end(author)
            case "move":
                target = next((other for other in free if other.endswith(".py")), "")
                life = draft.standing()
                if not target or not life:
                    return []
                self.drafts[target].make(author, life.lines())
                self.moves.append((author, name, target))
                draft.end(author)
                return [name, target]
            case _:
                for turn, (kind, line) in enumerate(deed.edits):
                    draft.edit(author, kind, line, f"{name} {words}.{turn}")
        return [name]

    def write(self, names: list[str], by_shell: bool = False) -> None:
        """Brings these files to the state that the model says."""
        for name in names:
            data, path = self.content(name), self.ground.folder / name
            if not by_shell and data is not None:
                self.ground.put(name, data)
            elif not by_shell:
                path.unlink()
            elif data is None:
                self.ground.run(f"rm {name}")
            else:
                draft = self.ground.home / "draft"
                draft.write_bytes(data)
                self.ground.run(f"mkdir -p {Path(name).parent} && cat {draft} > {name}")

    def tied(self, author: WorkAuthor, name: str) -> set[str]:
        """Returns the paths between which the author has moved a file: they stay or go together."""
        names = {name}
        for _ in self.moves:
            for mover, source, target in self.moves:
                names |= {source, target} if mover == author and names & {source, target} else set()
        return names


def content(draft: Draft, name: str, gone: set[WorkAuthor] | tuple[()]) -> bytes | None:
    life = draft.standing(gone)
    head = b"\0" if name.endswith(".bin") else b""
    return head + "".join(f"{line}\n" for line in life.lines(gone)).encode() if life else None


async def taken_back(stage: Stage, unwanted: list[WorkAuthor], seen: Counter[str]) -> None:
    """Takes work back one piece after the other; a refused piece is tried again when the others are gone."""
    gone: dict[str, set[WorkAuthor]] = {name: set() for name in stage.drafts}
    refused: dict[WorkAuthor, set[str]] = {}
    for author in unwanted * 3:
        if author in refused and not refused[author]:
            continue
        scope = UndoScope(job=author.job, step=author.step) if author.job else UndoScope(turn=author.turn)
        with contextlib.suppress(DuckflowError):
            # Work without an effect cannot be taken back.
            outcome = await stage.ground.undo.restore(scope=scope)
            refused[author] = {str(phrase.values["path"]) for phrase in outcome.conflicts}
            for name in stage.drafts:
                gone[name] |= set() if name in refused[author] else {author}
    for author, names in refused.items():
        seen["cases"] += 1
        seen["refused"] += bool(names)
        for name in names:
            reasons = [stage.drafts[tied].overlaps(author, gone[tied]) for tied in stage.tied(author, name)]
            assert any(reasons), f"{author} in {name} was refused without a reason"
    for name, draft in stage.drafts.items():
        path = stage.ground.folder / name
        now = path.read_bytes() if path.exists() else None
        expected = content(draft, name, gone[name])
        seen["files"] += 1
        seen["moved"] += now != expected
        life = draft.standing(gone[name])
        if now is None or life is None:
            assert now == expected, name
        else:
            assert life.regions(now.decode().splitlines()) == life.regions((expected or b"").decode().splitlines())
