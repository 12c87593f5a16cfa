"""A work folder with real files, real git and a real shell, and Undo over it."""

import asyncio
import os
import stat
import subprocess
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from duckflow.cli.toolset import file_tools
from duckflow.safety.undo.settings import UndoSettings
from duckflow.safety.undo.undo import Undo
from duckflow.safety.workspace import Workspace
from duckflow.state.changes import WorkAuthor
from duckflow.state.data import Phrase
from duckflow.tools.settings import FileSettings

Picture = dict[str, tuple[str, int, bytes]]
PATHS_OF = {"move_file": ("source", "target")}


OPEN: list[Undo] = []
"""The objects that a test has made. They are closed after the test, if a crash would have left them open."""


class Playground:
    """Acts as Duckflow (`do`, `shell`), and as the user (`put`, `git`)."""

    def __init__(self, top: Path, folder: Path | None = None, **settings: Any) -> None:
        self.folder = folder or top / "work"
        self.data = top / "data"
        self.home = top / "home"
        for folder in (self.folder, self.home):
            folder.mkdir(parents=True, exist_ok=True)
        self.settings = UndoSettings(**settings)
        self._turn = 0
        self.author = WorkAuthor(0)
        self.restart()

    def restart(self, session: str = "s1") -> Undo:
        """Loses everything in memory, as a crash does."""
        workspace = Workspace(self.folder)
        self._tools = {tool.operation: tool for tool in file_tools(workspace, FileSettings())}
        self.undo = Undo(workspace, self.data, self.settings, session)
        OPEN.append(self.undo)
        return self.undo

    def next_turn(self) -> int:
        self._turn += 1
        self.author = WorkAuthor(self._turn)
        return self._turn

    async def do(self, name: str, **args: Any) -> None:
        """Makes one of Duckflow's own changes, in the turn that is open."""
        tool = self._tools[f"file_ops.{name}"]
        checked = tool.args.model_validate(args)
        paths = [args[path] for path in PATHS_OF.get(name, ("path",))]
        async with self.undo.change(self.author, paths):
            await tool.run(checked)

    async def shell(self, command: str) -> None:
        async with self.command():
            await asyncio.to_thread(self.run, command)

    def command(self, **given: str) -> AbstractAsyncContextManager[Any]:
        return self.undo.command(self.author, **given)

    def run(self, command: str) -> None:
        """Runs a command as somebody other than Duckflow."""
        subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment(), capture_output=True, check=True
        )

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=self.environment(), capture_output=True, check=True
        )
        return done.stdout.decode()

    def commit_all(self) -> None:
        if not (self.folder / ".git").exists():
            self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-qm", "as it was")

    def environment(self) -> dict[str, str]:
        names = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "somebody")
        mails = dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "somebody@example.org")
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8", **names, **mails}

    def put(self, path: str, content: str | bytes) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def fill(self, files: Mapping[str, str | bytes]) -> None:
        for path, content in files.items():
            self.put(path, content)

    def picture(self) -> Picture:
        """Returns every file, folder and link with its mode and bytes; git's own files are not in it."""
        picture: Picture = {}
        for path in sorted(self.folder.rglob("*")):
            name = str(path.relative_to(self.folder))
            if ".git" in Path(name).parts:
                continue
            facts = path.lstat()
            if stat.S_ISLNK(facts.st_mode):
                picture[name] = ("link", 0, os.fsencode(path.readlink()))
            elif stat.S_ISDIR(facts.st_mode):
                picture[name] = ("folder", stat.S_IMODE(facts.st_mode), b"")
            else:
                content = path.read_bytes() if stat.S_ISREG(facts.st_mode) else b""
                picture[name] = ("file", stat.S_IMODE(facts.st_mode), content)
        return picture

    async def not_covered(self) -> set[str]:
        """Returns the keys of the phrases about what an undo would leave out."""
        return keys((await self.undo.preview()).not_covered)

    async def there_and_back(self, before: Picture) -> None:
        """Undoes, redoes and undoes the work again, to the byte, also after a restart."""
        after = self.picture()
        assert after != before, "the story must change something"
        for _ in range(2):
            await self.undo.restore()
            assert self.picture() == before
            self.restart()
            await self.undo.restore(back=False)
            assert self.picture() == after


def keys(phrases: tuple[Phrase, ...]) -> set[str]:
    return {phrase.key for phrase in phrases}
