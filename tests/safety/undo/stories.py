"""Files as a list of deeds: any of them can be left out, and the rest is played again from the start. Undo is compared
with it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple

from duckflow.state.changes import WorkAuthor

File = tuple[str, int, bytes]
"""The kind (`file` or `link`), the mode and the content of a file."""
Picture = dict[str, File]


@dataclass(eq=False)
class Deed:
    """Something that was done to a file."""

    file: int
    kind: str
    author: WorkAuthor | None
    """The user is nobody."""
    before: tuple[str, int]
    """The path and mode that the file had."""
    holders: set[WorkAuthor | None]
    """Those who may have done it and have not taken it back."""
    used: tuple[str, ...] = ()
    """The names of the lines that were replaced or removed."""
    lines: dict[str, str] = field(default_factory=dict[str, str])
    """The new lines by their names."""
    above: tuple[str, ...] = ()
    path: str = ""
    mode: int = 0o644

    @property
    def paths(self) -> list[str]:
        return sorted({self.path, self.before[0]} - {""})


class Style(NamedTuple):
    """How a file is written. Without `ends` the last line has no newline."""

    kind: str = "file"
    newline: str = "\n"
    encoding: str = "utf-8"
    ends: bool = True
    is_binary: bool = False

    @property
    def has_one_line(self) -> bool:
        return self.is_binary or self.kind == "link"


STYLES = [
    *[Style()] * 15,
    *(Style(newline="\r\n"), Style(encoding="cp932"), Style(ends=False), Style(kind="link"), Style(is_binary=True)),
]
KINDS = [*["edit"] * 12, "make", "rewrite", "delete", "move", "mode"]
NEW = ["n.py", "o.py", "src/new/s.py", "src/new/t.py"]


@dataclass
class ModelFile:
    style: Style
    path: str
    mode: int
    lines: dict[str, str]
    """All lines that ever stood in the file, in their order; those in `gone` stand there no longer."""
    gone: set[str] = field(default_factory=set[str])

    def standing(self) -> list[str]:
        return [name for name in self.lines if name not in self.gone]

    def content(self) -> bytes:
        style, texts = self.style, [self.lines[name] for name in self.standing()]
        text = style.newline.join(texts) + (style.newline if style.ends and texts and not style.has_one_line else "")
        return (b"\0" if style.is_binary else b"") + text.encode(style.encoding)

    def take(self, deed: Deed) -> bool:
        """Changes the lines. Returns False where lines that the deed used are not there."""
        lines = list(self.lines.items())
        places = [place for place, (name, _) in enumerate(lines) if name in (*deed.above, *deed.used)]
        place = max(places, default=-1) + 1
        is_whole = set(self.standing()).issuperset(deed.used)
        self.gone |= set(deed.used)
        self.lines = dict([*lines[:place], *deed.lines.items(), *lines[place:]])
        return is_whole


class World(NamedTuple):
    """The files after some deeds, and whether a deed could not be done as it was."""

    files: dict[int, ModelFile]
    is_odd: bool

    @property
    def picture(self) -> Picture:
        return {
            file.path: (file.style.kind, 0 if file.style.kind == "link" else file.mode, file.content())
            for file in self.files.values()
        }


class Past:
    """Everything that was done, and what could be done next. With `close`, changed lines may lie beside each other."""

    def __init__(self, chance: Random, close: bool) -> None:
        self._chance = chance
        self._close = close
        self._number = 0
        self._styles = dict(enumerate(STYLES))
        self._start = dict[int, ModelFile]()
        self.deeds = list[Deed]()
        for key, style in self._styles.items():
            lines = {f"{key}.{n}": f"行{key}.{n} = 0" for n in range(1 if style.has_one_line else 40)}
            self._start[key] = ModelFile(style, f"src/f{key}", chance.choice((0o644, 0o755)), lines)

    def played(self, gone: Collection[Deed] = ()) -> World:
        """Returns the files as if these deeds, and those that were taken back, had never been done."""
        files = {key: replace(file, lines=dict(file.lines), gone=set(file.gone)) for key, file in self._start.items()}
        is_odd = False
        for deed in self.deeds:
            if deed.holders and deed not in gone:
                is_odd = not self._do(deed, files) or is_odd
        return World(files, is_odd)

    def _do(self, deed: Deed, files: dict[int, ModelFile]) -> bool:
        """Does a deed. Returns False where it could not be done in the same way."""
        file = files.get(deed.file)
        is_free = deed.path not in (other.path for key, other in files.items() if key != deed.file)
        if deed.kind == "make":
            files[deed.file] = ModelFile(self._styles[deed.file], deed.path, deed.mode, dict(deed.lines))
            return is_free
        if file is None:
            return False
        old_path, old_mode, old_lines = file.path, file.mode, set(file.standing())
        match deed.kind:
            case "delete":
                del files[deed.file]
                return old_lines == set(deed.used) and old_path == deed.before[0]
            case "move":
                file.path = deed.path
                return old_path == deed.before[0] and is_free
            case "mode":
                file.mode = deed.mode
                return old_mode == deed.before[1]
            case _:
                return file.take(deed)

    def paths_of(self, files: Collection[int]) -> set[str]:
        paths = {file.path for key, file in self._start.items() if key in files}
        return paths | {path for deed in self.deeds if deed.file in files for path in deed.paths}

    def is_reason(self, gone: Sequence[Deed], key: int) -> bool:
        """Says whether others have continued from these deeds in a file: without them, the deeds after them could not
        be done as they were, or the file was deleted since."""
        work = [deed for deed in gone if deed.file == key]
        others = [deed for deed in self.deeds if deed.holders and deed not in gone and deed.file == key]
        return any(deed.kind == "delete" for deed in others) or self.played(work).is_odd

    def think(self, author: WorkAuthor | None, running: Collection[WorkAuthor], fixed: Collection[int]) -> Deed | None:
        """Returns something to do in the files as they are now. Those in `fixed` are not moved."""
        self._number += 1
        world, kind = self.played(), self._chance.choice(KINDS)
        free_paths = [path for path in NEW if path not in world.picture]
        key = self._chance.choice(sorted(world.files))
        file = world.files[key]
        deed = Deed(key, kind, author, (file.path, file.mode), {*running} or {author})
        was_moved = any(other.kind == "move" and other.file == key for other in self.deeds)
        match kind:
            case "make" if free_paths:
                deed.file = len(self._styles)
                self._styles[deed.file] = style = self._chance.choice(STYLES)
                deed.path, deed.before = free_paths[0], ("", 0)
                deed.lines = self._new_lines(1 if style.has_one_line else 8)
            # Of a moved file that the user has deleted since undo brings back the old one.
            case "delete" if author or not was_moved:
                deed.used = tuple(file.standing())
            case "move" if free_paths and not file.style.has_one_line and key not in fixed:
                deed.path = free_paths[0]
            case "mode" if file.style.kind != "link" and (author or key in self._start):
                deed.mode = 0o644 if file.mode == 0o755 else 0o755
            case "rewrite" if not file.style.has_one_line:
                deed.used, deed.lines = tuple(file.standing()), self._new_lines(30)
            case "edit":
                return self._edit(deed, file)
            case _:
                return None
        return deed

    def _new_lines(self, count: int) -> dict[str, str]:
        return {f"new {self._number}.{n}": f"new {self._number}.{n} = 0" for n in range(count)}

    def _edit(self, deed: Deed, file: ModelFile) -> Deed | None:
        """Chooses a line that is apart from what was changed already, or the very same one."""
        standing, names, untouched = file.standing(), list(file.lines), self._untouched(file)
        is_again = file.style.has_one_line or self._chance.random() < 0.04
        places = [
            place
            for place, name in enumerate(names)
            if name in standing
            if is_again
            or (0 < place < len(names) - 2 and (self._close or untouched.issuperset(names[place - 1 : place + 2])))
        ]
        if not places:
            return None
        place = self._chance.choice(places)
        # Where a line came to between lines that are taken back is not known when they are done again.
        rewritten = {name for other in self.deeds if other.kind == "rewrite" for name in other.lines}
        kinds = ["replace", "delete a line", *["insert"] * (self._close or names[place] not in rewritten)]
        deed.kind = "replace" if is_again else self._chance.choice(kinds)
        if deed.kind == "insert":
            deed.above, deed.lines = tuple(names[: place + 1]), self._new_lines(1)
        else:
            deed.used = (names[place],)
        if deed.kind == "replace":
            deed.lines = {f"new {self._number}": self._new_value(deed, file.lines[names[place]])}
        return deed

    def _new_value(self, deed: Deed, text: str) -> str:
        """Returns the new text of a line, maybe one that it had before. But authors do not take back their own lines,
        since nothing would be left to undo; what the user takes back by hand is left alone; and nobody writes what was
        taken back already."""
        label, _, value = text.partition(" = ")
        makers = {other.author for other in self.deeds if text in other.lines.values()}
        undone = {text for other in self.deeds if not other.holders for text in other.lines.values()}
        new_text = f"{label} = {(int(value) + self._chance.choice((1, 2))) % 3}"
        return f"{label} = {self._number + 3}" if deed.author in (None, *makers) or new_text in undone else new_text

    def _untouched(self, file: ModelFile) -> set[str]:
        """Returns the lines that nobody has used yet, that were there from the beginning, and that nothing was put
        below."""
        used = {name for deed in self.deeds for name in (*deed.used, *deed.above[-1:])}
        new = {name for deed in self.deeds if deed.kind in ("replace", "insert") for name in deed.lines}
        return file.lines.keys() - used - new


def only_lines(picture: Iterable[tuple[str, File]]) -> dict[str, tuple[str, int, list[bytes]]]:
    """Returns the files without the order of their lines: where two authors changed lines that lie beside each other,
    the texts alone do not always tell it."""
    return {name: (kind, mode, sorted(content.splitlines())) for name, (kind, mode, content) in picture}
