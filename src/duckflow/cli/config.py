"""`duckflow config`: what is set and where it came from, and setting it."""

import json
from pathlib import Path
from typing import Any

from duckflow.cli.parser import Options
from duckflow.config.edit import read_text, with_value, without, write_text
from duckflow.config.load import FROM_ENVIRONMENT, PROJECT_FILE, Loaded, load, require_project_may
from duckflow.config.settings import Settings
from duckflow.config.toml_text import Key, read_key, written_key
from duckflow.config.value import rows, setting_names, shown, unknown_setting, value_for
from duckflow.errors import UsageError
from duckflow.i18n.plain import plain
from duckflow.i18n.words import Words, language_of
from duckflow.store.paths import Paths
from duckflow.ui.streams import print_err, print_out


def told_origin(name: str, origin: str, words: Words) -> str:
    """A file's path, or the environment with its variable, or the command line; nothing stands for the default."""
    match origin:
        case "":
            return words("origin.default")
        case "environment":
            variable = next((one for one, setting in FROM_ENVIRONMENT.items() if setting == name), "")
            return words("origin.environment", variable=variable)
        case "command line":
            return words("origin.flag")
        case _:
            return origin


def config(options: Options, words: Words, paths: Paths) -> int:
    match options.what:
        case "get":
            _get(options, words, paths)
        case "set":
            _change(options, words, paths, removed=False)
        case "unset":
            _change(options, words, paths, removed=True)
        case _:
            _list(options, words, paths)
    return 0


def _loaded(options: Options, words: Words, paths: Paths) -> Loaded:
    loaded = load(paths.user_config, Path.cwd(), {"language": options.lang})
    words.language = language_of(loaded.settings.language)
    return loaded


def _list(options: Options, words: Words, paths: Paths) -> None:
    loaded = _loaded(options, words, paths)
    wanted = [row for row in rows(loaded.settings) if _begins(row[0], options.name)]
    if not wanted:
        raise unknown_setting(options.name, words("origin.flag"))
    if options.changed:
        wanted = [row for row in wanted if row[0] in loaded.origins]
    if options.json:
        print_out(json.dumps({name: _entry(name, value, loaded) for name, value in wanted}, ensure_ascii=False))
        return
    for name, value in wanted:
        print_out(plain(f"{name} = {shown(name, value)}  # {_origin(name, loaded, words)}"))


def _get(options: Options, words: Words, paths: Paths) -> None:
    """The bare value on stdout, for scripts; where it came from on stderr."""
    key = _known(options.name, words)
    loaded = _loaded(options, words, paths)
    found = [(name, value) for name, value in rows(loaded.settings) if _begins(name, written_key(key))]
    for name, value in found:
        if len(found) == 1 and isinstance(value, str):
            print_out(plain(str(_safe(name, value))))
        else:
            print_out(plain(shown(name, value) if len(found) == 1 else f"{name} = {shown(name, value)}"))
        print_err(plain(f"· {_origin(name, loaded, words)}"))


def _change(options: Options, words: Words, paths: Paths, removed: bool) -> None:
    key = _known(options.name, words)
    name = written_key(key)
    path = Path.cwd() / PROJECT_FILE if options.project else paths.user_config
    if options.project:
        require_project_may({key[0]}, path)
    text = read_text(path)
    if removed:
        write_text(path, without(text, key))
        print_out(plain(words("config.removed", name=name, path=str(path))))
        return
    if options.value is None:
        raise UsageError("usage.required", names="VALUE", prog="duckflow config set")
    value = value_for(key, options.value, words("origin.flag"))
    write_text(path, with_value(text, key, value))
    print_out(plain(words("config.written", name=name, value=shown(name, value), path=str(path))))
    origin = _loaded(options, words, paths).origins.get(name, "")
    if origin and origin != str(path):
        print_err(plain(words("config.overruled", name=name, origin=told_origin(name, origin, words))))


def _known(name: str, words: Words) -> Key:
    """The parts of a name that is a setting, or may be one in a table of the user's own."""
    if not name:
        raise UsageError("usage.required", names="SETTING", prog="duckflow config")
    key = read_key(name)
    names = setting_names(Settings)
    if not key or not any(_begins(one, name) or _begins(name, one) for one in names):
        raise unknown_setting(name, words("origin.flag"))
    return key


def _begins(name: str, prefix: str) -> bool:
    return not prefix or name == prefix or name.startswith(f"{prefix}.")


def _entry(name: str, value: Any, loaded: Loaded) -> dict[str, Any]:
    return {"value": _safe(name, value), "origin": loaded.origins.get(name, "default")}


def _safe(name: str, value: Any) -> Any:
    """For JSON and for scripts: the value itself, unless it shows a secret."""
    import tomllib

    return tomllib.loads(f"value = {shown(name, value)}")["value"] if isinstance(value, str) else value


def _origin(name: str, loaded: Loaded, words: Words) -> str:
    return told_origin(name, loaded.origins.get(name, ""), words)
