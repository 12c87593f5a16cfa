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


def fingerprint(folder: Path) -> str:
    """Of the file's text; nothing where there is none. What was trusted is what stood in it."""
    try:
        return hashlib.sha256(_read(folder).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    except OSError:
        return ""


def _read(folder: Path) -> str:
    with (folder / FILE).open(encoding="utf-8-sig", errors="surrogateescape") as file:
        return file.read(LONGEST)
