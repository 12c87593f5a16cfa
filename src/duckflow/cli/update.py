"""`duckflow update`: tells how this installation is brought up to date. Nothing is fetched or changed."""

import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import unquote, urlsplit

from duckflow import __version__
from duckflow.cli.parser import Options
from duckflow.i18n.words import Words
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_out

TOOLS = {
    "/pipx/venvs/": "pipx upgrade duckflow",
    "/uv/tools/": "uv tool upgrade duckflow",
    "/uv/archive": "uvx --refresh duckflow",
}
"""How to upgrade what was installed by other tools, by where they keep it."""


def tell_update(_: Options, words: Words, __: Paths) -> int:
    print_out(words("update.version", version=__version__, where=sys.prefix))
    print_out(words("update.how", command=upgrade_command(sys.prefix, sys.executable, _came_from())))
    return 0


def upgrade_command(prefix: str, python: str, came_from: str) -> str:
    """The command for an installation in `prefix`; `came_from` is what the installer noted of its origin."""
    given: dict[str, Any] = json.loads(came_from or "{}")
    url = str(given.get("url", ""))
    folder = unquote(urlsplit(url).path)
    if given.get("dir_info", {}).get("editable"):
        place = quote(folder)
        return f"git -C {place} pull && make -C {place} install"
    for place, command in TOOLS.items():
        if place in Path(prefix).as_posix():
            return command
    source = folder if url.startswith("file://") else url or "duckflow"
    return f"{quote(python)} -m pip install --upgrade {quote(source)}"


def _came_from() -> str:
    try:
        return distribution("duckflow").read_text("direct_url.json") or ""
    except (PackageNotFoundError, OSError):
        return ""
