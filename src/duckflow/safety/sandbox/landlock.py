"""Confines commands by Landlock and seccomp, where bubblewrap does not work.

Landlock only adds permissions from the root down; it takes none away deeper in. So a folder is hidden by allowing
everything beside it, one by one. Nothing new can be made beside a hidden place, even in the work folder. Git's hooks
and configuration are not hidden but watched. docs/sandbox.md says what else Landlock cannot stop."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from duckflow.programs.launch import Launch, on_lifeline
from duckflow.safety.sandbox.paths import SandboxPaths
from duckflow.safety.sandbox.repositories import repositories
from duckflow.safety.sandbox.sandbox import Sandbox, SecretAccess
from duckflow.safety.sandbox.seccomp import Machine, bytecode
from duckflow.state.data import Phrase

CREATE_RULESET = 444
ASK_VERSION = 1
OLDEST = 3
"""The oldest version of Landlock that is used. With older versions a command could empty a file outside the work
folder."""
SCOPES_SINCE = 6
DEVICE_CONTROL_SINCE = 5

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR, MAKE_REG = 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8
MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM, REFER, TRUNCATE = 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14
IOCTL_DEV = 1 << 15
ABSTRACT_SOCKETS, SIGNALS = 1 << 0, 1 << 1

ALL = (1 << 15) - 1
READ = EXECUTE | READ_FILE | READ_DIR
OF_A_FILE = EXECUTE | READ_FILE | WRITE_FILE | TRUNCATE
WRITE = READ | ALL & ~(MAKE_CHAR | MAKE_BLOCK)
PROCESSES = Path("/proc")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

Rule = tuple[int, str]


def version() -> int:
    """Returns the version of the kernel's Landlock; a number below 1 means that there is none."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, 0, ASK_VERSION)


class Landlock(Sandbox):
    """The lesser sandbox. It uses no namespaces, so it stops less than bubblewrap does."""

    kind = "landlock"

    def __init__(self, version: int, machine: Machine, paths: SandboxPaths, says: Phrase) -> None:
        super().__init__(paths, says)
        self._version = version
        self._machine = machine

    def confine(
        self, launch: Launch, network: bool = False, writes: bool = True, secrets: SecretAccess = "none"
    ) -> Launch:
        settings = self.paths.settings
        network = network or settings.network
        git_places = repositories(self.paths.folder)
        traces_before = git_places.traces()
        restricted_launch = on_lifeline(
            launch,
            handled=self._handled(),
            rules=tuple(self._rules(writes)),
            program=bytecode(
                self._machine,
                namespaces=False,
                network=network,
                unix_sockets=settings.unix_sockets,
                writes=writes,
            ),
        )
        return replace(
            restricted_launch,
            temporary=self.paths.scratch.folder,
            environment=self.environment(launch, str(self.paths.scratch.folder)),
            meddled=lambda: git_places.meddled(traces_before, self.paths.folder),
        )

    def _handled(self) -> tuple[int, int, int]:
        device_control = IOCTL_DEV if self._version >= DEVICE_CONTROL_SINCE else 0
        scoped_rights = SIGNALS | ABSTRACT_SOCKETS if self._version >= SCOPES_SINCE else 0
        return (ALL | device_control, 0, scoped_rights)

    def _rules(self, writes: bool) -> Iterator[Rule]:
        handled_rights = self._handled()[0]
        yield READ_DIR, "/"
        hidden_paths = frozenset(self.paths.hidden())
        folders = self.paths.writable() if writes else ()
        readable_paths = (*self.paths.system(), PROCESSES, *self.paths.opened(), self.paths.folder)
        read_rules = ((READ, path) for path in readable_paths)
        for allowed_rights, path in (*read_rules, *((WRITE, folder) for folder in folders)):
            if any(hidden_path.is_relative_to(path) and hidden_path != path for hidden_path in hidden_paths):
                yield from _beside(hidden_paths, path, allowed_rights)
            else:
                yield allowed_rights if path.is_dir() else allowed_rights & OF_A_FILE, str(path)
        for path in self.paths.readable:
            yield (READ if path.is_dir() else READ & OF_A_FILE), str(path)
        yield WRITE, str(self.paths.scratch.folder)
        for name in DEVICES:
            yield (WRITE_FILE | READ_FILE | IOCTL_DEV) & handled_rights, f"/dev/{name}"


def _beside(hidden: frozenset[Path], folder: Path, rights: int) -> Iterator[Rule]:
    """Yields rules for everything beside the hidden places. Links are left out, because the rules for their targets
    apply."""
    parents = {parent for path in hidden for parent in path.parents}
    waiting_folders = [folder]
    while waiting_folders:
        for entry in _entries(waiting_folders.pop()):
            path = Path(entry.path)
            if path in parents and path not in hidden:
                waiting_folders.append(path)
            elif path not in hidden and not entry.is_symlink():
                yield rights if entry.is_dir(follow_symlinks=False) else rights & OF_A_FILE, entry.path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
