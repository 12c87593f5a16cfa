"""Runs commands in namespaces of their own, by bubblewrap.

Commands see the system's own files, read-only, and nothing else of the machine; the work folder is writable; secrets
are covered. Files in the work folder that must stay as they are (git's hooks, configuration and packs) are mounts of
their own, and so is every folder above them: a mount point cannot be renamed or removed, so it cannot be moved away and
replaced."""

import contextlib
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from duckflow.errors import ToolError
from duckflow.programs.find import own_installation
from duckflow.programs.launch import Launch, close_all
from duckflow.safety.path_names import shown
from duckflow.safety.sandbox.packs import Packs, own_objects
from duckflow.safety.sandbox.paths import SandboxPaths, between
from duckflow.safety.sandbox.repositories import HOLD, Repositories, hold, repositories, settings_in
from duckflow.safety.sandbox.sandbox import Sandbox, SecretAccess
from duckflow.safety.sandbox.seccomp import Machine, bytecode
from duckflow.safety.sandbox.shared_packages import shared_packages
from duckflow.safety.secret_index import MOST_FILES, CoveredSecrets
from duckflow.safety.secrets import without_logins
from duckflow.state.data import say

APART = ("--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session")
TEMPORARY = (Path("/tmp"), Path("/var/tmp"))
SHARED = Path("/dev/shm")
SHARED_MEMORY = 256 * 1024 * 1024
LARGEST_COPY = 64 * 1024
MOST_REPOSITORIES = 60
"""The largest number of repositories in the work folder that are guarded one by one, since the time for a mount grows
with the number of mounts."""


class TooManySecrets(ToolError, OSError):
    """Raised when there are more secret files than can be covered. It is also an OSError, because callers that start
    programs of their own treat it as a program that cannot be started."""


class Bubblewrap(Sandbox):
    """The full sandbox: each command runs in Linux namespaces of its own."""

    kind = "bubblewrap"

    def __init__(self, program: str, machine: Machine, paths: SandboxPaths, sizes: bool = True) -> None:
        super().__init__(paths, say("sandbox.bubblewrap"))
        self._sizes = sizes
        """Says whether this bubblewrap can limit the size of a mount in memory."""
        self._program = program
        self._machine = machine
        self._packs: list[Packs] = []
        """The packs that the sandbox keeps commands from changing at present. A sandbox made by `reaching` shares this
        list."""

    def confine(
        self, launch: Launch, network: bool = False, writes: bool = True, secrets: SecretAccess = "none"
    ) -> Launch:
        keeps_installation = not network
        shows_logins = secrets != "none" or network
        network = network or self.paths.settings.network
        writes_folder = writes and self.paths.folder_writable
        git_places = repositories(self.paths.folder) if writes_folder else Repositories(self.paths.folder)
        writable = self.paths.writable() if writes else ()
        if len(git_places.tops()) > MOST_REPOSITORIES:
            git_places = git_places.among(_named(git_places.tops(), launch, self.paths.limit or ()))
            if self.paths.limit is None:
                writable = (*git_places.tops(), *(path for path in writable if path != self.paths.folder))
        traces_before = git_places.traces()
        own_objects(self.paths.folder, git_places.git_folders)
        packs = Packs(self.paths.folder, git_places.git_folders)
        if writes_folder:
            self._packs[:] = [packs]
        guarded_paths = [*git_places.guarded(), *packs.guarded(network or _speaks_of_git(launch))]
        writable = tuple(path for path in writable if not _lies_in(guarded_paths, path))
        mounts = Mounts(self.paths, writable)
        try:
            mounts.lay(_shared_memory(launch) if self._sizes else 0)
            if secrets == "none":
                mounts.cover(self.paths.covered())
            elif secrets == "read":
                mounts.keep(self.paths.covered())
            mounts.guard([path for path in guarded_paths if _lies_in(writable, path)])
            if keeps_installation:
                mounts.guard([path for path in own_installation(self.paths.folder) if _lies_in(writable, path)])
            if not shows_logins:
                mounts.hide_logins(self._git_settings())
                packages = (place for place in self.paths.packages() if _lies_in(writable, place))
                mounts.guard(shared_packages(packages))
            mounts.copy_small_files()
            mounts.close_replaced()
            info_read, info_write = os.pipe()
            os.set_blocking(info_read, False)
            mounts.fds += [info_write, rules := self._rules(network)]
        except NotADirectoryError as problem:
            close_all(mounts.fds)
            name = shown(str(problem))
            raise ToolError(f"Not run: {name} was replaced meanwhile. Try again.", "file.changed", path=name) from None
        except BaseException:
            close_all(mounts.fds)
            raise
        argv = (
            *(self._program, *APART, *(["--share-net"] if network else [])),
            *mounts.arguments(),
            *("--chdir", str(launch.folder), "--seccomp", str(rules), "--info-fd", str(info_write), "--", *launch.argv),
        )
        return replace(
            launch,
            argv=argv,
            temporary=self.paths.scratch.folder,
            environment=self.environment(launch, "/tmp"),
            fds=(*launch.fds, *mounts.fds),
            meddled=lambda: git_places.meddled(traces_before, self.paths.folder) + self._forged(packs),
            info=info_read,
        )

    def close(self) -> None:
        for packs in self._packs:
            packs.let_go()
        super().close()

    def _git_settings(self) -> list[Path]:
        return settings_in((*repositories(self.paths.folder).git_folders, *self.paths.git.folders))

    def _forged(self, packs: Packs) -> tuple[str, ...]:
        paths = packs.forged(
            lambda launch: self.confine(launch, writes=False, secrets="write"), self.paths.scratch.folder
        )
        return tuple(str(path.relative_to(self.paths.folder)) for path in paths)

    def _rules(self, network: bool) -> int:
        unix_sockets = self.paths.settings.unix_sockets
        file = os.memfd_create("rules")
        os.write(file, bytecode(self._machine, namespaces=True, network=network, unix_sockets=unix_sockets))
        os.lseek(file, 0, os.SEEK_SET)
        return file


