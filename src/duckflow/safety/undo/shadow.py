"""A repository of our own beside the user's: it reads what that one has, and changes nothing there."""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from duckflow.safety.undo.git_folder import GitFolder, git_folder_around, plain_bytes
from duckflow.safety.undo.git_program import NOWHERE, GitProgram
from duckflow.safety.undo.ignored import HEAVY, Ignored

CONFIG = """[core]
\trepositoryformatversion = {version}
\tbare = false
\thooksPath = /dev/null
\tfsmonitor = false
\tuntrackedCache = false
\tautocrlf = false
\tattributesFile = /dev/null
[gc]
\tauto = 0
"""
OBJECT_FORMAT = "[extensions]\n\tobjectFormat = {format}\n"
LIST_IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
PACK = re.compile(r"pack-[0-9a-f]+\.(pack|idx)")
LOOSE = re.compile(r"[0-9a-f]{2}")


class Shadow:
    """Objects come from the user's repository by alternates.

    Packs and objects in use are also hard-linked, so that a command that deletes the user's repository does not take
    them along. The user's index is copied before git looks at it."""

    def __init__(self, folder: Path, work: Path, program: str | None, object_format: str, seconds: float) -> None:
        self._folder = folder
        self._work = work
        self._format = object_format
        self._git = GitProgram(program, folder, work, seconds)
        self._repository: GitFolder | None = None
        self._packs = b""
        self.secure = True
        """Whether what the user's repository has outlives that repository."""

    def ignored(self) -> Ignored:
        """As the user's repository says, and as .gitignore files say where there is none."""
        if not self._git.there:
            return Ignored()
        self._set_up()
        repository = git_folder_around(self._work)
        exclude = plain_bytes(repository.common / "info/exclude") if repository else b""
        (self._folder / "info/exclude").write_bytes(exclude)
        index, top = (self.copy_index(repository, "now"), repository.top) if repository else (NOWHERE, self._work)
        question = [*LIST_IGNORED, *(f"--exclude={name}/" for name in HEAVY)]
        listed = self._git.ask(question, index, top)
        if listed is None:
            # An index that only makes sense together with other files of the repository.
            listed = self._git.ask(question, NOWHERE, top)
        paths = {os.fsdecode(path).rstrip("/") for path in (listed or b"").split(b"\0") if path}
        if listed is None or "." in paths or "" in paths:
            # A repository around that ignores the work folder as a whole says nothing about what is in it.
            return Ignored()
        # Git also names a folder in which everything is ignored; the folder itself is not.
        return Ignored(frozenset(paths - {path.rpartition("/")[0] for path in paths}))

    def refresh(self) -> bool:
        """Look where the user's objects are now. Says whether what was there may be gone."""
        if not self._git.there:
            return False
        repository = git_folder_around(self._work)
        if repository and repository.object_format != self._format:
            repository = None
        self._repository = repository
        packs = f"{_modified(repository.objects / 'pack')} {repository.objects.absolute()}" if repository else "none"
        self._set_up()
        linked = self._folder / "linked"
        if self.secure and os.fsencode(packs) in (self._packs, plain_bytes(linked)):
            # On disk only now: what was found missing the last time has been kept since.
            linked.write_bytes(os.fsencode(packs))
            return False
        linked.unlink(missing_ok=True)
        self._packs = os.fsencode(packs)
        self._link_packs(repository)
        return True

    def held(self, blobs: Sequence[str]) -> set[str]:
        """Those the user's repository has; loose ones are linked on the way."""
        if not self._git.there or self._repository is None or not blobs:
            return set()
        objects = self._repository.objects
        loose = {start + name for start in {blob[:2] for blob in blobs} for name in _names(objects / start)}
        linked = {
            one for one in loose.intersection(blobs) if self.secure and self._link(objects, f"{one[:2]}/{one[2:]}")
        }
        rest = [blob for blob in blobs if blob not in linked]
        question = ["cat-file", "--batch-check=%(objectname) %(objecttype)"]
        answer = self._git.ask(question, given=rest) if rest else b""
        found = (line.split(b" ") for line in (answer or b"").splitlines())
        return linked | {words[0].decode() for words in found if len(words) == 2 and words[1] == b"blob"}

    def fetch(self, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """The contents that are there."""
        if self._git.there:
            self._set_up()
            yield from self._git.contents(blobs)

    def copy_index(self, repository: GitFolder, label: str) -> Path:
        """A copy of a repository's index as it is now."""
        self._set_up()
        copy = self.index_copy(repository, label)
        data = plain_bytes(repository.index)
        copy.write_bytes(data)
        return copy if data else NOWHERE

    def index_copy(self, repository: GitFolder, label: str) -> Path:
        return self._folder / f"index-{label}-{hashlib.sha256(os.fsencode(repository.own)).hexdigest()[:16]}"

    def staged(self, index: Path) -> bytes | None:
        """What an index says, without what it remembers of the files' times."""
        return self._git.ask(["ls-files", "-z", "--stage"], index) if plain_bytes(index) else b""

    def _set_up(self) -> None:
        if (self._folder / "HEAD").exists():
            return
        for name in ("objects/info", "objects/pack", "refs", "info"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        foreign = self._format != "sha1"
        text = CONFIG.format(version=int(foreign)) + (OBJECT_FORMAT.format(format=self._format) if foreign else "")
        (self._folder / "config").write_text(text)
        (self._folder / "HEAD").write_text("ref: refs/heads/none\n")

    def _link_packs(self, repository: GitFolder | None) -> None:
        self._drop_links()
        self._point_at(repository)
        self.secure = True
        # A pack counts as there when its index is, so that comes last.
        for name in sorted(_names(repository.objects / "pack"), reverse=True) if repository else ():
            if repository and PACK.fullmatch(name):
                self._link(repository.objects, f"pack/{name}")

    def _point_at(self, repository: GitFolder | None) -> None:
        objects = str(repository.objects.absolute()) if repository else ""
        # One path a line: what cannot be written that way is linked or copied instead.
        usable = objects.isprintable() and not objects.startswith(('"', "#"))
        (self._folder / "objects/info/alternates").write_text(f"{objects}\n" if objects and usable else "")

    def _link(self, objects: Path, name: str) -> bool:
        target = f"{self._folder}/objects/{name}"
        try:
            os.link(f"{objects}/{name}", target, follow_symlinks=False)
        except FileExistsError:
            return True
        except FileNotFoundError:
            folder = Path(target).parent
            if folder.exists():
                return False
            folder.mkdir()
            return self._link(objects, name)
        except OSError as problem:
            # Another file system, or files that are not ours: then only the alternates are left.
            if problem.errno in (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP):
                self.secure = False
                (self._folder / "linked").unlink(missing_ok=True)
            return False
        return True

    def _drop_links(self) -> None:
        """They would keep alive what the user's repository has packed anew."""
        objects = self._folder / "objects"
        for name in _names(objects):
            if LOOSE.fullmatch(name):
                shutil.rmtree(objects / name, ignore_errors=True)
        for name in _names(objects / "pack"):
            (objects / "pack" / name).unlink(missing_ok=True)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
