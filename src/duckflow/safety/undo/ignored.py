"""What no command's undo covers: files that git ignores, git's own files, and folders that are made anew at will."""

GIT = ".git"
HEAVY = (
    *("node_modules", ".venv", "__pycache__", ".tox", ".nox", ".gradle", ".hg", ".svn"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache"),
)
"""Left out by name, unless git tracks what is in them."""


class Ignored:
    """Paths git named as ignored; the heavy folders by name where git could not be asked."""

    covers_git = False

    def __init__(self, paths: frozenset[str] | None = None) -> None:
        self._paths = paths

    def file(self, path: str) -> bool:
        return self._paths is not None and path in self._paths

    def folder(self, path: str, foreign: bool) -> bool:
        """`foreign`: it lies in a repository within the work folder, of which git was not asked."""
        if self.file(path):
            return True
        return (foreign or self._paths is None) and path.rpartition("/")[2] in HEAVY

    def left_out(self, path: str) -> bool:
        """Whether a command's undo leaves it out, wherever it lies."""
        *above, _ = upwards(path)[::-1]
        return self.file(path) or any(self.folder(one, False) or one.rpartition("/")[2] == GIT for one in above)


class NothingIgnored(Ignored):
    """For a file or folder that Duckflow itself changes: all of it counts."""

    covers_git = True

    def __init__(self) -> None:
        super().__init__(frozenset())

    def folder(self, path: str, foreign: bool) -> bool:
        return False


def upwards(path: str) -> list[str]:
    """The path itself, and every folder above it."""
    names = path.split("/")
    return ["/".join(names[:count]) for count in range(len(names), 0, -1)]
