"""What the model has seen: which files it read, how far, and what was shown of a change before it is made."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class SeenFile:
    """One file as the model knows it."""

    digest: str
    total: int = 0
    """Lines that must have been shown; none when the model wrote the text itself."""
    lines: set[int] = field(default_factory=set[int])

    @property
    def whole(self) -> bool:
        return len(self.lines) >= self.total


class SeenFiles:
    """Shared by all file tools. Paths are in the one spelling of the workspace."""

    def __init__(self) -> None:
        self._seen: dict[str, SeenFile] = {}
        self._previewed: dict[str, str] = {}

    def saw(self, path: str, digest: str, lines: range, total: int) -> None:
        """Lines (from 1) of a file that has `total`."""
        known = self._seen.get(path)
        if known is None or known.digest != digest:
            known = self._seen[path] = SeenFile(digest, total)
        known.lines.update(lines)
        # The model has looked again, so what it was shown before no longer counts.
        self._previewed.pop(path, None)

    def of(self, path: str) -> SeenFile | None:
        return self._seen.get(path)

    def wrote(self, path: str, digest: str) -> None:
        """The model made this text itself, so it knows all of it."""
        self._seen[path] = SeenFile(digest)
        self._previewed.pop(path, None)

    def edited(self, path: str, before: str, digest: str) -> None:
        """A part was changed: who knew the whole before knows it now."""
        known = self._seen.pop(path, None)
        if known and known.whole and known.digest == before:
            self.wrote(path, digest)
        self._previewed.pop(path, None)

    def forget(self, path: str) -> None:
        """The file, or the folder with all in it, is gone."""
        for known in self._beneath(path):
            del self._seen[known]
        self._previewed.pop(path, None)

    def moved(self, source: str, target: str) -> None:
        """Under a new name it is still what the model knows."""
        for known in self._beneath(source):
            self._seen[target + known[len(source) :]] = self._seen.pop(known)
        self._previewed.pop(source, None)

    def _beneath(self, path: str) -> list[str]:
        return [known for known in self._seen if known == path or known.startswith(path + "/")]

    def previewed(self, path: str, fingerprint: str) -> None:
        self._previewed[path] = fingerprint

    def take_preview(self, path: str) -> str | None:
        """The state the last preview of this path was made from; it counts once."""
        return self._previewed.pop(path, None)
