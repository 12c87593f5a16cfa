"""`duckflow mcp`: manages the MCP servers whose tools Duckflow uses, and serves Duckflow itself as one."""

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from duckflow.cli.parser import Options
from duckflow.config.edit import read_text, remove_table, set_value, write_text
from duckflow.config.load import load
from duckflow.config.settings import Settings
from duckflow.errors import UsageError
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words, language_of
from duckflow.safety.brought.agreements import agreements_of
from duckflow.store.paths import Paths
from duckflow.tools.outside.project_file import FILE, brought_server, read_project_servers, variables_for
from duckflow.tools.settings import ServerSettings, describe_entry
from duckflow.ui.streams import print_err, print_out

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
ADDRESS = ("http://", "https://")
SHOWN_TOOL = 90


def run_mcp(options: Options, words: Words, paths: Paths) -> int:
    settings = load(paths.user_config, Path.cwd(), {"language": options.lang}).settings
    words.language = language_of(settings.language)
    match options.what:
        case "add":
            return _add(options, words, paths)
        case "remove":
            return _remove(options, words, paths)
        case "test":
            return asyncio.run(_test(options, settings, words, paths))
        case "login":
            from duckflow.cli.mcp_login import login
            from duckflow.tools.outside.login import Logins

            name = _required(options.name)
            entry, variables = _entry_to_log_in_to(name, settings, paths)
            return asyncio.run(login(name, entry, variables, words, Logins(paths.logins), options.scope))
        case "serve":
            from duckflow.cli.mcp_serve import serve

            return serve(words, paths, [name for name in (options.name, *options.command) if name])
        case _:
            return _list(settings, words)


def _add(options: Options, words: Words, paths: Paths) -> int:
    """Adds a server to the user's own settings. A project's settings are left alone: they must not start programs."""
    name, command = _required(options.name), list(options.command)
    if not NAME.fullmatch(name):
        raise UsageError("mcp.bad_name", name=name)
    if not command:
        raise UsageError("mcp.nothing_to_start", name=name)
    if command[0].startswith(ADDRESS):
        server_entry: dict[str, Any] = {"url": command[0], "headers": dict(_pair(pair, ":") for pair in options.header)}
    else:
        variables = dict(_pair(pair, "=") for pair in options.env)
        server_entry = {"command": command[0], "args": command[1:], "env": variables}
    text = read_text(paths.user_config)
    for field, value in server_entry.items():
        text = set_value(text, ("mcp", "servers", name, field), value) if value else text
    write_text(paths.user_config, text)
    print_out(plain(words("mcp.added", name=name, path=str(paths.user_config))))
    return 0


def _pair(text: str, sign: str) -> tuple[str, str]:
    name, separator, value = text.partition(sign)
    if not separator or not name.strip():
        raise UsageError("mcp.bad_pair", text=text, sign=sign)
    return name.strip(), value.strip()


def _remove(options: Options, words: Words, paths: Paths) -> int:
    name = _required(options.name)
    text = read_text(paths.user_config)
    write_text(paths.user_config, remove_table(text, ("mcp", "servers", name)))
    print_out(plain(words("mcp.removed", name=name, path=str(paths.user_config))))
    return 0


def _list(settings: Settings, words: Words) -> int:
    own_servers, project_servers = settings.mcp.servers, _project_servers(words)
    rows = [
        *_rows(own_servers, ""),
        *_rows({name: entry for name, entry in project_servers.items() if name not in own_servers}, f"  ({FILE})"),
    ]
    for row in rows or [words("mcp.none")]:
        print_out(plain(row))
    return 0


def _rows(servers: Mapping[str, ServerSettings], note: str) -> list[str]:
    width = max(map(len, servers), default=0)
    return [f"{name:<{width}}  {describe_entry(server_entry)}{note}" for name, server_entry in servers.items()]


def _project_servers(words: Words) -> Mapping[str, ServerSettings]:
    try:
        return read_project_servers(Path.cwd())
    except ValueError as problem:
        print_err(plain(words("mcp.bad_file", file=FILE, reason=str(problem))))
        return {}


async def _test(options: Options, settings: Settings, words: Words, paths: Paths) -> int:
    """Starts one server, or all of the user's own, and prints their tools. The exit code is 1 if one cannot be used."""
    from duckflow.cli.outside import make_servers

    names = [options.name] if options.name else list(settings.mcp.servers)
    entries = {name: _entry(name, settings) for name in names}
    if project_names := [name for name in entries if name not in settings.mcp.servers]:
        raise UsageError("mcp.only_in_chat", name=project_names[0])
    servers = make_servers(settings.mcp, Path.cwd(), paths, _nobody, lambda phrase: None)
    try:
        servers.start(entries)
        first_answers = [server.tried.wait() for server in servers.servers.values()]
        await asyncio.gather(*first_answers)
        for server in servers.servers.values():
            is_ready = server.state == "ready"
            key = "mcp.works" if is_ready else "mcp.login_needed" if server.state == "login" else "mcp.broken"
            count, seconds = len(server.lists["tools"]), round(server.seconds, 1)
            values = {"name": server.name, "about": server.about, "count": count, "seconds": seconds}
            print_out(plain(words(key, **values, reason=server.why)))
            for tool in server.lists["tools"] if is_ready else ():
                description = " ".join(str(tool.get("description", "")).split())[:SHOWN_TOOL]
                print_out(plain(f"    {tool.get('name')}: {description}"))
        return 0 if all(server.state == "ready" for server in servers.servers.values()) else 1
    finally:
        await servers.aclose()


async def _nobody(question: Any) -> Any:
    """Declines every question of a server, because nobody answers questions during a test."""
    from duckflow.state.question import Answer

    return Answer(choice="no")


def _entry(name: str, settings: Settings) -> ServerSettings:
    """Returns the settings of a server, from the user's settings or from the folder's file."""
    known_servers: dict[str, ServerSettings] = {**read_project_servers(Path.cwd()), **settings.mcp.servers}
    if name not in known_servers:
        raise UsageError("mcp.unknown", name=name, known=", ".join(known_servers) or "–")
    return known_servers[name]


def _entry_to_log_in_to(name: str, settings: Settings, paths: Paths) -> tuple[ServerSettings, Mapping[str, str]]:
    """Returns the settings of a server, and the variables that it may get. A server of the folder must be one that the
    user has agreed to, as its entry is now: an address may hold variables of the user's, and belong to anybody."""
    entry, folder = _entry(name, settings), Path.cwd()
    if name in settings.mcp.servers:
        return entry, os.environ
    if not agreements_of(paths.data, folder).find(brought_server(name, entry)):
        raise UsageError("mcp.only_in_chat", name=name)
    return entry, variables_for(folder, os.environ)


def _required(name: str) -> str:
    if not name:
        raise UsageError("usage.required", names="NAME", prog="duckflow mcp")
    return name
