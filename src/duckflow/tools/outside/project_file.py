"""`.mcp.json`: the servers that a work folder brings, as other agents write them down. They run once it is trusted."""

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from duckflow.llm.json_fields import as_table
from duckflow.tools.outside.settings import ServerSettings

FILE = ".mcp.json"
LONGEST = 1_000_000
KNOWN = ("command", "args", "env", "cwd", "url", "headers")


def read_project_servers(folder: Path) -> dict[str, ServerSettings]:
    """ValueError, with the reason, when the file makes no sense."""
    try:
        text = _read(folder)
    except OSError:
        return {}
    given: Any = json.loads(text)
    found: dict[str, ServerSettings] = {}
    for name, entry in as_table(as_table(given).get("mcpServers")).items():
        kept = {key: value for key, value in as_table(entry).items() if key in KNOWN}
        try:
            found[name] = ServerSettings.model_validate(kept)
        except ValidationError as problem:
            raise ValueError(f"{name}: {problem.errors()[0]['msg']}") from None
    return {name: one for name, one in found.items() if one.command or one.url}


class Agreements:
    """Which files the user has agreed to, by folder and by what stood in them."""

    def __init__(self, kept_in: Path, folder: Path) -> None:
        self._kept_in = kept_in
        self._folder = str(folder)
        self._mark = hashlib.sha256(_read(folder).encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def agreed(self) -> bool:
        return self._known().get(self._folder) == self._mark

    def agree(self) -> None:
        known = self._known() | {self._folder: self._mark}
        self._kept_in.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._kept_in.with_suffix(".new")
        fresh.write_text(json.dumps(known, indent=1), encoding="utf-8", errors="surrogateescape")
        fresh.replace(self._kept_in)

    def _known(self) -> dict[str, Any]:
        try:
            return as_table(json.loads(self._kept_in.read_text(encoding="utf-8", errors="surrogateescape")))
        except (OSError, ValueError):
            return {}


def _read(folder: Path) -> str:
    with (folder / FILE).open(encoding="utf-8-sig", errors="surrogateescape") as file:
        return file.read(LONGEST)
