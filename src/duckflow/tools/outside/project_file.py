"""`.mcp.json`: the servers that a work folder names, in the format that other coding tools use too. The servers run
only once the user trusts the folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from duckflow.llm.endpoints import KNOWN as ENDPOINTS
from duckflow.safety.brought.agreements import BroughtProgram
from duckflow.safety.brought.launch import FOLDER_NAMES
from duckflow.safety.files import read_plain
from duckflow.state.data import as_table
from duckflow.tools.outside.stdio import VARIABLE
from duckflow.tools.settings import ServerSettings
from duckflow.whole_text import parse_json

FILE = ".mcp.json"
LONGEST = 1_000_000
PROVIDER_KEYS = frozenset(name for endpoint in ENDPOINTS for name in endpoint.key_names)
KNOWN = ("command", "args", "env", "cwd", "url", "headers")


def read_project_servers(folder: Path) -> dict[str, ServerSettings]:
    """Reads the servers of a folder. Raises ValueError, with the reason, when the file makes no sense."""
    try:
        text = _read(folder)
    except OSError:
        return {}
    content = parse_json(text)
    servers: dict[str, ServerSettings] = {}
    for name, server_entry in as_table(as_table(content).get("mcpServers")).items():
        fields = {key: value for key, value in as_table(server_entry).items() if key in KNOWN}
        try:
            servers[name] = ServerSettings.model_validate(fields)
        except ValidationError as problem:
            raise ValueError(f"{name}: {problem.errors()[0]['msg']}") from None
    return {name: server for name, server in servers.items() if server.command or server.url}


def brought_server(name: str, entry: ServerSettings) -> BroughtProgram:
    """Describes a server to the user, who must agree before it is started: everything that its entry says, word for
    word."""
    fields: dict[str, Any] = entry.model_dump(include=set(KNOWN), exclude_defaults=True)
    lines = [f"{key}: {json.dumps(fields[key], ensure_ascii=False)}" for key in KNOWN if key in fields]
    return BroughtProgram(f"server {name}", " · ".join(lines))


def variables_of(entry: ServerSettings) -> list[str]:
    """Returns the names of the user's variables that an entry asks for."""
    return list(dict.fromkeys(match[1] for text in entry.texts for match in VARIABLE.finditer(text)))


def variables_for(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that a folder's servers may get when they ask for them by name: no key of a model provider,
    under any name."""
    keys = {environ[name] for name in PROVIDER_KEYS if environ.get(name)}
    allowed_variables = {
        name: value for name, value in environ.items() if name not in PROVIDER_KEYS and value not in keys
    }
    return allowed_variables | dict.fromkeys(FOLDER_NAMES, str(folder))


def _read(folder: Path) -> str:
    return read_plain(folder / FILE, LONGEST).decode("utf-8-sig", "surrogateescape")
