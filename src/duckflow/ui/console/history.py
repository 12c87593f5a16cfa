"""What was typed before, across sessions."""

from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory, InMemoryHistory

from duckflow.whole_file import write_whole

KEPT_BYTES = 1_000_000
LONGEST_ENTRY = 10_000


class InputHistory(FileHistory):
    """A file only its owner can read; the oldest entries go when it gets too long."""

    def __init__(self, path: Path, worth: Callable[[str], bool], expand: Callable[[str], str]) -> None:
        self._worth = worth
        self._expand = expand
        self._cut(path)
        super().__init__(str(path))

    def append_string(self, string: str) -> None:
        if self._worth(string) and string != next(iter(self._loaded_strings), None):
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """In the file a paste stands in full, unless it is very long: its mark means nothing to another session."""
        full = self._expand(string)
        try:
            super().store_string(full if len(full) <= LONGEST_ENTRY else string)
        except (OSError, UnicodeError):
            # A history that cannot be kept is no reason to stop.
            return

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    @staticmethod
    def _cut(path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.chmod(0o600)
            if path.stat().st_size > KEPT_BYTES:
                kept = path.read_bytes()[-KEPT_BYTES // 2 :]
                start = kept.find(b"\n# ") + 1
                write_whole(path, kept[start:])
        except OSError:
            return


def input_history(
    path: Path | None, worth: Callable[[str], bool], expand: Callable[[str], str]
) -> InputHistory | InMemoryHistory:
    return InputHistory(path, worth, expand) if path else InMemoryHistory()
