"""Tells how this copy was installed, and which commands add an extra to it or update it.

Nothing is published under our name, and `duckflow` in the public registry is another person's program. Every command
names the folder, file or address that this copy came from.
"""

import json
import os
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from shlex import quote
from typing import Any
from urllib.parse import unquote, urlsplit

NAME = "duckflow-companion"
"""The name of the distribution. The command and the package are called `duckflow`."""


@dataclass(frozen=True)
class Installation:
    """A copy of the program. `origin` holds the installer's notes from `direct_url.json`, empty if there are none.
    `active` is the virtual environment that the shell is in."""

    prefix: str
    python: str
    origin: str = ""
    active: str = ""
    has_pip: bool = True

    def add(self, extra: str) -> str:
        """Returns the command that adds an extra (such as `web`) to this very copy."""
        source = self._source(extra)
        if "/pipx/venvs/" in f"{self.prefix}/":
            return f"pipx install --force {source}"
        if "/uv/tools/" in f"{self.prefix}/":
            return f"uv tool install --force {source}"
        return f"{self._pip_install} {source}"

    def upgrade(self) -> str:
        """Returns the command that updates this copy."""
        if self._noted.get("dir_info", {}).get("editable"):
            return f"git -C {quote(self.folder)} pull && make -C {quote(self.folder)} install"
        # A copy installed from a clone can only be as new as the clone.
        pull_command = f"git -C {quote(self.folder)} pull && " if self.folder else ""
        if "/pipx/venvs/" in f"{self.prefix}/":
            return f"{pull_command}pipx upgrade {NAME}"
        if "/uv/tools/" in f"{self.prefix}/":
            return f"{pull_command}uv tool upgrade {NAME}"
        return f"{pull_command}{self._pip_install} --upgrade {self._source('')}"

    @property
    def _noted(self) -> dict[str, Any]:
        origin_fields: dict[str, Any] = json.loads(self.origin or "{}")
        return origin_fields

    @property
    def folder(self) -> str:
        """The clone that this copy was installed from; empty if it came from elsewhere."""
        return unquote(urlsplit(str(self._noted["url"])).path) if "dir_info" in self._noted else ""

    @property
    def _pip_install(self) -> str:
        """The pip command for this copy. The `pip` that a shell finds may belong to another environment."""
        if not self.has_pip:
            return f"uv pip install --python {quote(self.python)}"
        return "pip install" if self.active == self.prefix else f"{quote(self.python)} -m pip install"

    def _source(self, extra: str) -> str:
        """Returns the folder, file or address to install from; if it is unknown, the current folder must be the
        clone."""
        extra_suffix = f"[{extra}]" if extra else ""
        url = str(self._noted.get("url", ""))
        if url and "dir_info" not in self._noted:
            revision = self._noted.get("vcs_info", {})
            address = f"{revision['vcs']}+{url}" if revision else url
            return quote(f"{NAME}{extra_suffix} @ {address}")
        option = "-e " if self._noted.get("dir_info", {}).get("editable") else ""
        return f"{option}'{self.folder or '.'}{extra_suffix}'"


def this_installation() -> Installation:
    try:
        origin_json = distribution(NAME).read_text("direct_url.json") or ""
    except (PackageNotFoundError, OSError):
        origin_json = ""
    active_environment = os.environ.get("VIRTUAL_ENV", "")
    return Installation(sys.prefix, sys.executable, origin_json, active_environment, find_spec("pip") is not None)


class InstallCommands:
    """Replaces `{install:web}` in a text by the command that adds the extra `web`."""

    def __format__(self, extra: str) -> str:
        return this_installation().add(extra)
