"""The temporary files of the commands: theirs alone, kept from one command to the next, gone at the end."""

import shutil
import tempfile
import weakref
from pathlib import Path


class Scratch:
    """A folder for temporary files, and an empty file and folder to put in the place of secrets."""

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="duckflow-")).resolve()
        self.folder = self.top / "tmp"
        self.folder.mkdir(mode=0o700)
        self.empty = self.top / "empty"
        self.empty.touch(mode=0o444)
        self.empty_folder = self.top / "empty-folder"
        self.empty_folder.mkdir(mode=0o555)
        # Not tempfile.TemporaryDirectory: to remove a stubborn folder it changes modes through links, and commands
        # can put links here.
        self._remove = weakref.finalize(self, shutil.rmtree, str(self.top), ignore_errors=True)

    def close(self) -> None:
        self._remove()
