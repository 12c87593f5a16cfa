"""The secrets of the work folder that a session knows: those of its secret files, its settings and the environment."""

import asyncio
import contextlib
import os
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from duckflow.safety.sandbox.repositories import repositories, settings_in
from duckflow.safety.secret_index import around, secret_index
from duckflow.safety.secrets import (
    Hide,
    KnownSecrets,
    Masked,
    known_secrets,
    login_values,
    mask,
    named_secrets,
    secret_name,
    secret_parts,
)
from duckflow.state.agent import AgentState

MOST_READ = 1000
"""The largest number of secret files whose lines are remembered."""
MOST_FOLLOWED = 200
"""The largest number of files in which copies of secret files are looked for after one command."""
MOST_LOGINS = 1000
"""The largest number of values from git's settings: every one of them is looked for in every result. Those of the work
folder's own repository come first."""


class SecretFile(NamedTuple):
    """A secret file as it was when it was read."""

    stamp: tuple[int, ...]
    secrets: KnownSecrets


class SessionSecrets:
    """Knows the secret files of the work folder as they were at its last look and before. If a file is no longer where
    it was, somebody may have moved it to a harmless name, so its lines are hidden in every text from then on."""

    def __init__(self, state: AgentState, added: Sequence[Path] = ()) -> None:
        """`added` are further folders with secret files."""
        self._state = state
        self._added = added
        self._known: KnownSecrets | None = None
        self._files: dict[Path, SecretFile] = {}
        self._gone_lines = frozenset[str]()
        self._lock = Lock()

    async def look(self) -> KnownSecrets:
        """Reads the secret files again. This is done before and after every command, and before every request."""
        return await asyncio.to_thread(self._look)

    async def follow(self, changed: Sequence[str]) -> None:
        """Looks whether a command has copied a secret file to one of these paths. If so, its lines are hidden in every
        text from now on, as if it had been moved."""
        await asyncio.to_thread(self._follow, changed)

    async def known(self) -> KnownSecrets:
        """Returns the secrets of the last look."""
        return self._known or await self.look()

    def in_any_text(self, known: KnownSecrets) -> KnownSecrets:
        """Returns those of the known secrets that are hidden in any text: values that can only be secrets, and the
        lines of secret files that were moved or removed. Other lines of secret files are hidden only in the output of
        commands, since many of them may stand in harmless files as well."""
        return KnownSecrets(self._gone_lines, known.values)

    async def hider(self) -> Hide:
        """Returns a function that hides the secrets of today in a line of a file."""
        secrets = self.in_any_text(await self.look())
        return lambda line: hide_in(line, secrets)

    def _follow(self, changed: Sequence[str]) -> None:
        with self._lock:
            secret_lines = [file.secrets.lines for file in self._files.values() if file.secrets.lines]
            for path in changed[:MOST_FOLLOWED] if secret_lines else ():
                if not secret_name(path):
                    lines = known_secrets(Path(self._state.folder), [path]).lines
                    self._gone_lines = self._gone_lines.union(*(secret for secret in secret_lines if secret <= lines))

    def _look(self) -> KnownSecrets:
        with self._lock:
            return self._read_anew()

    def _read_anew(self) -> KnownSecrets:
        files, listed_paths = dict[Path, SecretFile](), set[Path]()
        for top_folder in (around(Path(self._state.folder)), *self._added):
            paths = secret_index(top_folder).look().paths
            listed_paths.update(top_folder / path for path in paths)
            for path in paths[:MOST_READ]:
                files[top_folder / path] = self._read(top_folder, path)
        self._gone_lines = self._gone_lines.union(
            *(file.secrets.lines for path, file in self._files.items() if path not in listed_paths)
        )
        self._files = files
        folders = dict.fromkeys((around(Path(self._state.folder)), Path(self._state.folder), *self._added))
        git_folders = (git_folder for folder in folders for git_folder in repositories(folder).git_folders)
        values = (*secret_parts(named_secrets(os.environ).values()), *logins_in(settings_in(git_folders)))
        before = self._known or KnownSecrets()
        known = all_of([before, KnownSecrets(values=values), *(file.secrets for file in files.values())])
        # The same object says that nothing has changed.
        self._known = before if self._known and known == before else known
        return self._known

    def _read(self, top: Path, path: str) -> SecretFile:
        stamp: tuple[int, ...] = ()
        with contextlib.suppress(OSError):
            file_stat = os.lstat(top / path)
            stamp = (file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns)
        earlier_file = self._files.get(top / path)
        if earlier_file and stamp and earlier_file.stamp == stamp:
            return earlier_file
        return SecretFile(stamp, known_secrets(top, [path]))


def all_of(secrets: Sequence[KnownSecrets]) -> KnownSecrets:
    lines = frozenset[str]().union(*(each.lines for each in secrets))
    values = {value for each in secrets for value in each.values}
    return KnownSecrets(lines, tuple(sorted(values, key=lambda value: (-len(value), value))))


def logins_in(settings: Iterable[Path]) -> tuple[str, ...]:
    """Returns the logins in these files with git's settings."""
    return tuple(islice((value for path in settings for value in login_values(path)), MOST_LOGINS))


def hide_in(text: str, known: KnownSecrets) -> Masked:
    return mask(text, known.lines, known.values)
