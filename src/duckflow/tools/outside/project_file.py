"""`.mcp.json`: the servers that a work folder brings, as other agents write them down. They run once it is trusted."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from duckflow.llm.endpoints import KNOWN as ENDPOINTS
from duckflow.safety.brought.agreements import BroughtProgram
from duckflow.safety.brought.launch import FOLDER_NAMES
from duckflow.safety.files import read_plain
from duckflow.state.noun import as_table
from duckflow.tools.outside.settings import ServerSettings
from duckflow.tools.outside.stdio import VARIABLE
from duckflow.whole_text import parse_json

FILE = ".mcp.json"
LONGEST = 1_000_000
PROVIDER_KEYS = frozenset(name for endpoint in ENDPOINTS for name in endpoint.key_names)
KNOWN = ("command", "args", "env", "cwd", "url", "headers")


def read_project_servers(folder: Path) -> dict[str, ServerSettings]:
    """ValueError, with the reason, when the file makes no sense."""
    try:
        text = _read(folder)
    except OSError:
        return {}
    given = parse_json(text)
    found: dict[str, ServerSettings] = {}
    for name, entry in as_table(as_table(given).get("mcpServers")).items():
        kept = {key: value for key, value in as_table(entry).items() if key in KNOWN}
        try:
            found[name] = ServerSettings.model_validate(kept)
        except ValidationError as problem:
            raise ValueError(f"{name}: {problem.errors()[0]['msg']}") from None
    return {name: one for name, one in found.items() if one.command or one.url}


def brought_server(name: str, entry: ServerSettings) -> BroughtProgram:
    """For the agreement about it: everything that its entry says, word for word."""
    told: dict[str, Any] = entry.model_dump(include=set(KNOWN), exclude_defaults=True)
    lines = [f"{key}: {json.dumps(told[key], ensure_ascii=False)}" for key in KNOWN if key in told]
    return BroughtProgram(f"server {name}", " · ".join(lines))


def variables_of(entry: ServerSettings) -> list[str]:
    """The user's variables that an entry asks for."""
    return list(dict.fromkeys(found[1] for text in entry.texts for found in VARIABLE.finditer(text)))


def variables_for(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """What a folder's servers may be given when they ask for it by name: no key of a model provider, under any name."""
    keys = {given[name] for name in PROVIDER_KEYS if given.get(name)}
    allowed = {name: value for name, value in given.items() if name not in PROVIDER_KEYS and value not in keys}
    return allowed | dict.fromkeys(FOLDER_NAMES, str(folder))


def _read(folder: Path) -> str:
    return read_plain(folder / FILE, LONGEST).decode("utf-8-sig", "surrogateescape")
