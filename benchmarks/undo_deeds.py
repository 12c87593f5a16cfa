"""Files as a list of deeds for `benchmarks.undo_at_once`: any deed can be left out, and the rest is played again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

from duckflow.state.changes import WorkAuthor

T = TypeVar("T")
Picture = dict[str, tuple[int, tuple[str, ...]]]
"""The mode and the lines of each file. The order of lines that authors put beside each other is left open."""


@dataclass(frozen=True)
class File:
    path: str
    mode: int
    lines: tuple[str, ...]


World = dict[int, File]


@dataclass(eq=False)
class Deed:
    """Something that was done to one file. `used` are the lines that it replaced, `lines` the new ones."""

    kind: str
    file: int
    author: WorkAuthor | None
    before: File | None
    path: str = ""
    mode: int = 0
    used: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    stands: bool = True
    waits: bool = False
    """True if it was to be taken back and stayed, because somebody else may have done it."""

    def play(self, files: World) -> bool:
        """Does the deed; returns False where that is not possible in the same way."""
        file = files.get(self.file)
        is_free = all(other.path != self.path or key == self.file for key, other in files.items())
        if self.kind == "make":
            files[self.file] = File(self.path, self.mode, self.lines)
            return is_free
        if file is None or self.before is None:
            return False
        match self.kind:
            case "delete":
                del files[self.file]
                return file == self.before
            case "move":
                files[self.file] = replace(file, path=self.path)
                return file.path == self.before.path and is_free
            case "mode":
                files[self.file] = replace(file, mode=self.mode)
                return file.mode == self.before.mode
            case _:
                places = [place for place, line in enumerate(file.lines) if line in self.used]
                place = places[0] if places else len(file.lines)
                left = [line for line in file.lines if line not in self.used]
                files[self.file] = replace(file, lines=(*left[:place], *self.lines, *left[place:]))
                return len(places) == len(self.used)

    @property
    def text(self) -> str:
        """Returns the deed in the words of a shell."""
        old_path = self.before.path if self.before else ""
        match self.kind:
            case "delete":
                return f"rm {old_path}"
            case "move":
                return f"mv {old_path} {self.path}"
            case "mode":
                return f"chmod {self.mode:o} {old_path}"
            case "make":
                folder = self.path.rpartition("/")[0]
                return f"{f'mkdir -p {folder}; ' * bool(folder)}printf '{'|'.join(self.lines)}' > {self.path}"
            case "append":
                return f"echo {self.lines[0]} >> {old_path}"
            case "edit":
                return f"sed -i 's/^{self.used[0]}$/{self.lines[0]}/' {old_path}"
            case _:
                return f"printf '{'|'.join(self.lines)}' > {old_path}"


def subsets(things: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Yields all subsets, the largest first."""
    for count in range(len(things), -1, -1):
        yield from combinations(things, count)


def picture(world: World) -> Picture:
    pictured: Picture = {file.path: (file.mode, tuple(sorted(file.lines))) for file in world.values()}
    return pictured if len(pictured) == len(world) else {}
