"""A model of files in which any piece of work may never have been done: undo is compared with it."""

from collections.abc import Collection
from dataclasses import dataclass, field

from duckflow.state.changes import WorkAuthor

Gone = Collection[WorkAuthor | None]


@dataclass
class Slot:
    """A place for a line, with all the lines that ever stood there and their authors; None for a line that was
    deleted."""

    versions: list[tuple[WorkAuthor | None, str | None]]

    def text(self, gone: Gone = ()) -> str | None:
        standing = [text for author, text in self.versions if author not in gone]
        return standing[-1] if standing else None

    def rewritten(self, author: WorkAuthor, gone: Gone) -> bool:
        """Says whether others, whose work stands, have changed the line after the author."""
        authors = [writer for writer, _ in self.versions]
        after = authors[authors.index(author) :] if author in authors else []
        return any(writer != author and writer not in gone for writer in after)


@dataclass
class Life:
    """A file from the time it is made until it is deleted or moved away. A binary file has one line."""

    maker: WorkAuthor | None
    slots: list[Slot]
    enders: list[WorkAuthor] = field(default_factory=list[WorkAuthor])

    def stands(self, gone: Gone = ()) -> bool:
        return self.maker not in gone and all(author in gone for author in self.enders)

    def lines(self, gone: Gone = ()) -> list[str]:
        texts = (slot.text(gone) for slot in self.slots)
        return [text for text in texts if text is not None]

    def overlaps(self, author: WorkAuthor, gone: Gone) -> bool:
        """Says whether others changed the author's lines again, deleted the file, or work in a file that the author has
        made."""
        writers = {writer for slot in self.slots for writer, _ in slot.versions}
        others = {writer for writer in writers if writer not in (None, author) and writer not in gone}
        ended = author in writers and any(ender != author and ender not in gone for ender in self.enders)
        made = self.maker == author and bool(others)
        return made or ended or any(slot.rewritten(author, gone) for slot in self.slots)

    def regions(self, lines: list[str]) -> list[list[str]]:
        """Returns the lines between those that nobody has touched. If some lines were replaced and their neighbours
        deleted in one go, the texts alone do not tell their order."""
        untouched = {slot.versions[0][1] for slot in self.slots if len(slot.versions) == 1 and not slot.versions[0][0]}
        regions: list[list[str]] = [[]]
        for line in lines:
            regions[-1].append(line)
            regions += [[]] if line in untouched else []
        return [sorted(region) for region in regions]


@dataclass
class Draft:
    """All files that ever existed under a path."""

    lives: list[Life] = field(default_factory=list[Life])

    def standing(self, gone: Gone = ()) -> Life | None:
        lives = [life for life in self.lives if life.stands(gone)]
        return lives[-1] if lives else None

    def make(self, author: WorkAuthor | None, lines: list[str]) -> None:
        self.lives.append(Life(author, [Slot([(author, line)]) for line in lines]))

    def end(self, author: WorkAuthor) -> None:
        for life in self.lives:
            if life.stands():
                life.enders.append(author)
                self._drop_lines(life, author)

    def rewrite(self, author: WorkAuthor, lines: list[str]) -> None:
        if life := self.standing():
            self._drop_lines(life, author)
            life.slots += [Slot([(author, line)]) for line in lines]

    def edit(self, author: WorkAuthor, kind: str, place: int, words: str) -> None:
        life = self.standing()
        there = [slot for slot in life.slots if slot.text() is not None] if life else []
        if not life or not there:
            return
        slot = there[place % len(there)]
        match kind:
            case "replace":
                slot.versions.append((author, words))
            case "delete" if len(there) > 1:
                slot.versions.append((author, None))
            case _:
                life.slots.insert(life.slots.index(slot) + 1, Slot([(author, words)]))

    def overlaps(self, author: WorkAuthor, gone: Gone) -> bool:
        """Says whether others have continued from the author's work, so that it cannot be taken out of the present
        files."""
        without = {*gone, author}
        return sum(life.stands(without) for life in self.lives) > 1 or any(
            life.overlaps(author, gone) for life in self.lives
        )

    def _drop_lines(self, life: Life, author: WorkAuthor) -> None:
        for slot in life.slots:
            if slot.text() is not None:
                slot.versions.append((author, None))
