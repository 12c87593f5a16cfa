"""What no command's undo covers: files that git ignores, and folders that are made anew at will."""

HEAVY = (
    *("node_modules", ".venv", "__pycache__", ".tox", ".nox", ".gradle", ".hg", ".svn"),
    *(".mypy_cache", ".pytest_cache", ".ruff_cache"),
)
"""Left out by name where nothing says otherwise."""


class Ignored:
    """Paths git named as ignored, or the heavy folders where git could not be asked."""

    def __init__(self, paths: frozenset[str] | None = None) -> None:
        self._paths = paths
        self.known = paths is not None

    def file(self, path: str) -> bool:
        return self._paths is not None and path in self._paths

    def folder(self, path: str, foreign: bool) -> bool:
        """`foreign`: it lies in a repository within the folder, of which git was not asked."""
        if self._paths is not None and path in self._paths:
            return True
        return (foreign or self._paths is None) and path.rpartition("/")[2] in HEAVY
