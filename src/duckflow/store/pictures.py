"""The pictures of a session: files beside its journal, each named by its digest, so that each is stored once."""

import contextlib
import hashlib
import re
from pathlib import Path

from duckflow.state.picture import Picture
from duckflow.whole_file import write_whole

SUFFIX = ".pictures"
DIGEST = r"[0-9a-f]{64}"


class PictureStore:
    """Stores pictures. They are written before the message that names them, and removed with the session."""

    def __init__(self, journal: Path) -> None:
        self._folder = journal.with_suffix(SUFFIX)

    def keep(self, data: bytes) -> str:
        """Stores a picture and returns its digest, by which it is found again."""
        digest = hashlib.sha256(data).hexdigest()
        path = self._folder / digest
        if not path.exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, data)
        return digest

    def load(self, picture: Picture) -> bytes:
        """Returns the bytes of a picture; empty if they are missing or have changed."""
        return self.find(picture.digest)

    def find(self, digest: str) -> bytes:
        if not re.fullmatch(DIGEST, digest):
            return b""
        try:
            picture_bytes = (self._folder / digest).read_bytes()
        except OSError:
            return b""
        return picture_bytes if hashlib.sha256(picture_bytes).hexdigest() == digest else b""


def copy_pictures(source: Path, target: Path) -> None:
    """Copies the pictures of a session for a fork of the session."""
    import shutil

    with contextlib.suppress(FileNotFoundError):
        shutil.copytree(source.with_suffix(SUFFIX), target.with_suffix(SUFFIX), dirs_exist_ok=True)


def remove_pictures(journal: Path) -> None:
    import shutil

    shutil.rmtree(journal.with_suffix(SUFFIX), ignore_errors=True)