class Mounts:
    """The list of mounts. Outer places come first, so that inner ones lie on top of them."""

    def __init__(self, paths: SandboxPaths, writable: tuple[Path, ...]) -> None:
        self.fds: list[int] = []
        self._paths = paths
        self._writable = writable
        self._at: dict[Path, tuple[str, ...]] = {}
        self._handles: dict[Path, int] = {}
        self._pinned: set[Path] = set()
        """Folders that are already mounts, together with every folder above them up to the writable one."""
        self._hidden = frozenset[Path]()
        self._seen: tuple[Path, ...] = ()
        """The places that commands see. They see nothing else of the machine."""

    def lay(self, shared_memory: int) -> None:
        """Lays out the file system of every command. `shared_memory` is the size of /dev/shm, 0 where it cannot be
        limited."""
        scratch, empty_folder = str(self._paths.scratch.folder), self._paths.scratch.empty_folder
        folder = self._paths.folder
        self._at = {
            # /proc is read-only: a command that runs as root could otherwise write files in it that control the kernel.
            # The first process is bubblewrap itself: its program lies on the machine's own, writable mount.
            Path("/proc"): ("--proc", "/proc", "--ro-bind", str(empty_folder), "/proc/1", "--remount-ro", "/proc"),
            Path("/dev"): ("--dev", "/dev"),
            SHARED: (*(["--size", str(shared_memory)] if shared_memory else []), "--tmpfs", str(SHARED)),
        }
        self._at |= {path: ("--bind", scratch, str(path)) for path in TEMPORARY}
        self._at |= {path: ("--symlink", str(path.readlink()), str(path)) for path in self._paths.system_links()}
        system_folders, home = self._paths.system(), self._paths.home
        opened_paths = [path for path in self._paths.opened() if not _lies_in((folder, *system_folders), path)]
        self._seen = (folder, *system_folders, *opened_paths, *self._writable, *self._paths.readable)
        if home.is_dir() and not _lies_in(self._seen, home):
            # The root is an empty folder in memory, so a home in it needs no mount of its own.
            self._at[home] = ("--dir" if self._at.keys().isdisjoint(home.parents) else "--tmpfs", str(home))
        self._at |= {path: ("--ro-bind", str(path), str(path)) for path in (*system_folders, *opened_paths)}
        hidden_paths = [path for path in self._paths.hidden() if _lies_in(self._seen, path)]
        self._hidden = frozenset(hidden_paths)
        for path in hidden_paths:
            self._hide(path)
        self._at[folder] = ("--ro-bind", str(folder), str(folder))
        # The work folder itself may stand in for another one, and a limit holds there, too.
        bind = "--bind" if self._paths.limit is None else "--ro-bind"
        self._at |= {
            covered_path: (bind, str(stand_in_file), str(covered_path))
            for stand_in_file, covered_path in self._paths.stand_ins
        }
        for path in self._writable:
            if folder in path.parents:
                # What a limit names may be gone by now.
                with contextlib.suppress(FileNotFoundError):
                    self._mount("--bind-fd", path, hold(folder, path))
            else:
                self._at[path] = ("--bind", str(path), str(path))
        for path in self._paths.readable:
            if folder not in path.parents:
                self._at[path] = ("--ro-bind", str(path), str(path))
                continue
            with contextlib.suppress(FileNotFoundError):
                self._mount("--ro-bind-fd", path, hold(folder, path))
        for path in hidden_paths:
            self._pin_above(path)

    def cover(self, covered: CoveredSecrets) -> None:
        """Puts an empty file in the place of each secret one. Where `git add` would add the empty file, its mode lets
        nobody read it, so git fails instead."""
        if not covered.whole:
            raise TooManySecrets(
                f"Not run: the folder has more than {MOST_FILES} secret files that git does not track, or too many "
                "folders to look for them, so they cannot be kept from a command. Remove those that are not needed, "
                "or run it with secrets=true; the user is asked.",
                "shell.too_many_secrets",
                count=MOST_FILES,
            )
        scratch = self._paths.scratch
        for path, is_addable, is_held in covered.secrets:
            if not _lies_in(self._seen, path) or not self._hidden.isdisjoint((path, *path.parents)):
                continue
            try:
                if is_held:
                    self._pin_above(path)
                else:
                    self._refuse_links(path)
                cover_path = scratch.empty_folder if path.is_dir() else scratch.locked if is_addable else scratch.empty
                self._at[path] = ("--ro-bind", str(cover_path), str(path))
            except FileNotFoundError:
                continue

    def keep(self, covered: CoveredSecrets) -> None:
        """Makes each secret file read-only: undo has no copy of it, and a command that may read it need not change
        it."""
        self.guard([secret.path for secret in covered.secrets if _lies_in(self._writable, secret.path)])

    def hide_logins(self, settings: Iterable[Path]) -> None:
        """Puts a copy without passwords and tokens in the place of git's settings. A command that the user gave the
        network or the secret files gets the real settings, since git cannot push without a login."""
        for path in settings:
            if _lies_in(self._seen, path) and (text := without_logins(path)) is not None:
                self._at[path] = ("--ro-bind", str(self._paths.scratch.file_with(text)), str(path))

    def guard(self, paths: Sequence[Path]) -> None:
        """Makes places in a writable folder read-only. A link cannot be guarded, so `meddled` reports its changes."""
        for path in paths:
            try:
                self._pin_above(path)
                self._by_handle("--ro-bind-fd", path)
            except OSError:
                if path.parent in self._at and not path.exists() and not path.is_symlink():
                    self._hide(path, folder=path.name == "hooks")

    def copy_small_files(self) -> None:
        """Has small files of the home folder written into the empty one that commands see. That takes less time than a
        mount for each of them. A program stays a mount, since a copy cannot be run, and so does a file in another
        mount, where the copy would replace the real file."""
        home = self._paths.home
        in_home = [path for path, words in self._at.items() if words[0] == "--ro-bind" and _lies_in((home,), path)]
        for path in in_home if home in self._at else ():
            with contextlib.suppress(OSError):
                file_stat = path.lstat()
                is_small_file = stat.S_ISREG(file_stat.st_mode) and file_stat.st_size <= LARGEST_COPY
                is_program, is_itself = file_stat.st_mode & 0o111, self._at[path][1] == str(path)
                if is_small_file and is_itself and not is_program and self._at.keys().isdisjoint(between(home, path)):
                    self.fds.append(handle := os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))
                    self._at[path] = ("--file", str(handle), str(path))

    def close_replaced(self) -> None:
        """Closes the handles of mounts that other mounts have replaced. Bubblewrap closes only handles that its
        arguments name. The command would get every other handle, and could reach all files of the machine through
        it."""
        used_handles = {words[1] for words in self._at.values()}
        replaced_handles = [handle for handle in self.fds if str(handle) not in used_handles]
        self.fds = [handle for handle in self.fds if str(handle) in used_handles]
        close_all(replaced_handles)

    def arguments(self) -> list[str]:
        mounted_paths = sorted(self._at, key=str)
        mount_words = [word for path in mounted_paths for word in self._at[path]]
        # These become read-only last, since mounting in them makes folders there. Files in them would fill the memory.
        memory_paths = [path for path in mounted_paths if self._at[path][0] in ("--tmpfs", "--dev") and path != SHARED]
        root = [] if Path("/") in self._at else [Path("/")]
        return mount_words + [word for path in (*memory_paths, *root) for word in ("--remount-ro", str(path))]

    def _hide(self, path: Path, folder: bool = False) -> None:
        scratch = self._paths.scratch
        visible_paths = (self._paths.folder, *self._writable, *self._paths.readable)
        if any(_lies_in((path,), visible_path) for visible_path in visible_paths):
            # Visible places inside the hidden folder must be mounted in it.
            self._at[path] = ("--tmpfs", str(path))
        else:
            empty_path = scratch.empty_folder if folder or path.is_dir() else scratch.empty
            self._at[path] = ("--ro-bind", str(empty_path), str(path))

    def _refuse_links(self, path: Path) -> None:
        """Refuses a path with a link in it: a mount follows links in the name of its place, even out of the sandbox."""
        for writable_folder in self._writable:
            if writable_folder in path.parents:
                os.close(hold(writable_folder, path))

    def _pin_above(self, path: Path) -> None:
        if path.parent in self._pinned:
            return
        for writable_folder in self._writable:
            for folder in between(writable_folder, path):
                if folder not in self._at:
                    self._by_handle("--bind-fd", folder)
        self._pinned.add(path.parent)

    def _by_handle(self, option: str, path: Path) -> None:
        parent_handle = self._handles.get(path.parent)
        if parent_handle is None:
            handle = hold(
                next(writable_folder for writable_folder in self._writable if path.is_relative_to(writable_folder)),
                path,
            )
        else:
            handle = os.open(path.name, HOLD, dir_fd=parent_handle)
        self._mount(option, path, handle)

    def _mount(self, option: str, path: Path, handle: int) -> None:
        """Mounts by handle and not by name: a command still running could swap the name for a link to anywhere."""
        if stat.S_ISLNK(os.fstat(handle).st_mode):
            os.close(handle)
            raise NotADirectoryError(str(path))
        self.fds.append(handle)
        self._handles[path] = handle
        self._at[path] = (option, str(handle), str(path))


