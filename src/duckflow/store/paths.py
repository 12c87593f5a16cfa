"""The places of Duckflow's files, following the platform's conventions."""

import contextlib
import hashlib
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from duckflow.errors import UsageError


class Paths(NamedTuple):
    """The places of Duckflow's files for one user."""

    data: Path
    config: Path
    cache: Path

    @classmethod
    def of_user(cls) -> "Paths":
        if home_setting := os.environ.get("DUCKFLOW_HOME"):
            chosen_home = _known_home(home_setting).absolute()
            return cls(chosen_home / "data", chosen_home / "config", chosen_home / "cache")
        home_folder = _known_home("~")
        if sys.platform == "darwin":
            library = home_folder / "Library"
            return cls(
                library / "Application Support/duckflow", library / "Preferences/duckflow", library / "Caches/duckflow"
            )

        def xdg(variable: str, default: str) -> Path:
            value = os.environ.get(variable, "")
            # The XDG rules say that a relative value is to be ignored.
            return (Path(value) if Path(value).is_absolute() else home_folder / default) / "duckflow"

        return cls(
            xdg("XDG_DATA_HOME", ".local/share"), xdg("XDG_CONFIG_HOME", ".config"), xdg("XDG_CACHE_HOME", ".cache")
        )

    def close_to_others(self) -> None:
        """Closes the data folder to other users. Older versions left the folder open to everybody on the machine."""
        with contextlib.suppress(OSError):
            if self.data.stat().st_mode & 0o077:
                self.data.chmod(0o700)

    @property
    def private(self) -> tuple[Path, ...]:
        """Returns the folders that no command and no file tool may open, even if they lie in the work folder. Piped
        texts and copies of skills lie elsewhere in the cache, since commands read them."""
        return (self.data, self.config, self.models, self.models.with_name("prefixes"), self.cache / "code")

    @property
    def worktrees(self) -> Path:
        """Returns the folder where fleets work. It lies beside Duckflow's data folder, which no command may see."""
        return self.data.with_name(f"{self.data.name}-worktrees")

    def sessions_of(self, folder: Path) -> Path:
        """Returns the folder with the journals of one work folder. Its name tells a person which work folder that
        is."""
        name = re.sub(r"[^\w.-]+", "-", folder.name)[:40] or "root"
        return self.data / "sessions" / f"{name}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"

    def permissions_of(self, folder: Path) -> Path:
        """Returns the file with the permissions that the user has given for good in one work folder."""
        return self.sessions_of(folder).with_suffix(".permissions.json")

    def undo_of(self, folder: Path) -> Path:
        """Returns the folder with the contents that were saved before changes in one work folder."""
        return self.data / "undo" / self.sessions_of(folder).name

    def archive_of(self, folder: Path) -> Path:
        """Returns the archive file of everything that was said in one work folder."""
        return self.data / "archives" / f"{self.sessions_of(folder).name}.db"

    def archives(self, folder: Path | None) -> list[Path]:
        """Returns the archives of one work folder, or of all work folders. A new archive is found by its inbox, because
        it has no database yet."""
        databases = {
            path.with_suffix(".db") for kind in ("db", "inbox") for path in (self.data / "archives").glob(f"*.{kind}")
        }
        return [path for path in sorted(databases) if folder is None or path == self.archive_of(folder)]

    @property
    def user_config(self) -> Path:
        return self.config / "config.toml"

    @property
    def trusted(self) -> Path:
        """Returns the file with the work folders that the user trusts."""
        return self.data / "trusted.json"

    @property
    def tracked_secrets(self) -> Path:
        """Returns the file that lists, for each repository, the secret files that git tracked."""
        return self.data / "tracked-secrets.json"

    @property
    def trusted_hooks(self) -> Path:
        """Returns the file with the digests of the hooks that the user trusts."""
        return self.data / "trusted-hooks.json"

    @property
    def logins(self) -> Path:
        """Returns the folder for logins to servers, where no keyring stores them."""
        return self.data / "logins"

    @property
    def log(self) -> Path:
        return self.data / "duckflow.log"

    @property
    def history(self) -> Path:
        return self.data / "history"

    @property
    def abilities(self) -> Path:
        return self.cache / "abilities.json"

    @property
    def local_log(self) -> Path:
        return self.data / "local-model.log"

    @property
    def skill_copies(self) -> Path:
        """Returns the folder for copies of skills from places that commands cannot see."""
        return self.cache / "skills"

    def piped_of(self, folder: Path) -> Path:
        """Returns the folder for long piped texts. It is in the cache, which is not private, so that file tools and
        commands may read there."""
        return self.cache / "piped" / self.sessions_of(folder).name

    @property
    def plugins(self) -> Path:
        """Returns the file with the list of plugins that were found, so that not every start has to look for plugins.
        What stands in it is imported, so it is private."""
        return self.data / "plugins.json"

    def map_of(self, folder: Path) -> Path:
        """Returns the code map of one work folder."""
        return self.cache / "code" / f"{self.sessions_of(folder).name}.db"

    @property
    def models(self) -> Path:
        return self.cache / "models"


def _known_home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError("paths.no_home", path=path) from None


def require_current_folder() -> Path:
    """Returns the current folder. If it no longer exists, the error says what to do about that."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UsageError("folder.gone") from None
    except OSError as problem:
        raise UsageError("folder.closed", reason=problem.strerror or str(problem)) from None