def _named(repository_tops: Iterable[Path], launch: Launch, limit: Iterable[str]) -> tuple[Path, ...]:
    """Returns the repositories whose names occur in a command or in the limit of what it may change, and the one that
    it starts in."""
    text = " ".join((*launch.argv, *limit))
    named_tops = [top for top in repository_tops if top.name in text or launch.folder.is_relative_to(top)]
    if len(named_tops) > MOST_REPOSITORIES:
        raise ToolError(
            f"Not run: the command names more than {MOST_REPOSITORIES} repositories of the work folder. Run it for a "
            "few at a time.",
            "shell.too_many_repositories",
            count=MOST_REPOSITORIES,
        )
    return tuple(named_tops)


def _speaks_of_git(launch: Launch) -> bool:
    """Says whether a command names git. Each pack is mounted by itself only for such a command, because that takes
    time; no other command can add packs."""
    return any("git" in word for word in launch.argv)


def _shared_memory(launch: Launch) -> int:
    return launch.limits.memory_bytes() // 4 if launch.limits else SHARED_MEMORY


def _lies_in(folders: Iterable[Path], path: Path) -> bool:
    """Says whether the path lies in one of the folders. It only compares texts, which is fast, because a command waits
    for this."""
    return f"{path}/".startswith(tuple(f"{str(folder).rstrip('/')}/" for folder in folders))
